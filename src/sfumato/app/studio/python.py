"""A publication as lines of Python that plan, count, charge and publish the same."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from sfumato.publication import Publication

_QUOTED_OR_CALLED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b([a-z_]\w*)(?=\()""")
# The key that tells the kind of a factor, as in its file: what is called, and with what first.
_CALLS = {
    "shape": ("Grid", ()),
    "cell": ("Grid", ()),
    "low": ("Line", ("low", "high")),
    "edges": ("Line", ()),
    "h3": ("H3", ("h3",)),
    "labels": ("Categories", ("labels",)),
    "cycle": ("Cycle", ("cycle",)),
    "every": ("Times", ("start", "stop")),
}
_TAKEN = frozenset({"sf", "space", "policy", "ask", "plan", "counts", "ledger", "vault", "release", "publication"})


def python_of(publication: Publication, file: str = "publication.toml") -> str:
    """The lines; where a factor can only be said in a file, those that read the file."""
    told = tomllib.loads(publication.to_toml())
    made = _space(told["domain"])
    if made is None:
        lines = [f"publication = sf.load_publication({file!r})", "plan = publication.plan()"]
        counted = "counts = publication.count()"
    else:
        asked = [with_sf(told["ask"]), f"epsilon={told['epsilon']!r}"]
        asked += [f"{key}={told[key]!r}" for key in ("max_per_entity", "mechanism", "records") if key in told]
        lines = [*made, _policy(told), f"plan = sf.plan(policy, {', '.join(asked)})"]
        counted = _counted(told) if "path" in told.get("data", {}) else ""
    lines = ["import sfumato as sf", "", *lines, "print(plan)  # sees no data, costs nothing"]
    if "path" in told.get("data", {}):
        lines += ["", counted, *_published(told)]
    return "\n".join(lines) + "\n"


def with_sf(text: str) -> str:
    """A relation or a question as Python has it: every call by its name in the library, texts in quotes untouched.

    >>> with_sf('move("500 m (or so)") | change("mode")')
    'sf.move("500 m (or so)") | sf.change("mode")'
    """
    return _QUOTED_OR_CALLED.sub(lambda found: found[1] or f"sf.{found[2]}", text)


def _space(domain: dict[str, dict[str, Any]]) -> list[str] | None:
    lines, names = [], []
    for number, (name, told) in enumerate(domain.items()):
        kind = next((kind for kind in _CALLS if kind in told), None)
        if kind is None or (kind == "edges" and isinstance(told["edges"][0], list)):
            return None
        call, first = _CALLS[kind]
        given = [repr(_plain(told[key])) for key in first]
        given += [f"{key}={_plain(value)!r}" for key, value in told.items() if key not in first]
        given += [f"name={name!r}"] if call not in ("Grid", "H3") or name != "place" else []
        names.append(name if name.isidentifier() and name not in _TAKEN else f"factor_{number}")
        lines.append(f"{names[-1]} = sf.{call}({', '.join(given)})")
    return [*lines, f"space = {' * '.join(names)}"]


def _plain(value: Any) -> Any:
    return str(value) if not isinstance(value, (int, float, str, list, bool)) else value


def _policy(told: dict[str, Any]) -> str:
    if "theta" in told:
        return f"policy = sf.threshold(space, theta={told['theta']})"
    more = "".join(f", {key}={told[key]!r}" for key in ("public", "publish_component_totals") if key in told)
    return f"policy = sf.policy(space, hide={with_sf(told['hide'])}{more})"


def _counted(told: dict[str, Any]) -> str:
    data = told["data"]
    given = [repr(data["path"]), "space"]
    given += [f"{key}={data[key]!r}" for key in ("columns", "entity", "outside") if key in data]
    given += [f"max_per_entity={told['max_per_entity']}"] if "max_per_entity" in told else []
    return f"counts = sf.count({', '.join(given)}, policy=policy)"


def _published(told: dict[str, Any]) -> list[str]:
    lines, given = [], ["counts"]
    account, output = told.get("account", {}), told.get("output", {})
    if "ledger" in account:
        dataset = f", dataset={account['dataset']!r}" if "dataset" in account else ""
        lines.append(f"ledger = sf.Ledger({account['ledger']!r}{dataset})")
        given.append("ledger=ledger")
    if "vault" in output:
        key = f", key={output['key']!r}" if "key" in output else ""
        lines.append(f"vault = sf.Vault({output['vault']!r}{key})")
        given.append("vault=vault")
    given += [f"label={account['label']!r}"] if "label" in account else []
    lines.append(f"release = plan.publish({', '.join(given)})  # charges the account, once")
    return [*lines, f"release.save({output['file']!r})"] if "file" in output else lines
