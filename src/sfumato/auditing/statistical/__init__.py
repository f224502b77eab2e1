"""Losses found: run a mechanism on made-up neighbours, learn what tells them apart, count it on fresh runs.

A lower bound at a stated confidence. It finds mistakes and proves nothing right.
"""
