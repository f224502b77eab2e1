"""Trees over factors with levels: sensitivities against every edge, errors against what is written out, options."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.mechanism import build, mechanism_from_spec, variants
from sfumato.mechanism.cells.packed import packed, unpacked


def codes(n, rng, depth=2, name="category"):
    """Labels with nested levels, drawn at random; the last one stands for elsewhere, and is alone on every level."""
    levels = {f"level{k}": [*rng.choice(list("abc"), n - 1).tolist(), "elsewhere"] for k in range(depth)}
    return sf.Categories([f"c{i}" for i in range(n)], name=name, levels=levels)


def some_policy(domain, rng, kind):
    """A connected policy: moves along random edges, with or without ⊥ at some cells or all, or a named one."""
    n = domain.size
    if kind in (0, 1):
        return [sf.bounded, sf.unbounded][kind](domain)
    tree = [(int(rng.integers(0, i)), i) for i in range(1, n)]
    more = [(int(u), int(v)) for u, v in rng.integers(0, n, (n // 2, 2)) if u != v]
    absent = [(int(cell), sf.ABSENT) for cell in range(n) if kind == 4 or (kind == 3 and rng.random() < 0.3)]
    return sf.graph(domain, tree + more + absent)


def trees(policy, workload):
    """What a plan tries of them."""
    for name, options in variants(policy, workload):
        if name == "tree":
            try:
                yield build(name, policy, Fraction(1), **options)
            except sf.TooLarge:
                continue


def changes(policy, matrix):
    """How far every edge moves the values of a matrix."""
    for u, v in policy.edges():
        yield np.abs(matrix[:, u] - (matrix[:, v] if v >= 0 else 0)).sum()


# --- by hand ----------------------------------------------------------------------------------------------------------


def halves():
    """Four cells on a path, two in each half: the border between the halves is crossed at cells 1 and 2 alone."""
    domain = sf.Categories(list("abcd"), levels={"half": list("LLRR")})
    return sf.graph(domain, [(0, 1), (1, 2), (2, 3)])


def test_what_lies_inside_is_measured_twice_as_well_by_hand():
    """Both halves and cells 1, 2 have class 0 and weight 1 of 2 levels; cells 0, 3 cross cells alone and weigh 2."""
    by_class = next(m for m in trees(halves(), sf.levels()) if "classes" in m.options["along"][0])
    assert by_class.options["along"][0]["weights"] == [[1], [1, 2]]
    assert by_class.strategy.dense().tolist() == [
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [2, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 2],
    ]
    assert by_class.sensitivity == 4  # across the border 1 + 1 + 1 + 1; inside a half 2 + 1
    assert by_class.describe() == "tree, category by half/cells, weights 1/1-2; noise of scale 4"


def test_every_level_costs_the_same_under_add_remove():
    tree = build("tree", sf.unbounded(halves().domain), Fraction(1))
    assert tree.options == {"along": [{"levels": ["", "half"], "weights": [[1], [1], [1]]}]}
    assert tree.sensitivity == 3  # the whole, a half and a cell
    assert build("tree", sf.bounded(halves().domain), Fraction(1)).sensitivity == 4


# --- oracle -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14), kind=st.integers(0, 4), depth=st.integers(1, 3))
def test_sensitivities_are_those_of_every_edge(seed, n, kind, depth):
    rng = np.random.default_rng(seed)
    domain = codes(n, rng, depth)
    policy = some_policy(domain, rng, kind)
    found = 0
    for workload in (sf.levels(), sf.levels("level0"), sf.histogram()):
        for tree in trees(policy, workload):
            found += 1
            assert tree.sensitivity == max(changes(policy, tree.strategy.dense()))
            assert tree.privacy_loss <= 1
            entry = tree.options["along"][0]
            if "classes" in entry and kind == 2:  # what the classes are for: no border costs more than the finest
                assert tree.sensitivity <= 2 * entry["weights"][-1][-1]
    assert found > 0


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), hours=st.integers(1, 4), which=st.integers(0, 4))
def test_sensitivities_in_products_are_those_of_every_edge(seed, n, hours, which):
    rng = np.random.default_rng(seed)
    space = sf.Line(0, hours, cells=hours, name="t") * codes(n, rng, name="place")
    hide = [
        sf.change("place"),
        sf.change("place") | sf.move(1.5, of="t"),
        sf.change("place") & sf.move(1.5, of="t"),
        sf.anything() | sf.presence(),
        sf.presence(),
    ][which]
    policy = sf.policy(space, hide=hide, public=["t"] if which == 0 and hours > 1 else [])
    asked = sf.ask(place=sf.levels(), t=sf.histogram()) + sf.ask(t=sf.ranges(), place=sf.levels("level1"))
    for tree in trees(policy, asked):
        assert tree.sensitivity == max(changes(policy, tree.strategy.dense()))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14), kind=st.integers(0, 4))
def test_expected_errors_are_those_of_every_query_written_out(seed, n, kind):
    rng = np.random.default_rng(seed)
    domain = codes(n, rng)
    policy = some_policy(domain, rng, kind)
    levels = [np.zeros(n, dtype=int), *(level.of for level in domain.axes[0].coarser), np.arange(n)]
    queries = [(of == np.arange(of.max() + 1)[:, None]).astype(float) for of in levels]
    for name in ("identity", "edges", "tree"):
        try:
            mechanism = build(name, policy, Fraction(1))
        except sf.InvalidInput:
            continue  # where nothing can be moved
        each = [mechanism.model.query_cumulants(rows)[0].mean() for rows in queries]
        assert mechanism.model.expected_error(sf.levels(), domain) == pytest.approx(np.mean(each), rel=1e-6, abs=1e-9)
        one = mechanism.model.expected_error(sf.levels("level1"), domain)
        assert one == pytest.approx(each[2], rel=1e-6, abs=1e-9)


def test_estimates_add_up_on_every_level():
    rng = np.random.default_rng(1)
    domain = codes(12, rng)
    policy = some_policy(domain, rng, 2)
    release = sf.plan(policy, sf.levels(), epsilon=1, mechanism="tree").publish(rng.integers(0, 50, 12))
    assert release.total == release.counts.sum()


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_sums_over_parts_of_the_cells_are_measured_themselves(kind):
    """Rows that share no cell: their groups become a level, and cells of no row are one more group."""
    rng = np.random.default_rng(kind)
    domain = sf.Categories([f"c{i}" for i in range(12)])
    policy = some_policy(domain, rng, kind)
    of = np.array([0, 1, 2, 3] * 3)
    matrix = (of == np.arange(3)[:, None]).astype(int)
    tree = next(trees(policy, sf.queries(matrix)))
    assert tree.sensitivity == max(changes(policy, tree.strategy.dense()))
    assert np.array_equal(tree.factors[0].of[0], of)
    error = tree.model.query_cumulants(matrix.astype(float))[0].mean()
    assert tree.model.expected_error(sf.queries(matrix), domain) == pytest.approx(error)
    again = mechanism_from_spec(tree.spec(), policy)
    assert np.array_equal(again.strategy.dense(), tree.strategy.dense())


def test_a_plan_for_districts_costs_as_much_as_if_districts_were_the_cells():
    """Four noisy sums of four places each, whatever number of cells they have: 2·(2/ε)², and a little for the cells."""
    domain, edges = lattice(16, (), 1)
    x, y = np.divmod(np.arange(256), 16)
    of = x // 8 * 2 + y // 8
    districts = sf.queries((of == np.arange(4)[:, None]).astype(int))
    plan = sf.plan(sf.graph(domain, edges), districts, epsilon=1)
    assert plan.mechanism.name == "tree"
    assert plan.expected_error < 8
    assert sf.plan(sf.graph(domain, edges), districts, epsilon=1, mechanism="edges").expected_error > 40


@pytest.mark.parametrize(
    "matrix",
    [[[1, 1, 0], [0, 1, 1]], [[2, 0, 0], [0, 1, 1]], [[1, -1, 0], [0, 0, 1]]],
    ids=["shared", "twice", "signs"],
)
def test_rows_that_share_cells_or_weigh_them_are_no_parts(matrix):
    assert sf.queries(matrix).partition(sf.Line(0, 3, cells=3)) is None
    assert sf.histogram().partition(sf.Line(0, 3, cells=3)) is None


# --- plans ------------------------------------------------------------------------------------------------------------


def lattice(side, blocks, reach):
    """(domain, edges): a square of cells, nested blocks of them as levels, moves of at most `reach` along each axis."""
    x, y = np.divmod(np.arange(side * side), side)
    levels = {f"by {b}": (x // b * side + y // b).astype(str).tolist() for b in blocks}
    near = (np.abs(x[:, None] - x) <= reach) & (np.abs(y[:, None] - y) <= reach)
    return sf.Categories([f"{i}" for i in range(side * side)], levels=levels), np.argwhere(np.triu(near, 1))


def test_a_plan_takes_the_tree_for_levels_and_says_so():
    """Moves of two cells on 24 × 24 cells in blocks of 8 × 8: a third of the cells lie inside a block."""
    domain, edges = lattice(24, (8,), 2)
    plan = sf.plan(sf.graph(domain, edges), sf.levels(), epsilon=1)
    assert plan.mechanism.name == "tree"
    assert "classes" in plan.mechanism.options["along"][0]


def test_a_release_of_a_tree_is_read_again(tmp_path):
    plan = sf.plan(halves(), sf.levels(), epsilon=1, mechanism="tree")
    release = plan.publish(np.array([5, 0, 7, 3]))
    again = sf.load(release.save(tmp_path / "halves.sfumato"))
    assert np.array_equal(again.counts, release.counts)
    assert again.mechanism.spec() == release.mechanism.spec()
    assert again.domain == release.domain


def test_every_setting_is_built_again_from_its_description():
    for workload in (sf.levels(), sf.levels("half")):
        for tree in trees(halves(), workload):
            again = mechanism_from_spec(tree.spec(), halves())
            assert np.array_equal(again.strategy.dense(), tree.strategy.dense())


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_factor_without_levels_has_no_tree():
    with pytest.raises(sf.InvalidInput) as refusal:
        build("tree", sf.bounded(sf.Categories(["a", "b"])), Fraction(1))
    assert str(refusal.value) == (
        "mechanism='tree' is for factors with named levels, such as sf.Regions(…, levels=['state', 'county']); use "
        "mechanism='hierarchy'"
    )


@pytest.mark.parametrize(
    ("along", "message"),
    [
        ("x", "along='x' must be a list with an entry for each of 1 axes."),
        ([1], "along has 1 for axis 'category'; give levels or blocks, and weights."),
        ([{"levels": ["half"]}], "along for axis 'category' must have levels or blocks, and weights."),
        (
            [{"levels": ["half"], "weights": [1]}],
            "along for axis 'category': weights are for 1 levels, and with the cells there are 2.",
        ),
        (
            [{"levels": ["half"], "weights": [[1], [1, 2]]}],
            "along for axis 'category': several weights a level are for classes. Give one each.",
        ),
        (
            [{"levels": ["half"], "weights": [[1], [1]], "classes": ""}],
            "along for axis 'category': with classes level ℓ has the weights of classes 0 to ℓ.",
        ),
        (
            [{"levels": ["half"], "weights": [[1], [1, 2]], "classes": "☃"}],
            "classes is damaged: it must be what this mechanism wrote.",
        ),
        (
            [{"levels": ["half"], "weights": [[1], [1, 2]], "classes": packed(np.zeros(3))}],
            "classes is damaged: it must hold a number for each of 4 cells.",
        ),
        (
            [{"levels": ["quarter"], "weights": [1, 1]}],
            "'quarter' is no level of 'category', whose levels are: 'half'. Nothing was computed.",
        ),
        (
            [{"levels": ["groups"], "weights": [1, 1], "groups": packed(np.array([0, 0, 0, 1 << 31]))}],
            "groups is damaged: there are no more groups than cells.",
        ),
        ([{"levels": ["half"], "weights": [1.5, 1]}], "1.5 in along is no whole number."),
    ],
)
def test_options_that_are_no_tree_are_refused(along, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build("tree", halves(), Fraction(1), along=along)
    assert str(refusal.value) == message


def test_packed_numbers_come_back_and_swell_to_no_more_than_they_should():
    numbers = np.random.default_rng(0).integers(0, 1 << 32, 1000)
    assert np.array_equal(unpacked(packed(numbers), 1000, "classes"), numbers)
    with pytest.raises(sf.InvalidInput):
        unpacked(packed(np.zeros(10_000_000)), 4, "classes")
