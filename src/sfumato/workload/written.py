"""Workloads as one line of text, for a command line or a file: `ask(place=ranges(), mode=histogram())`."""

from __future__ import annotations

from typing import Any

from sfumato.calls import Call, Grammar
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.workload.ask import ask
from sfumato.workload.scales import levels, scales
from sfumato.workload.simple import histogram, prefixes, ranges
from sfumato.workload.tables import marginals
from sfumato.workload.workload import Union, Workload

_EXAMPLE = "ask(place=ranges()) + 2 * marginals('mode')"
MOST_TERMS = 64  # of one sum: more is nobody's question, and a file may not ask for it


def workload_from_text(text: str) -> Workload:
    """The workload that `Workload.to_text()` wrote, or somebody by hand.

    >>> sf.workload_from_text("ask(place=ranges()) + 2 * marginals('mode', ('t', 'mode'))").describe()
    'all ranges of place + 2 × the tables of mode, t × mode'
    """
    return _checked(_GRAMMAR.read(text))


def _plus(first: Any, second: Any) -> Workload:
    one, other = _checked(first), _checked(second)
    found = one + other
    if isinstance(found, Union) and len(found.terms) > MOST_TERMS:
        raise InvalidInput(f"a sum of workloads has at most {MOST_TERMS} terms.")
    return found


def _times(first: Any, second: Any) -> Workload:
    weight, workload = (second, first) if isinstance(first, Workload) else (first, second)
    return _checked(workload) * weight


def _checked(value: Any) -> Workload:
    if not isinstance(value, Workload):
        raise InvalidInput(f"{shown(value)} stands where a workload is expected, such as {_EXAMPLE}.")
    return value


_GRAMMAR = Grammar(
    what="the workload",
    example=_EXAMPLE,
    calls={
        "ask": Call(make=ask, any_key=True),
        "marginals": Call(make=marginals, many=True),
        "ranges": Call(make=ranges, optional=("given",)),
        "histogram": Call(make=histogram),
        "prefixes": Call(make=prefixes),
        "scales": Call(make=scales),
        "levels": Call(make=levels, many=True),
    },
    operators=({"+": _plus}, {"*": _times}),
)
