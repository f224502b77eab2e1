"""Other people's mechanisms: any function is run, whatever it returns; linear ones are audited from paper.

Bounds are wrong with a probability of at most 10⁻⁶ (the confidence), whatever the function. Numbers of runs are fixed,
and not seconds: `LONG` is more time than any of them takes.
"""

from __future__ import annotations

import importlib.metadata
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from peers import published_dawa_partition

import sfumato as sf

LONG = 100_000.0
TWO = sf.Line(0, 2, cells=2)
COUNTS = sf.unbounded(TWO)


def found(function, epsilon=1, *, policy=COUNTS, samples=12_000, **given):
    return sf.audit(function, epsilon=epsilon, policy=policy, samples=samples, seconds=LONG, seed=3, **given)


def discrete_laplace(scale, seed=5):
    """Whole noise: the difference of two geometric numbers."""
    chance = random.Random(seed)

    def geometric():
        return int(chance.expovariate(1 / scale))

    return lambda counts: [c + geometric() - geometric() for c in counts.tolist()]


# ---------------------------------------------------------------- any function, any output


def test_a_function_that_keeps_its_promise_passes_and_the_bound_is_near():
    audit = found(discrete_laplace(1), samples=6_000)
    assert audit.passed and audit.method == "statistical"
    assert 0.6 <= audit.epsilon <= 1
    assert audit.subject.endswith("<lambda>")


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.75, 0.5])
def test_noise_that_is_too_small_is_caught_and_the_witness_shows_where(scale):
    audit = found(discrete_laplace(scale), samples=16_000)
    assert not audit.passed
    assert 1 < audit.epsilon <= 1 / scale
    assert audit.witness.edge is not None and len(audit.witness.databases[0]) == 2
    with pytest.raises(sf.AuditFailed, match="BREAKS its promise"):
        audit.require()


def test_noise_in_floating_point_is_caught_whatever_its_scale():
    """Exact on paper; the last binary digits of the sum show what it was added to (Mironov, CCS 2012)."""
    chance = random.Random(5)
    audit = found(lambda counts: float(counts[0]) + chance.expovariate(1) - chance.expovariate(1), samples=3_000)
    assert audit.epsilon > 1.5
    assert "the last digit of part 1" in audit.witness.event or "classifier" in audit.witness.event


def respond(keep, names, seed=7):
    """Randomised response between two names, true with the probability `keep`."""
    chance = random.Random(seed)

    def answered(data):
        truth = int(data[0] > 0)
        return names[truth if chance.random() < keep else 1 - truth]

    return answered


NAMED = {
    "text": ("yes", "no"),
    "bytes": (b"y", b"n"),
    "numbers": (3.5, -7),
    "tuples": ((0, 1, "a"), (0, 1, "b")),
    "mappings": ({"a": [1]}, {"a": [2]}),
    "lengths": ([0], [0, 0]),
    "none": (None, ()),
    "arrays": (np.zeros(3), np.zeros((3, 1))),
    "sets": ({1, 2}, {1, 3}),
    "types": (1, True),
}


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
def test_outputs_of_every_type_are_told_apart(names):
    honest, broken = math.e / (1 + math.e), 0.9  # losses of 1 and of log 9 = 2.2
    pairs = [([0], [1])]
    assert found(respond(honest, names), policy=None, inputs=pairs, samples=1_000).passed
    audit = found(respond(broken, names), policy=None, inputs=pairs, samples=1_000)
    assert 1.2 < audit.epsilon <= math.log(9)


def test_among_many_names_what_tells_is_learned():
    """Forty words, of which a random half is likelier on one side: no threshold on one of them shows it."""
    chance = random.Random(11)
    words = [f"word {i}" for i in range(40)]
    chance.shuffle(words)
    likely, rare = words[:20], words[20:]

    def speaks(data):
        side = data == "first"
        return chance.choice(likely if (chance.random() < 0.9) == side else rare)

    audit = found(speaks, policy=None, inputs=[("first", "second")], samples=4_000)
    assert 1.5 < audit.epsilon <= math.log(9)


def test_exceptions_are_outputs():
    chance = random.Random(13)

    def fails(data):
        if chance.random() < (0.9 if data[0] else 0.1):
            raise ValueError("no")
        return 0

    assert found(fails, policy=None, inputs=[([0], [1])], samples=4_000).epsilon > 1.5


def test_noise_that_is_seeded_alike_tells_everything():
    audit = found(lambda counts: counts + np.random.default_rng(1).laplace(size=2), samples=1_500)
    assert audit.epsilon > 3  # as much as so many runs can prove


def test_a_state_that_drifts_tells_no_side():
    """Outputs that count the calls are the same on both sides: the runs are mixed by a coin."""
    calls = iter(range(10**9))
    chance = random.Random(17)
    assert found(lambda counts: (next(calls), chance.random()), samples=3_000).passed


