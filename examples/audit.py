"""Audit your own plan before any real data is touched: `python examples/audit.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# The plan in small: what is wrong with a mechanism shows on small domains, and an audit tries every change there.
grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 7))
plan = sf.plan(sf.within(grid, delta=0.1), sf.ranges(), epsilon=1.0)

found = sf.audit(plan)  # on made-up neighbours; private data has no business here
(folder / "audit.txt").write_text(found.describe(), encoding="utf-8")
print(found.describe())
found.require()  # stops a nightly job where more is lost than was promised
