"""Every mechanism under every policy on small domains, audited: `python bench/audit_table.py [--seconds SECONDS]`.

Prints a markdown table for the docs: the method and the loss as a share of the promise, the worst over all domains.
The cases are those of `tests/auditing/test_matrix.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import sfumato as sf
from sfumato.auditing import audit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "audit"))

from matrix import DOMAINS, EPSILON, built, policies


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=10.0, help="of computing for an audit that may go on")
    arguments.add_argument("--mechanisms", nargs="+", default=list(sf.mechanisms()), choices=sf.mechanisms())
    chosen = arguments.parse_args()
    table: dict[str, dict[str, list[tuple[str, float]]]] = {name: {} for name in chosen.mechanisms}
    count = 0
    for domain in DOMAINS:
        for label, policy in policies(domain):
            for mechanism in built(policy, chosen.mechanisms):
                found = audit(mechanism, seed=1, seconds=chosen.seconds)
                if not found.passed:
                    print(found, file=sys.stderr)
                count += 1
                table[mechanism.name].setdefault(label, []).append((found.method, float(found.epsilon / EPSILON)))
    columns = [label for label, _ in policies(sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 5)))]
    print(f"{count} audits. Loss as a share of the promise, the largest over all domains; – where it does not apply.\n")
    print(f"| mechanism | {' | '.join(columns)} |")
    print(f"| --- | {' | '.join('---' for _ in columns)} |")
    for name, cells in table.items():
        print(f"| `{name}` | {' | '.join(shown(cells.get(label, [])) for label in columns)} |")


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