def test_the_function_may_do_what_it_likes_with_its_counts():
    chance = random.Random(19)

    def careless(counts):
        counts += 5
        counts[0] = 0
        return chance.random()

    assert found(careless, samples=1_000).epsilon < 0.5


def test_the_pair_that_shows_it_is_found_among_those_given():
    chance = random.Random(23)

    def leaks_of_three(rows):
        return sum(rows) + (1000 if rows == [3] else 0) + chance.random() * 200

    audit = found(leaks_of_three, policy=None, inputs=[([0], [1]), ([2], [1]), ([3], [2]), ([5], [4])], samples=2_000)
    assert audit.epsilon > 3
    assert audit.witness.event.startswith("inputs[2]; guessing")


def test_several_changes_at_once():
    honest = found(discrete_laplace(1), records=2, samples=6_000)
    assert not honest.passed and 1 < honest.epsilon <= 2


def test_counts_to_start_from_can_be_given():
    seen = set()

    def notes(counts):
        seen.add(tuple(counts.tolist()))
        return 0

    found(notes, inputs=[[7, 9]], samples=100)
    assert seen <= {(7, 9), (8, 9), (7, 10)} and len(seen) > 1


def raises(data):
    raise TypeError("needs more")


@pytest.mark.parametrize(
    "function, given, why",
    [
        (len, {"policy": None}, "inputs has 0 entries, and must have 1 to 256"),
        (len, {"policy": None, "inputs": [1]}, "without a policy it must be pairs of neighbours"),
        (len, {"inputs": [[1, -1]]}, "inputs must be made-up or public whole numbers of at least 0"),
        (len, {"policy": "all"}, "policy=str is not a policy"),
        (len, {"epsilon": 0}, "epsilon=0 must be greater than zero"),
        (len, {"epsilon": None}, "epsilon is missing: what is promised"),
        (raises, {}, "raised TypeError on every input: 'needs more'. Nothing was concluded"),
        (len, {"policy": sf.unbounded(sf.Line(0, 1, cells=5000))}, "an audit takes at most 4,096 cells"),
        (len, {"strategy": [[1, 1]], "scales": 1}, "strategy stands alone"),
    ],
)
def test_what_cannot_be_run_is_refused(function, given, why):
    with pytest.raises((sf.InvalidInput, sf.TooLarge), match=why):
        found(function, **{"epsilon": 1, **given})


def test_plans_say_themselves_what_they_promise():
    plan = sf.plan(COUNTS, sf.histogram(), epsilon=1)
    with pytest.raises(sf.InvalidInput, match="are for functions and strategies; a plan or a mechanism says itself"):
        sf.audit(plan, epsilon=1)


# ---------------------------------------------------------------- from paper


def exact(strategy, policy, epsilon=1, **given):
    return sf.audit(strategy=strategy, policy=policy, epsilon=epsilon, **given)


def test_by_hand():
    line = sf.Line(0, 3, cells=3)
    prefixes = np.tril(np.ones((3, 3)))
    audit = exact(prefixes, sf.unbounded(line), scales=3)
    assert (audit.epsilon, audit.method, audit.passed, audit.complete) == (Fraction(1), "exact", True, True)
    assert audit.witness.edge == (0, -1)  # a record in the first cell is in all three rows
    assert exact(prefixes, sf.threshold(line, theta=1), scales="1/2").epsilon == 2
    assert exact(prefixes, sf.bounded(line), scales=[1, 2, 4]).epsilon == Fraction(3, 2)  # rows 1 and 2 move
    assert exact([[0.1, 0.3, 0]], sf.bounded(line), scales=1).epsilon == Fraction(3, 10)  # as typed, in tenths


@pytest.mark.parametrize("seed", range(8))
def test_the_same_as_every_edge_by_itself(seed):
    rng = np.random.default_rng(seed)
    line = sf.Line(0, 5, cells=5)
    edges = [(0, 1), (1, 3), (2, 4), (4, sf.ABSENT), (3, 4)]
    policy = sf.graph(line, edges, publish_component_totals=True)
    strategy, scales = rng.integers(-3, 4, (4, 5)), rng.integers(1, 5, 4)
    padded = np.hstack([strategy, np.zeros((4, 1), dtype=int)])
    worst = max(
        sum(Fraction(abs(int(d)), int(b)) for d, b in zip(padded[:, u] - padded[:, v], scales, strict=True))
        for u, v in policy.edges()
    )
    for noise in ("laplace", "discrete-laplace"):
        assert exact(strategy, policy, scales=scales.tolist(), noise=noise).epsilon == worst


