"""Noise on the sorted records in the place of counts: histograms that adapt without having looked.

The lattice is public. δ survives on lines and not along a curve through a grid.
"""
