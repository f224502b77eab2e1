"""The studio: a local page on which somebody sees what is hidden before anything is spent, publishes, and explores.

Nothing here decides about privacy, and no response carries a private value: of the data only names and types of
columns, and of a publication its release. Exact figures for the operator's eyes go to the operator's terminal.
"""
