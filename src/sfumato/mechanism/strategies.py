"""The named vertex strategies: identity, prefix sums, Haar wavelets, hierarchies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.exact import positive_int
from sfumato.linear import Haar, Hierarchy, Identity, Operator, Prefix, nested_blocks
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.edges import EdgeMechanism
from sfumato.mechanism.vertex import VertexMechanism
from sfumato.policy import Policy


def identity(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on every count: the plain histogram. Best for single cells, worst for long ranges."""
    no_options("identity", options)
    factors = tuple(Identity(n) for n in policy.domain.shape)
    return VertexMechanism(name="identity", policy=policy, epsilon=epsilon, factors=factors)


def haar(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Privelet: noise on the Haar coefficients along every axis. Ranges pay log³ of the axis' length."""
    no_options("haar", options)
    factors = tuple(Haar(n) for n in policy.domain.shape)
    return VertexMechanism(name="haar", policy=policy, epsilon=epsilon, factors=factors)


def hierarchy(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the counts of nested blocks, `branching` of them in the next larger one, made consistent by least
    squares.
    """
    branching = positive_int(options.pop("branching", 16), "branching")
    root = options.pop("root", not policy.total_is_public)
    no_options("hierarchy", options)
    if branching < 2:
        raise InvalidInput(f"branching={branching} must be at least 2.")
    if not isinstance(root, bool):
        raise InvalidInput(
            f"root={root!r} must be True or False: whether the coarsest level is one block over everything."
        )
    factors: tuple[Operator, ...] = tuple(
        Hierarchy(n, nested_blocks(n, branching, root=root)) for n in policy.domain.shape
    )
    chosen = {"branching": branching, "root": root}
    return VertexMechanism(name="hierarchy", policy=policy, epsilon=epsilon, options=chosen, factors=factors)


def prefix(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the prefix sums of a line: a range pays for its two ends alone, and a move for the cells it crosses.

    Where the total is public the last prefix sum is known, and the mechanism is that of the line's edges (Blowfish,
    Theorem 5.2). With a ⊥ the sums may run in either direction: `reverse=True` starts at the upper end, for sources
    at the lower one.
    """
    if policy.domain.ndim != 1:
        raise InvalidInput("mechanism='prefix' is for lines; on a grid use mechanism='edges'.")
    reverse = options.pop("reverse", False)
    no_options("prefix", options)
    if not isinstance(reverse, bool):
        raise InvalidInput(f"reverse={reverse!r} must be True or False.")
    if policy.total_is_public and policy.structured:
        return EdgeMechanism(name="prefix", policy=policy, epsilon=epsilon, along=Identity)
    factors = (Prefix(policy.domain.size, reverse=reverse),)
    return VertexMechanism(name="prefix", policy=policy, epsilon=epsilon, options={"reverse": reverse}, factors=factors)


def no_options(name: str, options: dict[str, Any]) -> None:
    """Refuse what was not taken."""
    if options:
        raise InvalidInput(f"mechanism={name!r} takes no option {', '.join(sorted(options))}.")
