"""The command line: the library's verbs, for people and for programs.

It asks, shows and exits; every decision about privacy is the library's.
"""
