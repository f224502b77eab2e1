"""Which mechanism publishes an order statistic: by name, or from what is public."""

from __future__ import annotations

from fractions import Fraction

from sfumato.errors import InvalidInput
from sfumato.exact import Number, fraction
from sfumato.quantiles.base import OrderMechanism
from sfumato.quantiles.inverse import InverseSensitivity
from sfumato.quantiles.laplace import OrderLaplace
from sfumato.quantiles.ranks import RankSplit
from sfumato.quantiles.smooth import SmoothSensitivity

RANKS = "ranks"
METHODS = ("inverse", "laplace", "smooth", "smooth-pure", RANKS)
DEFAULT_SLACK = Fraction(1, 10**9)


def order_mechanism(
    method: str | None,
    *,
    count: int,
    epsilon: Fraction,
    theta: int,
    cells: int,
    slack: Number | None = None,
    share: Fraction = Fraction(1, 2),
) -> OrderMechanism:
    """The mechanism of that name, or the better one of "inverse" and "laplace" for so many points.

    The choice sees the number of points, ε, the step and the lattice, all of them public, and never a point. "ranks",
    to which the number is not public, is never chosen; it alone is made for one `share`, and ε is what one point more
    costs.
    """
    if method is None:
        method = better(count=count, epsilon=epsilon, theta=theta, cells=cells)
    require_method(method)
    if slack is not None and method != "smooth":
        raise InvalidInput(
            f"slack={slack!r} belongs to method='smooth': method={method!r} has none. Nothing was drawn or recorded. "
            "Leave slack out."
        )
    if method == "inverse":
        return InverseSensitivity(epsilon=epsilon, theta=theta, cells=cells)
    if method == "laplace":
        return OrderLaplace(epsilon=epsilon, theta=theta, cells=cells)
    if method == RANKS:
        return RankSplit(epsilon=epsilon, share=share, cells=cells)
    if method == "smooth-pure":
        return SmoothSensitivity(epsilon=epsilon, theta=theta, cells=cells, slack=Fraction(0))
    allowed = DEFAULT_SLACK if slack is None else fraction(slack, "slack")
    if allowed <= 0:
        raise InvalidInput(
            f"slack={slack!r} must be greater than zero for method='smooth'. Nothing was drawn or recorded. "
            "Use method='smooth-pure' for a promise without slack."
        )
    return SmoothSensitivity(epsilon=epsilon, theta=theta, cells=cells, slack=allowed)


def require_method(method: str | None) -> None:
    """Refuse what is no method."""
    if method is not None and method not in METHODS:
        raise InvalidInput(
            f"method={method!r} is not known. Nothing was drawn or recorded. Use one of "
            f"{', '.join(map(repr, METHODS))}, or leave it out."
        )


def better(*, count: int, epsilon: Fraction, theta: int, cells: int) -> str:
    """ "inverse" where the points lie dense enough, n·δ/width > ε/2, else "laplace".

    Take points evenly spread, h apart. Plain noise has standard error √2·δ/ε. The inverse mechanism has √(2·h·δ/ε)
    where that spans several steps and gaps, and where ε is so large that it does not, about h/2 and never less: it is
    the better one for δ > ε·h, about. The public guess for h is half of width/n, since points are denser in their
    middle than bounds let guess. `bench/median.py` compares the choice with the better one on four kinds of points.
    """
    return "inverse" if 2 * count * theta > epsilon * cells else "laplace"
