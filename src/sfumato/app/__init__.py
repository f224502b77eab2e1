"""The command line: the library's verbs, for people and for programs."""
