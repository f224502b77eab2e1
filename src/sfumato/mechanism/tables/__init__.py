"""Mechanisms that measure tables of some factors of a product, whatever the size of the product.

What they are given in the place of counts, and what they estimate, are tables one after the other. No array of the
product's cells is made here, and no number of a cell beyond 64 bits is computed: sizes are Python's integers.
"""
