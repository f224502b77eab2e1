"""Bugs planted on purpose, by subclasses alone: each is a mistake that was made somewhere, in a paper or a program."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanism import build
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.edges.edges import EdgeMechanism
from sfumato.mechanism.edges.graph_edges import GraphEdgeMechanism
from sfumato.mechanism.grids.family import Family
from sfumato.mechanism.grids.shifted import ShiftedCounts
from sfumato.noise import DiscreteLaplace

TESTS = Path(__file__).resolve().parent.parent
LINE = sf.Line(0, 1, cells=5)


def planned(mechanism, policy=None, epsilon=None):
    """A plan that promises ε under a policy and runs the mechanism given."""
    policy = mechanism.policy if policy is None else policy
    made = sf.plan(policy, sf.histogram(), epsilon or mechanism.epsilon, mechanism="edges")
    return replace(made, mechanism=mechanism)


def disguised(mechanism, kind, **more):
    """The same mechanism as an object of a class with a bug."""
    fields = {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}
    return kind(**fields | more)


def existing(path, name):
    """A test of this project, by its file and name."""
    file = TESTS / path
    module = sys.modules.get(file.stem)
    if module is None:
        sys.path.insert(0, str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
    return getattr(module, name)


def catches(test, *given, **named):
    """Whether a test fails, as it should with a bug planted."""
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(*given, **named)
    return True


# --- mechanisms with a bug --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NarrowLaplace(DiscreteLaplace):
    """Says one rate and draws at another: a scale 20 % too small."""

    def sample(self, size, source):
        return DiscreteLaplace(self.rate * Fraction(5, 4)).sample(size, source)


class NarrowNoise(VertexMechanism):
    def noises(self, total):
        return [(NarrowLaplace(law.rate), size) for law, size in super().noises(total)]


class NarrowConsistent(type(build("consistent", sf.threshold(LINE, 1), Fraction(1)))):
    """The edge values of a tree with too little noise: it is not seen in what the class says about itself."""

    def run(self, counts, total, source):
        noise = DiscreteLaplace(self.noise.rate * Fraction(5, 4)).sample(len(self.edges.order), source)
        return self.estimate(self.values(counts) + noise, total)


class CycleValues(GraphEdgeMechanism):
    """The noisy values of a cycle's edges, by a fixed rule for choosing them: all along the path, none on the chord."""

    def values(self, counts):
        return np.append(np.cumsum(counts)[:-1], 0)

    def disturbance(self, noise):
        (eta,) = noise
        return eta


class TwiceTheNoise(VertexMechanism):
    """Noise times two: the parity of every value shows."""

    def disturbance(self, noise):
        return 2 * super().disturbance(noise)


class NearlyUnbiased(EdgeMechanism):
    """Edge values averaged with weights 21845/65536 over a whole level of three: unbiased but for a rounding."""

    @property
    def model(self):
        return build("edges", self.policy, self.epsilon).model

    def values(self, counts):
        return counts[None] * 65536

    def disturbance(self, noise):
        return (super().disturbance(noise) * 21845) * 3


class OnlyOccupied(VertexMechanism):
    """A histogram that leaves empty cells empty, as GROUP BY does."""

    def run(self, counts, total, source):
        noisy = super().run(counts, total, source)
        return np.where(counts > 0, noisy, 0.0)


class FloatNoise(VertexMechanism):
    """Textbook Laplace noise in double precision."""

    def run(self, counts, total, source):
        uniform = source.words(len(counts)) / 2.0**64
        rate = float(self.model.blocks[0].noise.rate)
        sign = np.where(source.words(len(counts)) >> np.uint64(63), 1.0, -1.0)
        return counts + sign * -np.log1p(-uniform) / rate


class CeilFamily(ShiftedCounts):
    """As many shifts as printed, at multiples of the step, and the sensitivity that was claimed for them."""

    @property
    def sensitivity(self):
        return 2 * min(self.family.shifts, self.policy.domain.ndim)


@dataclass(frozen=True)
class PrintedShifts(Family):
    step: int = 1

    @property
    def grids(self):
        return tuple(
            tuple(
                np.unique(np.concatenate([[0], np.arange(j * self.step, n, w), [n]]))
                for n, w in zip(self.shape, self.width, strict=True)
            )
            for j in range(self.shifts)
        )


class FamilyWithSources(ShiftedCounts):
    """A family that believes moves are all there is."""

    @property
    def sensitivity(self):
        return 2
