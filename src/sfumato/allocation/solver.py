"""The convex programme behind every allocation, solved for many sequences at once in time linear in their length.

    minimise  Σ_i w_i·x_i^(-p)   subject to   x_i ≥ floor_i   and   Σ_{i in window j} x_i ≤ room_j

Window j holds the steps j-δ+1 … j that exist. A primal-dual interior point method (Mehrotra's predictor-corrector): x
stays strictly feasible, so every iterate is an allocation; the prices λ of the windows give a lower bound on the
optimum (their dual value), and the method stops when the two meet. Newton's matrix is `diagonal + Aᵀ·diag(λ/s)·A` with
A the windows: banded, because steps further apart than a window never meet.

What a step pays, y_i, is a variable of its own: x_i^(p+1)·y_i = p·w_i is solved in logarithms, where it is linear, so
that budgets may change by factors instead of differences and weights and rooms of any size are met in few steps.

With a `Present` there is one more variable, which every sequence shares and which takes its part of the first δ-1
rooms: the budget of the present step, chosen against many futures at once. Its row borders the banded blocks (an arrow)
and costs one more right-hand side. Its optimality says: the price of budget now is the average price in the futures.

Arrays are (steps, sequences): Python loops over steps, NumPy runs over sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.bands import factorise, smallest, spread, window_sums
from sfumato.errors import InvalidInput

Array = NDArray[np.float64]

MAX_ITERATIONS = 100  # about ten are needed, twenty for weights many powers of ten apart
TO_THE_BOUNDARY = 0.95  # share of the way to the nearest constraint that a step may go
SMALLEST_SHARE = 2.0**-24  # of budget beside the largest weight: 10⁻⁷ of the others' is what keeping it costs them
START = 0.9  # the first allocation leaves a tenth of the scarcest window: the middle of the feasible region


@dataclass(frozen=True, kw_only=True)
class Present:
    """The step that every sequence shares: its weight, and the room left in the window that ends with it."""

    weight: float
    room: float


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Budgets (steps, sequences) and the certificate: no allocation has a total error below `bound`.

    With a present step error and bound are those of all sequences together.
    """

    budgets: Array
    present: float
    error: Array
    bound: Array
    iterations: int


