"""Families of shifted coarse grids: each hides where in a bin a record lies, and their differences show it.

For policies without ⊥ alone; what a move crosses is counted on the gridlines that were built.
"""
