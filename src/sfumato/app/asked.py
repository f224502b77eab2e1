"""What is typed after --range, --where and --by, as `release.answer` takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sfumato.app.keys import listed
from sfumato.domain import Axis, Domain, Labels
from sfumato.domain.factor import PLACE
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.release.asking import positions

NOTHING = "Nothing was answered."


def where_of(domain: Domain, given: Sequence[str]) -> dict[str, Any]:
    """What `--where NAME=VALUE` says, by name; a name that is given twice is refused."""
    found: dict[str, Any] = {}
    for one in given:
        name, value = _named(domain, one)
        if name in found:
            raise InvalidInput(f"--where speaks of {shown(name)} twice. {NOTHING} Labels together: {name}=A,B.")
        axes = _positions(domain, name, f"--where {shown(one)}")
        found[name] = value_along([domain.axes[i] for i in axes], value, f"--where {shown(one)}")
    return found


def groups_of(domain: Domain, given: Sequence[str]) -> tuple[str, ...]:
    """What `--by NAME` says; an unknown name is refused."""
    for name in given:
        _positions(domain, name, f"--by {shown(name)}")
    return tuple(given)


def range_of(domain: Domain, text: str, taken: Sequence[str]) -> Any:
    """A range without a name: of the place, or of the one factor that nothing else speaks of, or of all axes."""
    option = f"--range {shown(text)}"
    ends = 2 * domain.ndim
    if not taken and domain.is_spatial and (len(domain.factors) == 1 or text.count(",") + 1 == ends):
        return _numbers(text, option, ends, domain)
    claimed = {axis for name in taken for axis in _positions(domain, name, "--where")}
    free = [factor for factor in domain.factors if not claimed & set(factor.positions)]
    place = [factor for factor in free if factor.name == PLACE] or (free if len(free) == 1 else [])
    if not place:
        names = ", ".join(map(repr, (factor.name for factor in domain.factors)))
        raise InvalidInput(f"{option} could be a range of any of {names}. {NOTHING} Name it: --where NAME=VALUE.")
    return value_along([domain.axes[i] for i in place[0].positions], text, option, single=True)


def value_along(axes: Sequence[Axis], text: str, option: str, *, single: bool = False) -> Any:
    """What a text asks of some axes: numbers, times from/to, labels, or cells of a cycle by their names."""
    axis = axes[0]
    if len(axes) > 1 or (axis.reads == "numbers" and not axis.winds):
        return _numbers(text.replace("/", ",") if len(axes) == 1 else text, option, 2 * len(axes), None)
    if axis.reads == "labels":
        return _labels(cast(Labels, axis), text, option, single=single)
    if axis.winds and "/" not in text:
        names = axis.cell_names()
        return text if text in names or single else listed(text)
    parts = [part.strip() for part in text.split("/" if "/" in text else ",")]
    if len(parts) != 2:
        raise InvalidInput(f"{option} must be FROM/TO, such as 2026-01-01/2026-01-08, the end not included. {NOTHING}")
    return tuple(parts)


def _numbers(text: str, option: str, ends: int, domain: Domain | None) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"{option} is not a list of numbers separated by commas. {NOTHING}") from None
    if len(found) != ends:
        if domain is not None:
            raise InvalidInput(f"every range on this release needs {ends} numbers: {domain!r}.")
        raise InvalidInput(f"{option} needs {ends} numbers, the lower ends and then the upper ones. {NOTHING}")
    return found


def _labels(axis: Labels, text: str, option: str, *, single: bool) -> Any:
    """One label, commas and all, or several that are counted together."""
    known = {_written(label): label for label in axis.labels}
    if text in known:
        return known[text]
    wanted = [text] if single else listed(text)
    for one in wanted:
        if one not in known:
            shortened = ", ".join(map(repr, list(known)[:8])) + (", …" if len(known) > 8 else "")
            raise InvalidInput(
                f"{option}: {shown(one)} is no label of {axis.name!r}, which has {shortened}. {NOTHING} A label with a "
                "comma among others stands in double quotes."
            )
    return [known[one] for one in wanted]


def _written(label: Any) -> str:
    """A label as it is typed."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _named(domain: Domain, text: str) -> tuple[str, str]:
    """The name and the value in NAME=VALUE; names may hold a '=' themselves."""
    known = [*(factor.name for factor in domain.factors), *domain.names]
    for name in sorted(known, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    name, mark, value = text.partition("=")
    if not mark:
        raise InvalidInput(f"--where {shown(text)} must be NAME=VALUE, such as --where mode=bike. {NOTHING}")
    return name, value


def _positions(domain: Domain, name: str, option: str) -> tuple[int, ...]:
    try:
        return positions(domain, name)
    except InvalidInput as refusal:
        raise InvalidInput(f"{option}: {refusal}") from refusal
