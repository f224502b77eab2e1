"""Losses proved: computed in integers and fractions for every edge looked at, or bounded by an argument redone here.

What a mechanism says of its form is compared with runs on made-up databases, draw for draw, before anything is
concluded from it. Nothing is estimated from how often something happens, and no class of a mechanism is known here.
"""