def test_rows_without_noise_and_fractions_under_whole_noise_tell_everything():
    policy = sf.bounded(TWO)
    assert exact([[1, 0], [1, 1]], policy, scales=[1, 0]).epsilon == 1  # the total, which nothing moves, needs no noise
    bare = exact([[1, 0], [1, 1]], policy, scales=[0, 1])
    assert math.isinf(bare.epsilon) and bare.witness.event == "a row without noise moves"
    fraction = exact([[0.5, 0]], policy, scales=9, noise="discrete-laplace")
    assert math.isinf(fraction.epsilon) and "the fraction shows" in fraction.witness.event
    assert exact([[0.5, 0]], policy, scales=9).epsilon == Fraction(1, 18)


def test_mixed_noise_leaks_what_it_cannot_make_up_for():
    policy = sf.bounded(TWO)
    twice = exact(np.eye(2), policy, scales=1, noise="discrete-laplace", mixing=2 * np.eye(2))
    assert math.isinf(twice.epsilon)  # x + 2η shows the parity of x
    edge = exact(np.eye(2), policy, scales=2, noise="discrete-laplace", mixing=[[1], [-1]])
    assert (edge.epsilon, edge.method) == (Fraction(1, 2), "exact")  # one noise on one edge
    assert math.isinf(exact(np.eye(2), COUNTS, scales=2, noise="discrete-laplace", mixing=[[1], [-1]]).epsilon)


def test_a_stranger_s_hierarchy_whose_root_was_forgotten_in_the_sensitivity():
    """Counts of two halves and of all, with noise for two changes of three: 3/2 for 1, unaided."""
    audit = exact([[1, 0], [0, 1], [1, 1]], COUNTS, scales="4/3")
    assert audit.epsilon == Fraction(3, 2) and not audit.passed


@pytest.mark.parametrize(
    "given, why",
    [
        ({"noise": "gaussian"}, "Gaussian noise keeps no finite ε"),
        ({"noise": "uniform"}, "noise='uniform' is not one of 'laplace', 'discrete-laplace'"),
        ({"strategy": [[1, 2, 3]]}, "strategy has 3 columns, and the policy's domain 2 cells"),
        ({"strategy": [["a"]]}, "strategy is no matrix of numbers"),
        ({"strategy": [[1, math.nan]]}, "strategy must be a matrix of finite numbers"),
        ({"scales": [1, 2]}, "scales has 2 entries for 1 values of noise"),
        ({"scales": -1}, "scales must be at least zero"),
        ({"mixing": [[1]]}, "for discrete-laplace noise"),
    ],
)
def test_what_is_no_mechanism_on_paper_is_refused(given, why):
    with pytest.raises(sf.InvalidInput, match=why):
        exact(**{"strategy": [[1, 0]], "policy": COUNTS, "scales": 1, **given})


# ---------------------------------------------------------------- the defects of others, found unaided


def dawa_partition(seed):
    chance = random.Random(seed)
    return lambda counts: published_dawa_partition(counts, 2, 0.5, chance)  # ε₁ = 1


@pytest.mark.slow
def test_the_published_partition_of_dawa_is_not_private_at_its_budget():
    """On three cells, with ε₁ = 1: log-ratios of up to 12/7 by derivation, for a promise of 1.

    20,000 runs on either neighbour, of which 9,000 on either are counted.
    """
    policy = sf.unbounded(sf.Line(0, 3, cells=3))
    audit = found(dawa_partition(29), policy=policy, samples=20_000)
    assert 1 < audit.epsilon <= 12 / 7
    assert "guessing" in audit.witness.event


def peer(name, wanted):
    """A package of others in a version that has the defect; skipped, with the reason, where it is not installed."""
    module = pytest.importorskip(name, reason=f"{name} is not installed")
    version = importlib.metadata.version(name)
    if not wanted(tuple(int(part) for part in version.split(".")[:2])):
        pytest.skip(f"{name} {version} is not a version with this defect")
    return module


ONE = sf.unbounded(sf.Line(0, 1, cells=1))


def test_floating_point_laplace_of_diffprivlib():
    """Its Laplace mechanism, said to be safe by four uniforms a value: the last digits show what was added to."""
    peer("diffprivlib", lambda version: version <= (0, 6))
    from diffprivlib.mechanisms import Laplace

    mechanism = Laplace(epsilon=1, sensitivity=1)
    assert not found(lambda counts: mechanism.randomise(float(counts[0])), policy=ONE, samples=4_000).passed


def test_floating_point_laplace_of_early_opendp():
    """`make_base_laplace` before 0.5 drew doubles; since then noise is drawn on a grid."""
    peer("opendp", lambda version: version < (0, 5))
    from opendp.meas import make_base_laplace
    from opendp.mod import enable_features

    enable_features("contrib", "floating-point")
    mechanism = make_base_laplace(scale=1.0)
    assert not found(lambda counts: mechanism(float(counts[0])), policy=ONE, samples=4_000).passed
