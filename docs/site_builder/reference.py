"""The reference: a page for the public face, one for every other public module, and one for the command line."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import typer
from typer.cli import get_docs_for_click

import sfumato
from sfumato.app.cli import app

MODULES = {
    "sfumato.errors": "Errors and warnings",
    "sfumato.allocation": "Dividing a budget over time",
    "sfumato.auditing": "Auditing",
    "sfumato.linear": "Operators",
}
GROUPS = {
    "domains": (
        "Domains: where, when, what",
        "Grid Line H3 Regions network Times Cycle Categories Domain Interval Labels",
    ),
    "hiding": (
        "Relations and policies: what is hidden",
        "move change anything presence adjacent Relation relation_from_text policy within threshold bounded unbounded "
        "graph Policy ABSENT",
    ),
    "asking": (
        "Questions: what will be asked",
        "ask histogram ranges prefixes marginals levels scales queries Workload workload_from_text",
    ),
    "values": (
        "Values: sums and people",
        "amounts people plan_means MeansPlan Means load_means Amounts People values_from_text",
    ),
    "planning": (
        "Plans",
        "plan epsilon_for tune_bound Plan Guarantee mechanisms register Publication load_publication",
    ),
    "counting": ("Counting", "count Counts"),
    "releases": ("Releases, answers, changes", "Release Answer Table difference percent_change load"),
    "budgets": (
        "Budgets, streams, refining",
        "Ledger Vault Stream Outcome allocate Bernoulli Empirical Markov Periodic",
    ),
    "showing": ("Statements, signatures, audits", "Statement verify Verification SigningKey audit Audit"),
    "more": ("Medians, refining, tests", "median quantile refine_until SeededSource"),
}


def public_names() -> dict[str, list[str]]:
    """Every public name of the root, by the page that it is on; what no page names is refused."""
    pages = {page: names.split() for page, (_, names) in GROUPS.items()}
    errors = {name for name in sfumato.__all__ if _is_error(getattr(sfumato, name))}
    placed = {name for names in pages.values() for name in names}
    left = set(sfumato.__all__) - placed - errors - {"__version__"}
    if left or placed - set(sfumato.__all__):
        raise ValueError(f"say on which page of the reference they are, or that they are gone: {sorted(left)}")
    return pages


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def pages() -> Iterator[tuple[str, str, str]]:
    """(file, title, text) of every page."""
    for page, names in public_names().items():
        title = GROUPS[page][0]
        body = [f"# {title}\n\nAll of them are names of the root package: `import sfumato as sf`, then `sf.…`.\n"]
        body += [_entry(f"sf.{name}", getattr(sfumato, name), name) for name in names]
        yield f"{page}.md", title, "\n".join(body)
    for module, title in MODULES.items():
        named = vars(importlib.import_module(module))
        body = [f"# {title}\n\n`{module}`\n", *(_entry(name, named[name], name) for name in sorted(named["__all__"]))]
        yield f"{module.split('.')[-1]}.md", title, "\n".join(body)
    yield "command-line.md", "The command line", _command_line()


def _entry(title: str, value: Any, name: str) -> str:
    """A heading and what mkdocstrings makes of it, by the place of its definition: a module may bear its name."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return f"## {title} {{ #{name} }}\n\n`{value!r}`, of type `{type(value).__name__}`.\n"
    told = {"show_root_heading": "true", "heading": title, "toc_label": title, "heading_level": "2"}
    if inspect.isclass(value) and {base.__name__ for base in value.__mro__[1:]} & set(sfumato.__all__):
        told["inherited_members"] = "false"  # they stand where they come from
    options = "".join(f"      {key}: {said}\n" for key, said in told.items())
    return f"[](){{ #{name} }}\n\n::: {value.__module__}.{value.__qualname__}\n    options:\n{options}"


def _command_line() -> str:
    command = typer.main.get_command(app)
    return get_docs_for_click(obj=command, ctx=typer.Context(command), name="sfumato", title="The command line")
