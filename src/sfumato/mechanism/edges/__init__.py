"""Noise on the edges of the policy, which the counts receive as a divergence.

A range pays for its boundary. On graphs with cycles an estimator must be equivariant in exact integers; only trees may
publish their noisy edges themselves.
"""
