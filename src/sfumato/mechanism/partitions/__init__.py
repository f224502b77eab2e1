"""Mechanisms in two stages: a private choice of parts, then noisy totals of the parts.

Both stages are paid for. Nothing is chosen by a look at the data that was not drawn for.
"""
