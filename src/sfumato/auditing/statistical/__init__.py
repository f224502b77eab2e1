"""Losses found: run a mechanism on made-up neighbours, learn what tells them apart, count it on fresh runs.

A lower bound at a stated confidence: it finds mistakes and proves nothing right. The runs that are counted are never
those that taught how to guess, and nothing about a mechanism is believed: it is only run.
"""
