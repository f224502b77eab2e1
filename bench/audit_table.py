"""Every mechanism under every policy on small domains, and every relation on products, audited.

`python bench/audit_table.py [--seconds SECONDS]`

Prints a markdown table for the docs: the method and the loss as a share of the promise, the worst over all domains.
The cases are those of `tests/auditing/test_matrix.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import sfumato as sf
from sfumato.auditing import audit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "auditing"))

from matrix import DOMAINS, EPSILON, PRODUCTS, built, policies, related


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=10.0, help="of computing for an audit that may go on")
    arguments.add_argument("--mechanisms", nargs="+", default=list(sf.mechanisms()), choices=sf.mechanisms())
    chosen = arguments.parse_args()
    tabled(DOMAINS, policies, chosen.mechanisms, chosen.seconds)
    tabled(PRODUCTS, related, chosen.mechanisms, chosen.seconds)


def tabled(
    domains: list[sf.Domain],
    cases: Callable[[sf.Domain], Iterator[tuple[str, sf.Policy]]],
    mechanisms: list[str],
    seconds: float,
) -> None:
    """Audit every mechanism under every policy, and print a table of them."""
    table: dict[str, dict[str, list[tuple[str, float]]]] = {name: {} for name in mechanisms}
    columns: dict[str, None] = {}
    count = 0
    for domain in domains:
        for label, policy in cases(domain):
            columns[label] = None
            for mechanism in built(policy, mechanisms):
                found = audit(mechanism, seed=1, seconds=seconds)
                if not found.passed:
                    print(found, file=sys.stderr)
                count += 1
                table[mechanism.name].setdefault(label, []).append((found.method, float(found.epsilon / EPSILON)))
    print(f"{count} audits. Loss as a share of the promise, the largest over all domains; – where it does not apply.\n")
    print(f"| mechanism | {' | '.join(columns)} |")
    print(f"| --- | {' | '.join('---' for _ in columns)} |")
    for name, cells in table.items():
        print(f"| `{name}` | {' | '.join(shown(cells.get(label, [])) for label in columns)} |")
    print()


def shown(found: list[tuple[str, float]]) -> str:
    if not found:
        return "–"
    worst = max(loss for _, loss in found)
    methods = {method for method, _ in found}
    method = next(m for m in ("statistical", "argument", "exact") if m in methods)
    sign = {"exact": "=", "argument": "≤", "statistical": "≥"}[method]
    return f"{sign} {'∞' if math.isinf(worst) else f'{worst:.2f}'}"


if __name__ == "__main__":
    main()
