"""Mechanisms that measure tables of a product, and never its cells."""
