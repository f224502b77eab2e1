"""A relation is one line of text that reads back as itself; what is no relation is refused where it stands."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.relations import CHANGES, Change, Length, Move, Relation, Term

NAMES = st.text(min_size=1, max_size=12).filter(str.strip)
AMOUNTS = st.fractions(min_value=0, max_value=10**30).filter(bool) | st.sampled_from(
    [Fraction(1, 3 * 10**20), Fraction(10**24 + 1), Fraction(1, 10**9), Fraction(86_400), Fraction(7, 2)]
)
POINTS = st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2)
SOURCES = st.none() | st.just("boundary") | st.lists(POINTS, max_size=3) | st.lists(st.lists(POINTS), max_size=2)


@st.composite
def moves(draw: st.DrawFn) -> Relation:
    unit = draw(st.sampled_from(["m", "s", "own"]))
    metric = draw(st.sampled_from(["great-circle", "geodesic"] if unit == "m" else ["euclidean", "chebyshev"]))
    sources = None if unit == "s" else draw(SOURCES)
    of = draw(st.none() | NAMES)
    return Relation((Term(CHANGES, (Move(of=of, delta=Length(draw(AMOUNTS), unit), metric=metric, sources=sources),)),))


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    found = draw(st.sampled_from([sf.anything(), sf.presence()]) | moves() | st.builds(sf.change, NAMES))
    for _ in range(draw(st.integers(0, 3))):
        rules = {rule.of: rule for rule in draw(st.lists(st.builds(lambda n: Change(of=n), NAMES), max_size=3))}
        other = Relation((Term(CHANGES).with_rules(rules.values()),)) if rules else draw(moves())
        found = found | other
    return found


@pytest.mark.slow  # relations of any depth
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(relations())
def test_every_relation_survives_its_text(relation: Relation) -> None:
    text = relation.to_text()
    assert text.isprintable()
    assert sf.relation_from_text(text) == relation
    assert sf.relation_from_text(f"  {text} ").to_text() == text


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (sf.move("0.5 km"), 'move("500 m")'),
        (sf.move(0.005), "move(0.005)"),
        (sf.move("1/3"), 'move("1/3")'),
        (sf.move("5 min", of="t"), 'move("5 min", of="t")'),
        (sf.move(2, metric="manhattan", sources=[(0, 0), (1.5, -1)]),
         'move(2, metric="manhattan", sources=[[0, 0], [1.5, -1]])'),
        (sf.move(5, metric="great-circle", sources="boundary"),
         'move("5 m", metric="great-circle", sources="boundary")'),
        (sf.presence() | sf.anything(), "anything() | presence()"),
        (sf.move("1 h", of="t") & sf.change("mode"), 'change("mode") & move("1 h", of="t")'),
        ((sf.move("1 h", of="t") & sf.change("mode")) | sf.presence(),
         'presence() | (change("mode") & move("1 h", of="t"))'),
    ],
)  # fmt: skip
def test_it_reads_as_one_writes_it(relation: Relation, text: str) -> None:
    assert relation.to_text() == text


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("move('500 m')|change('mode')", sf.move("500 m") | sf.change("mode")),
        ("sf.move(delta=5e-3, of='place',) & sf.change(name='mode')", sf.move(0.005, of="place") & sf.change("mode")),
        ("(presence())\n  | anything()", sf.presence() | sf.anything()),
        (
            "move(1, of='a') & (move(2, of='b') | change('c'))",
            sf.move(1, of="a") & (sf.move(2, of="b") | sf.change("c")),
        ),
        ("move(1, sources=((0, 0), (+1.5, .5)))", sf.move(1, sources=[(0, 0), (1.5, 0.5)])),
        ("change('A') | change('B') & change('C')", sf.change("A") | (sf.change("B") & sf.change("C"))),
    ],
)
def test_what_people_write_is_read(text: str, relation: Relation) -> None:
    assert sf.relation_from_text(text) == relation


REFUSED = [
    ("", "at character 1: the text ends where move, change, adjacent, anything, presence or '(' is expected"),
    ("mvoe(5)", "at character 1: 'mvoe' is none of move, change, adjacent, anything, presence. Did you mean 'move'?"),
    ("move(5", "at character 7: the text ends where ',' is expected"),
    ("move()", "at character 1: move(…) needs its delta."),
    ("move(5) change('x')", "at character 9: 'change' stands where '|', '&' or the end is expected"),
    (
        "move(5, off='t')",
        "at character 9: move(…) takes delta, of=…, metric=…, sources=…, keep=…, along=….  Did you mean 'of'?",
    ),
    ("move(5, 6)", "at character 9: move(…) takes delta"),
    ("move(5, of='t', of='u')", "at character 17: of is given twice."),
    ("presence(1)", "at character 10: presence(…) takes nothing."),
    (
        "change(mode)",
        "at character 8: 'mode' is none of move, change, adjacent, anything, presence. Did you mean 'move'? Text",
    ),
    ("move(5 m)", "at character 8: 'm' stands where ',' is expected"),
    ("move('5 yards')", "at character 1: delta='5 yards' is no length"),
    ("move([5])", "is not a finite number"),
    ("change(5)", "at character 1: name="),
    ("move(5) + move(6)", "at character 9: '+' stands where '|', '&' or the end is expected"),
    ("move(5, sources=x())", "at character 17: 'x' is none of move"),
    ("move(1) & move(2)", "at character 9: 'place' would change by two rules at once"),
    ("presence() & change('x')", "at character 12: presence at once with another change means nothing"),
    ("change('\\U99999999')", "at character 8: this text has an escape that stands for no character."),
    ("change('a\\qb')", "at character 8: "),
    ("__import__('os').system('x')", "'__import__' is none of move"),
    ("(" * 40 + "anything()" + ")" * 40, "more than 32 deep"),
    ("move(1, sources=" + "[" * 100_000, "more than 32 deep"),
    (" | ".join(f"change('{i}')" for i in range(65)), "at most 64 terms"),
    (" & ".join(f"(change('a{i}') | change('b{i}'))" for i in range(40)), "at most 64 terms"),
    ("move(1, sources=[[" + "9" * 400 + ", 1]])", "sources must be None"),
    ("move(1, sources=[[1e400, 1]])", "of finite numbers"),
    ("5", "5 stands where a relation is expected"),
    ("move(presence())", "is not a finite number"),
    ("move(5) ; 6", "at character 9: '; 6' cannot be read."),
    ("move(1e99999999)", "more than 8192 bits"),
    (" " * (1 << 20) + "x", "is too long"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_says_where(text: str, words: str) -> None:
    with pytest.raises(sf.InvalidInput) as refused:
        sf.relation_from_text(text)
    assert words.replace(".  Did", ". Did") in str(refused.value)
    assert len(str(refused.value)) < 500


def test_only_text_is_read() -> None:
    with pytest.raises(sf.InvalidInput, match="is read from text"):
        sf.relation_from_text(sf.anything())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        " & ".join(f'change("a{i}")' for i in range(65)),
        " | ".join(f"move({i})" for i in range(1, 66)),
        " | ".join(["presence()"] * 5000),
    ],
    ids=["at once", "of many kinds", "again and again"],
)
def test_more_than_anybody_hides_is_refused(text: str) -> None:
    with pytest.raises(sf.InvalidInput, match=r"at most|are more than are read"):
        sf.relation_from_text(text)


def test_as_much_as_a_file_may_hold_is_read_from_text() -> None:
    hide = sf.relation_from_text(" & ".join(f'change("a{i}")' for i in range(64)))
    assert len(hide.rules) == 64
    assert sf.relation_from_text(hide.to_text()) == hide
