"""Vertex strategies: publish `A·x + noise` and estimate by least squares.

One integer operator an axis, or sets of cells. The sensitivity is computed from what is built; floating point enters
after the noise alone.
"""
