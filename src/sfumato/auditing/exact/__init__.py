"""Losses proved: computed in integers and fractions for every edge looked at, or bounded by an argument redone here.

Nothing here runs a mechanism on data; it works on what is built.
"""