def solve(
    weights: Array,
    rooms: Array,
    window: int,
    power: float,
    *,
    floor: Array | None = None,
    present: Present | None = None,
    tolerance: float = 1e-8,
) -> Solution:
    """The optimum to a relative error of `tolerance`; a step without weight gets its floor, or nothing.

    Every step that has a weight must have room above its floor in all its windows.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # what goes wrong shows in the certificate
        iterate = _Iterate(weights, rooms, window, power, floor, present)
        for iteration in range(MAX_ITERATIONS):
            error = iterate.error()
            # The certificate costs as much as a step, and cannot hold before prices times slacks are small.
            if ((iterate.complementarity() <= tolerance * error) | (error == 0)).all() and np.isfinite(error).all():
                bound = iterate.bound()
                if ((error - bound <= tolerance * error) | (error == 0)).all():
                    return iterate.solution(error, np.where(error == 0, 0.0, bound), iteration)
            try:
                iterate.improve(0.1 * tolerance * error)
            except np.linalg.LinAlgError:
                break
    raise InvalidInput(
        "The weights, or what is left in the windows, lie too many powers of ten apart to be balanced in double "
        "precision. Nothing was drawn or recorded. Use weights within twelve powers of ten of each other."
    )


@dataclass(frozen=True)
class _Direction:
    """A change of everything in an iterate."""

    x: Array
    s: Array
    prices: Array
    z: Array
    y: Array
    t: float
    price_t: float
    y_t: float


class _Iterate:
    """Budgets x and what they pay, y; slacks s of the windows and their prices; slacks v of the floors and their
    prices z; and the present t.

    Weights are divided by the largest one of a sequence, the `unit`.
    """

    def __init__(
        self, weights: Array, rooms: Array, window: int, power: float, floor: Array | None, present: Present | None
    ) -> None:
        self.window, self.power, self.present = window, power, present
        self.active = weights > 0
        self.floor = np.zeros(weights.shape) if floor is None else floor
        held = window_sums(self.active.astype(np.float64), window, len(rooms)) > 0
        # A window in which nobody can spend binds nobody: give it room for its floors, and more.
        self.rooms = np.where(held, rooms, 1.0 + window_sums(self.floor, window, len(rooms)))
        self.floored = self.active & (self.floor > 0)
        largest = weights.max(axis=0, initial=0.0)
        if present is not None:
            largest = np.full_like(largest, max(float(largest.max()), present.weight))
        self.unit = np.where(largest > 0, largest, 1.0)
        # A weight so small that its share would vanish beside the largest counts as one with the smallest share kept.
        self.w = np.where(self.active, np.maximum(weights / self.unit, SMALLEST_SHARE ** (power + 1)), 0.0)
        # The futures are an average in truth; here they are a sum, and the present counts once for each.
        self.w_t = 0.0 if present is None else weights.shape[1] * present.weight / float(self.unit[0])
        self.touched = np.zeros(rooms.shape)  # the windows that hold the present step
        if present is not None:
            self.touched[: window - 1] = held[: window - 1]
        self._start()

    def _start(self) -> None:
        """Even division in proportion to w^(1/(p+1)), which would be optimal if all windows were alike."""
        n, count = len(self.w), len(self.rooms)
        share = self.w ** (1 / (self.power + 1))
        wanted = window_sums(share, self.window, count)
        free = self.rooms - window_sums(self.floor, self.window, count)
        self.t, self.s_t = 0.0, 1.0
        if self.present is not None:
            own = (self.w_t / self.w.shape[1]) ** (1 / (self.power + 1))
            level = (free / (wanted + own))[self.touched > 0].min(initial=self.present.room / own)
            self.t = START * own * float(level)
            self.s_t = self.present.room - self.t
            free = free - self.touched * self.t
        levels = np.divide(free, wanted, out=np.full_like(wanted, np.inf), where=wanted > 0)
        scarcest = np.where(self.active, smallest(levels, self.window, n), 0.0)
        self.v = np.where(self.active, START * share * scarcest, 1.0)
        self.x = np.where(self.active, self.floor + self.v, self.floor)
        self.s = self.rooms - window_sums(self.x, self.window, count) - self.touched * self.t
        # At the optimum the prices times the rooms sum to p times the error; a tenth of each room is slack now.
        mu = np.broadcast_to(0.1 * self.power * self.error() / self._pairs(), self.unit.shape)
        mu = np.where(mu > 0, mu, 1.0)
        # On the central path all windows share one μ: a step of little weight starts with what that price allows it.
        # Without this the method creeps along the boundary when weights differ by more than a few powers of ten.
        asked = self._bought(spread(mu / self.s, self.window, n))
        self.v = np.where(self.active, np.clip(asked - self.floor, 1e-9 * self.v, self.v), 1.0)
        self.x = np.where(self.active, self.floor + self.v, self.floor)
        self.s = self.rooms - window_sums(self.x, self.window, count) - self.touched * self.t
        self.prices = mu / self.s
        self.z = np.where(self.floored, mu / self.v, 0.0)
        self.price_t = 0.0 if self.present is None else float(mu[0]) / self.s_t
        self.y = np.where(self.active, self.power * self.w * self._safe() ** (-self.power - 1), 1.0)
        self.y_t = 0.0 if self.present is None else self.power * self.w_t * self.t ** (-self.power - 1)

    def solution(self, error: Array, bound: Array, iterations: int) -> Solution:
        """The iterate in the units of the caller."""
        unit = self.unit if self.present is None else self.unit[:1]
        return Solution(budgets=self.x, present=self.t, error=error * unit, bound=bound * unit, iterations=iterations)

    def _total(self, sequences: Array, present: float) -> Array:
        """Figures of the sequences; with a present step, one figure for all."""
        return sequences if self.present is None else np.array([float(sequences.sum()) + present])

    def _pairs(self) -> Array:
        """How many constraints share the complementarity."""
        return self._total(len(self.rooms) + self.floored.sum(axis=0, dtype=np.float64), 1.0)

    def _safe(self) -> Array:
        return np.where(self.active, self.x, 1.0)

    def _bought(self, cost: Array) -> Array:
        """The budgets that steps would buy at these costs."""
        value = np.divide(self.w, cost, out=np.ones_like(cost), where=self.active)
        return (self.power * value) ** (1 / (self.power + 1))

    def error(self) -> Array:
        """Σ w·x^(-p)."""
        own = 0.0 if self.present is None else self.w_t * self.t**-self.power
        return self._total((self.w * self._safe() ** -self.power).sum(axis=0), own)

    def complementarity(self) -> Array:
        """What keeps error and bound apart once the prices fit: slack times price, over all constraints."""
        both = (self.s * self.prices).sum(axis=0) + (self.v * self.z).sum(axis=0)
        return self._total(both, self.s_t * self.price_t)

    def bound(self) -> Array:
        """The dual value of the prices: what the best allocation costs when budget is bought instead of limited."""
        cost = spread(self.prices, self.window, len(self.w))
        best = np.maximum(self._bought(cost), self.floor)
        bought = np.where(self.active, self.w * best**-self.power + cost * best, cost * self.floor)
        own = 0.0
        if self.present is not None:
            cost_t = float((self.touched * self.prices).sum()) + self.price_t
            best_t = (self.power * self.w_t / cost_t) ** (1 / (self.power + 1))
            own = self.w_t * best_t**-self.power + cost_t * best_t - self.price_t * self.present.room
        return self._total(bought.sum(axis=0) - (self.prices * self.rooms).sum(axis=0), own)

    def improve(self, least: Array) -> None:
        """One step: see how far one could go straight to the boundary, then aim for a point that far along, centred."""
        newton = _Newton(self)
        pairs = self._pairs()
        aim = newton.direction(np.zeros(1), None)
        mu = np.maximum((1 - self._reach(aim)) ** 3 * self.complementarity(), least) / pairs
        step_to = newton.direction(mu, aim)
        step = np.minimum(1.0, TO_THE_BOUNDARY * self._reach(step_to))
        self.x = self.x + step * step_to.x
        self.v = np.where(self.active, self.v + step * step_to.x, 1.0)
        self.s = self.s + step * step_to.s
        self.prices = self.prices + step * step_to.prices
        self.z = self.z + step * step_to.z
        self.y = self.y + step * step_to.y
        if self.present is not None:
            self.t += float(step[0]) * step_to.t
            self.s_t -= float(step[0]) * step_to.t
            self.price_t += float(step[0]) * step_to.price_t
            self.y_t += float(step[0]) * step_to.y_t

    def _reach(self, d: _Direction) -> Array:
        """The longest step that keeps everything positive, as far as one needs to know; one for all with a present."""
        shrink = np.maximum((-d.s / self.s).max(axis=0), (-d.prices / self.prices).max(axis=0))
        shrink = np.maximum(shrink, np.maximum(-d.x / self.v, -d.y / self.y).max(axis=0))
        if self.floored.any():
            falls = np.divide(-d.z, self.z, out=np.zeros_like(d.z), where=self.floored)
            shrink = np.maximum(shrink, falls.max(axis=0))
        if self.present is not None:
            own = max(-d.t / self.t, d.t / self.s_t, -d.price_t / self.price_t, -d.y_t / self.y_t)
            shrink = np.maximum(shrink.max(keepdims=True), own)
        return 1.0 / np.maximum(shrink, TO_THE_BOUNDARY)


class _Newton:
    """Newton's matrix at an iterate, factorised once for both directions."""

    def __init__(self, at: _Iterate) -> None:
        self.at = at
        safe = at._safe()
        ratio = at.prices / at.s
        logs = np.log(np.where(at.active, at.power * at.w, 1.0) / at.y) - (at.power + 1) * np.log(safe)
        self.pull = np.where(at.active, at.y * (1 + logs), 0.0)  # what the steps would pay if budgets stayed
        self.stiffness = np.where(at.active, (at.power + 1) * at.y / safe, 0.0)
        curvature = self.stiffness + at.z / at.v
        self.factor = factorise(curvature, ratio, at.active, at.window)
        if at.present is not None:
            self.border = np.where(at.active, spread(ratio * at.touched, at.window, len(at.w)), 0.0)
            self.bordered = self.factor(self.border)
            self.pull_t = at.y_t * (1 + np.log(at.power * at.w_t / at.y_t) - (at.power + 1) * np.log(at.t))
            self.stiffness_t = (at.power + 1) * at.y_t / at.t
            corner = self.stiffness_t + at.price_t / at.s_t + float((ratio * at.touched).sum())
            self.corner = corner - float((self.border * self.bordered).sum())

    def direction(self, mu: Array, aim: _Direction | None) -> _Direction:
        """The step to slack times price equal to μ, with the second-order part taken from an earlier direction."""
        at = self.at
        product, product_z, product_t = mu, np.where(at.floored, mu, 0.0), float(mu[0])
        if aim is not None:
            product = mu - aim.s * aim.prices
            product_z = np.where(at.floored, mu - aim.x * aim.z, 0.0)
            product_t += aim.t * aim.price_t
        wanted = product / at.s
        dx = self.factor(np.where(at.active, self.pull - spread(wanted, at.window, len(at.w)) + product_z / at.v, 0.0))
        dt = 0.0
        if at.present is not None:
            right = self.pull_t - float((wanted * at.touched).sum()) - product_t / at.s_t
            dt = (right - float((self.border * dx).sum())) / self.corner
            dx = dx - self.bordered * dt
        ds = -window_sums(dx, at.window, len(at.rooms)) - at.touched * dt
        return _Direction(
            x=dx,
            s=ds,
            prices=wanted - at.prices * (1 + ds / at.s),
            z=np.where(at.floored, (product_z - at.z * dx) / at.v - at.z, 0.0),
            y=np.where(at.active, self.pull - self.stiffness * dx - at.y, 0.0),
            t=dt,
            price_t=(product_t + at.price_t * dt) / at.s_t - at.price_t,
            y_t=0.0 if at.present is None else self.pull_t - self.stiffness_t * dt - at.y_t,
        )
