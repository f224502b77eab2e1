"""Forged files of every kind: real ones, changed by bytes and by their meaning, and what may come of reading them.

A forgery is named by a kind and a seed, so that a bad one can be made again. `run` reads one as a stranger's file is
read and gives None, or what is wrong with the outcome.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.domain.areas import Areas, Level
from sfumato.domain.crossings import RULE
from sfumato.domain.outlines import Outlines, starts_of
from sfumato.release.patch import Patch
from sfumato.vault.sealing import Kind, Seal
from sfumato.vault.state import encode

LINE = sf.Line(0, 12, cells=12)
GRID = sf.Grid(bounds=(0.0, 40.0, 1.0, 41.0), shape=(6, 5), names=("lon", "lat"))
MODES = sf.Categories(["bus", "tram", "rest"], other="rest")
MIXED = sf.Domain((sf.Interval("hour", 0, 24, 4), sf.Labels("week", (1, 2, 3))))

_CORNERS = np.array([[0, 0], [1, 0], [1, 2], [0, 0], [1, 0], [2, 0], [1, 2], [1, 0]], np.float64)
_OUTLINES = Outlines(_CORNERS, *map(starts_of, ([4, 4], [1, 1], [1, 1])))
HALVES = sf.Domain(
    (
        Areas(
            "place",
            ("west", "east"),
            "EPSG:4326",
            True,
            _OUTLINES.digest,
            (Level("land", ("a", "a")),),
            RULE,
            _OUTLINES,
        ),
    )
)
HOURS = sf.Times("2026-03-29", "2026-03-30", every="1h", name="t", tz="Europe/Berlin")
FARES = sf.Line(edges=[0, 5, 10, 20, 50], name="fare")
TRIPS = GRID * sf.Cycle("weekday", name="day") * sf.Categories(["bus", "tram"], name="mode")
HIDE = sf.move(0.2) & sf.change("mode") | sf.move("1 day", of="day") | sf.move(0.1, sources=[[0.5, 40.5]])

PLANS: dict[str, tuple[sf.Policy, str, dict[str, Any]]] = {
    "identity": (sf.unbounded(MIXED), "identity", {}),
    "labels": (sf.graph(MODES, [("bus", "tram"), (1, 2), (0, sf.ABSENT)]), "edges", {}),
    "graph": (sf.graph(LINE, [(i, (i + 1) % 12) for i in range(12)]), "spanner", {}),
    "parts": (sf.graph(LINE, [(0, 1), (2, 3)], publish_component_totals=True), "edges", {}),
    "haar": (sf.unbounded(GRID), "haar", {}),
    "hierarchy": (sf.bounded(GRID), "hierarchy", {"blocks": [[2, 1], [5, 1]], "weights": [[1, 2], [3, 1]]}),
    "branching": (sf.unbounded(LINE), "hierarchy", {"branching": 3, "root": True}),
    "hats": (sf.unbounded(GRID), "hats", {"widths": [2], "weights": [5, 3]}),
    "hat-products": (sf.unbounded(GRID), "hat-products", {"hats": [3, 0], "height": 7, "weights": [5, 2]}),
    "levels": (sf.unbounded(GRID), "levels", {"blocks": [[1, 1], [2, 6], [6, 3]], "weights": [3, 1, 2]}),
    "prefix": (sf.within(LINE, 2, sources="boundary"), "prefix", {"reverse": True}),
    "blocks": (sf.threshold(LINE, 2), "blocks", {}),
    "edges": (sf.within(GRID, "1/10", sources=[[0.5, 40.5]]), "edges", {}),
    "lines": (sf.within(GRID, 0.2, sources=[[[0.5, 40.5], [0.7, 40.9]]]), "edge-haar", {}),
    "globe": (sf.within(GRID, 30_000, metric="great-circle"), "edges", {}),
    "edge-hierarchy": (sf.threshold(GRID, 1), "edge-hierarchy", {}),
    "diagonal-hats": (sf.threshold(GRID, 2), "diagonal-hats", {}),
    "edge-hats": (sf.threshold(GRID, 1), "edge-hats", {}),
    "hats with moves": (sf.threshold(GRID, 2), "hats", {"widths": [2], "weights": [5, 3]}),
    "regions": (sf.policy(HALVES, hide=sf.move("500 m")), "identity", {}),
    "public regions": (sf.policy(HALVES * MODES, hide=sf.change("category"), public=["place"]), "identity", {}),
    "products": (sf.policy(TRIPS, hide=HIDE), "identity", {}),
    "times": (sf.policy(HOURS, hide=sf.move("90 min", of="t")), "hierarchy", {"blocks": [4, 1], "weights": [1, 1]}),
    "bins": (sf.policy(FARES, hide=sf.move(6, of="fare") | sf.presence()), "identity", {}),
    "policy-edges": (sf.threshold(LINE, 3), "policy-edges", {}),
    "spanner": (sf.threshold(GRID, 3), "spanner", {"side": 2, "share": 40}),
    "shifted": (sf.within(GRID, 0.2), "shifted", {"width": 3}),
    "shifted-edges": (sf.within(GRID, 0.2), "shifted-edges", {"width": [3, 2]}),
    "marginals": (sf.bounded(MIXED), "marginals", {"tables": [[0], [1]], "weights": [2, 3]}),
    "sorted": (sf.within(GRID, 0.2), "sorted", {"group": 4}),
    "sorted with absence": (sf.unbounded(LINE), "sorted", {"share": 0.25}),
    "consistent": (sf.threshold(LINE, 1), "consistent", {}),
    "dawa": (sf.unbounded(LINE), "dawa", {"queries": "cells"}),
    "dawa, noise first": (sf.unbounded(LINE), "dawa", {"queries": "cells", "first": "noise"}),
    "quadtree": (sf.within(GRID, 0.2), "quadtree", {"share": "1/4"}),
    "adaptive grid": (sf.within(GRID, 0.2), "adaptive-grid", {"block": [2, 3], "share": "1/3"}),
    "greedy": (sf.bounded(LINE), "greedy", {"boxes": [[0, 6], *([i, i + 1] for i in range(12))], "sets": [[0, 3, 5]]}),
}

NUMBERS = [0, 1, -1, 2, 255, 4096, 10**6, 2**31, 2**53, 2**62, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, 5e-324, 1e-150]
TEXTS = ["", "1e30000000", "1E-30000000", "1e999999999", "0x10", "1/0", "9" * 4000, "9" * 5000, "1/" + "7" * 3000]
TEXTS += ["0.1", "-1", "1_0", "identity", "greedy", "graph", "boundary", "\x1b[31m", "=1+1", "\ud800", "interval"]
LONG = 20_000
LONGEST = 4_000_000  # characters of a list that is made longer


def junk(dice: random.Random) -> Any:
    """What no honest writer puts there."""
    kind = dice.randrange(9)
    if kind <= 2:
        return dice.choice(NUMBERS)
    if kind <= 4:
        return dice.choice(TEXTS)
    if kind == 5:
        return dice.choice([None, True, False, [], {}, [[]], [{}]])
    if kind == 6:
        return [dice.choice(NUMBERS[:8]) for _ in range(dice.choice([1, 2, 50, LONG]))]
    if kind == 7:
        nested: Any = 1
        for _ in range(dice.choice([3, 20, 60, 250])):
            nested = [nested]
        return nested
    return [[dice.randrange(12) for _ in range(2)] for _ in range(dice.choice([1, 50, LONG]))]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, part in inner for place in places(part, (*at, key)))]


def edited(description: Any, dice: random.Random) -> Any:
    """The description with one to three things changed."""
    changed = copy.deepcopy(description)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        spots = [spot for spot in places(changed) if spot]
        if not spots:
            return changed
        *path, last = dice.choice(spots)
        target = changed
        for key in path:
            target = target[key]
        value, change = target[last], dice.randrange(8)
        if change <= 2:
            target[last] = junk(dice)
        elif change == 3:
            del target[last]
        elif change == 4 and isinstance(value, list) and value:
            room = max(1, LONGEST * len(value) // len(_text(value)))  # lists in lists grow by the square
            target[last] = (value * (LONG // len(value) + 1))[: min(dice.choice([len(value) + 1, 1000, LONG]), room)]
        elif change == 5 and isinstance(value, (int, float)) and not isinstance(value, bool):
            target[last] = value * dice.choice([2, 3, 1000, 10**6, 10**9]) + dice.choice([0, 1])
        elif change == 6 and isinstance(target, dict):
            target[dice.choice(["sources", "delta", "theta", "options", "blocks", "weights", "extra"])] = junk(dice)
        else:
            other = dice.choice(spots)
            swapped = changed
            for key in other:
                swapped = swapped[key] if _has(swapped, key) else None
            target[last] = copy.deepcopy(swapped)
    return changed


def _has(value: Any, key: Any) -> bool:
    return (
        key in value
        if isinstance(value, dict)
        else isinstance(value, list) and isinstance(key, int) and key < len(value)
    )


def bytes_changed(content: bytes, dice: random.Random) -> bytes:
    """A few bytes changed, cut off, doubled or blown up."""
    changed = bytearray(content)
    for _ in range(dice.choice([1, 1, 2, 4, 16])):
        at = dice.randrange(len(changed)) if changed else 0
        # The ends hold the sizes.
        at = dice.choice(
            [at, max(len(changed) - 1 - dice.randrange(600), 0), min(dice.randrange(64), len(changed) - 1)]
        )
        change = dice.randrange(5)
        if change <= 2 and changed:
            changed[at] = dice.choice([0, 1, 127, 128, 255, dice.randrange(256)])
        elif change == 3:
            del changed[at : at + dice.choice([1, 4, 100])]
        else:
            changed[at:at] = bytes([dice.randrange(256)]) * dice.choice([1, 8, 300])
    return bytes(changed)


class Seeds:
    """Real files of every kind, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.releases: list[bytes] = []
        for name, (policy, mechanism, options) in PLANS.items():
            counts = np.arange(policy.domain.size).reshape(policy.domain.shape) % 7
            ask = sf.marginals(1) if mechanism == "marginals" else sf.histogram()
            plan = sf.plan(policy, ask, "0.7", mechanism=mechanism, **options)
            release = plan.publish(counts, source=sf.SeededSource(3))
            self.releases.append(release.save(folder / f"{name}.sfumato").read_bytes())
        ledger = sf.Ledger.create(folder / "budget.db", epsilon=100)
        self.vault = sf.Vault(folder / "vault", folder / "vault.key")
        coarse = sf.plan(sf.threshold(LINE, 2), sf.ranges(), 1, mechanism="hierarchy").publish(
            np.arange(12), ledger=ledger, vault=self.vault
        )
        fine = coarse.refine(2, vault=self.vault, ledger=ledger)
        self.coarse, self.patch = coarse, fine.patch_from(coarse).to_bytes()
        self.releases += [release.save(folder / "level").read_bytes() for release in (coarse, fine)]
        state = self.vault.read(coarse.id)
        self.state = b"".join(encode(state, tuple(self.vault.levels(coarse.id))))
        self.state_level = state.level
        stream = ledger.stream(
            "visits", policy=sf.threshold(LINE, 2), epsilon=1, window=timedelta(hours=3), unit="record"
        )
        for hour in range(3):
            stream.charge(np.datetime64(f"2026-03-01T0{hour}:00").item(), "0.3", label="hour", release_id=f"r{hour}")
        del ledger, stream
        about = sf.Ledger.create(folder / "about.db", epsilon=100, hide=sf.move(2) | sf.change("mode"), fixed=["day"])
        table = sf.policy(
            sf.Line(0, 12, cells=12, name="place") * sf.Categories(["a", "b"], name="mode"),
            hide=sf.move(2) | sf.change("mode"),
        )
        sf.plan(table, sf.histogram(), 1).publish(np.arange(24).reshape(12, 2), ledger=about)
        del about
        self.ledgers = [(folder / name).read_bytes() for name in ("budget.db", "about.db")]

    # ------------------------------------------------------------------ one forgery

    def run(self, kind: str, number: int) -> str | None:
        """Read one forgery; None where the outcome is an error of ours or an honest value."""
        dice = random.Random(f"{kind} {number}")
        reader: Callable[[random.Random], None] = getattr(self, f"_{kind}")
        try:
            reader(dice)
        except AllowedError as allowed:
            cause: BaseException | None = allowed.error
            while cause is not None:
                if isinstance(cause, MemoryError) and not isinstance(cause, sf.TooLarge):
                    return f"{kind} {number}: memory ran out"
                cause = cause.__cause__ or cause.__context__
        except Exception as error:  # noqa: BLE001  # this is what is looked for
            return f"{kind} {number}: {type(error).__name__}: {str(error)[:300]}"
        return None

    def _forged(self, dice: random.Random) -> Path:
        content = dice.choice(self.releases)
        path = self.folder / "forged"
        if dice.random() < 0.3:
            path.write_bytes(bytes_changed(content, dice))
        else:
            file = pq.ParquetFile(pa.BufferReader(content))
            description, table = json.loads(file.metadata.metadata[b"sfumato"]), file.read()
            path.write_bytes(forged_release(edited(description, dice), table, dice))
        return path

    def _verified(self, dice: random.Random) -> None:
        """What is verified is never an error, and what loads has a statement in every form."""
        path = self._forged(dice)
        found = sf.verify(path)
        assert str(found) and found.to_dict()["passed"] == found.passed, "no words"
        if found["file"].outcome == "holds":
            statement = sf.load(path).statement()
            assert statement.to_html() and statement.to_markdown() and statement.to_json(), "no statement"
            assert "<script" not in statement.to_html()

    def _release(self, dice: random.Random) -> None:
        path = self._forged(dice)
        try:
            release = sf.load(path)
        except sf.FileFormatError as error:
            raise AllowedError(error) from None
        bound = release.guarantee.max_per_entity or 1 if release.guarantee.unit == "person" else 1
        assert release.mechanism.epsilon * bound <= release.guarantee.epsilon, "a promise better than the noise"
        if release.mechanism.by_tables is None:
            assert release.counts.shape == release.domain.shape, "counts of another shape"
        assert str(release.guarantee), "no words"
        assert repr(release), "no words"

    def _patch(self, dice: random.Random) -> None:
        content, end = self.patch, 8 + int.from_bytes(self.patch[:8], "little")
        if dice.random() < 0.4:
            content = bytes_changed(content, dice)
        else:
            about, body = edited(json.loads(content[8:end]), dice), zlib.decompress(content[end:])
            if dice.random() < 0.3:
                body = body[:8] * dice.choice([1, 10**6])
            text = json.dumps(about).encode()
            content = len(text).to_bytes(8, "little") + text + zlib.compress(body, 9)
        try:
            patch = Patch.from_bytes(content)
            assert repr(patch), "no words"
        except sf.FileFormatError as error:
            raise AllowedError(error) from None
        try:
            self.coarse.apply(patch)
        except (sf.FileFormatError, sf.InvalidInput) as error:  # a patch for another release is a mistake, no damage
            raise AllowedError(error) from None

    def _state(self, dice: random.Random) -> None:
        content, end = self.state, 8 + int.from_bytes(self.state[:8], "little")
        folder = self.folder / "forged vault"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder / "vault", folder)
        vault = sf.Vault(folder, self.folder / "vault.key")
        if dice.random() < 0.3:  # without the key
            path = folder / f"{self.coarse.id}.state"
            path.write_bytes(bytes_changed(path.read_bytes(), dice))
        else:  # by somebody who has it
            if dice.random() < 0.4:
                content = bytes_changed(content, dice)
            else:
                text = json.dumps(edited(json.loads(content[8:end]), dice)).encode()
                content = len(text).to_bytes(8, "little") + text + content[end:]
            vault._shelf.write(Seal(Kind.STATE, self.coarse.id, self.state_level), [content])
        try:
            vault.read(self.coarse.id)
            vault.levels(self.coarse.id)
        except sf.VaultError as error:
            raise AllowedError(error) from None

    def _ledger(self, dice: random.Random) -> None:
        path = self.folder / "forged.db"
        for left in self.folder.glob("forged.db*"):
            left.unlink()
        whole = dice.choice(self.ledgers)
        path.write_bytes(bytes_changed(whole, dice) if dice.random() < 0.3 else whole)
        if dice.random() < 0.8:
            _edit_ledger(path, dice)
        try:
            ledger = sf.Ledger(path, timeout=1)
            assert ledger.spent <= ledger.total, "more is spent than there is"
            assert str(ledger), "no words"
            found = [ledger.policy, ledger.relation, ledger.history, ledger.accounts(), ledger.level(self.coarse.id)]
            found += [ledger.stream(name).entries() for name in ledger.streams()]
        except sf.LedgerError as error:
            raise AllowedError(error) from None
        except sf.InvalidInput as error:
            if "needs an epsilon" in str(error) or "account" in str(error):  # nothing is in it: it would be a new one
                raise AllowedError(error) from None
            raise


class AllowedError(Exception):
    """An error that is the right answer to a forgery."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def forged_release(description: Any, table: pa.Table, dice: random.Random) -> bytes:
    """A file with a digest that fits, and as many rows as it claims to have cells where these are not too many."""
    try:
        axes = description["guarantee"]["policy"]["domain"]["axes"]
        cells = math.prod(int(axis.get("cells") or len(axis["labels"])) for axis in axes)
    except Exception:  # noqa: BLE001  # whatever it is, it is no domain
        cells = len(table)
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    if cells != len(table) and 0 < cells <= 300_000 and dice.random() < 0.7:
        columns["count"] = pa.array(np.zeros(cells))
        if "measured" in columns:
            columns["measured"] = pa.array(np.zeros(cells, dtype=np.int64))
            if isinstance(description, dict) and dice.random() < 0.7:
                description["measured"] = [cells]
    if isinstance(description, dict):
        rest = {key: value for key, value in description.items() if key != "digest"}
        digest = hashlib.sha256(_text(rest, sort=True) + b"\0")
        for name in columns:
            digest.update(columns[name].drop_null().to_numpy(zero_copy_only=False).tobytes())
        description = {**rest, "digest": digest.hexdigest()}
    written = pa.BufferOutputStream()
    forged = pa.table(columns)
    options: dict[str, Any] = {"use_dictionary": dice.random() < 0.3, "compression": dice.choice(["zstd", "none"])}
    with pq.ParquetWriter(written, forged.schema, **options) as writer:
        writer.write_table(forged)
        writer.add_key_value_metadata({b"sfumato": _text(description)})
    return written.getvalue().to_pybytes()


def _text(value: Any, *, sort: bool = False) -> bytes:
    return json.dumps(value, sort_keys=sort, separators=(",", ":")).encode()


def _edit_ledger(path: Path, dice: random.Random) -> None:
    """Cells of its tables changed behind its triggers, which are put back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        tables = [
            n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if "sqlite" not in n
        ]
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        for _ in range(dice.choice([1, 1, 2])):
            table = dice.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            column = dice.choice(columns)
            old = connection.execute(f'SELECT "{column}" FROM "{table}" LIMIT 1').fetchone()
            new = junk(dice)
            if column in ("policy", "relation") and old and isinstance(old[0], str) and old[0].startswith("{"):
                new = json.dumps(edited(json.loads(old[0]), dice))
            elif isinstance(new, (list, dict)):
                new = json.dumps(new)
            elif isinstance(new, int) and abs(new) >= 1 << 63:
                new = str(new)
            new = new.encode("utf-8", "replace") if dice.random() < 0.05 and isinstance(new, str) else new
            where = "" if dice.random() < 0.5 else f" WHERE rowid = {dice.randrange(1, 4)}"
            connection.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', (new,))
        for _, sql in triggers:
            connection.execute(sql)
    except (sqlite3.Error, UnicodeError, ValueError):
        pass  # what is too damaged to be edited is damaged enough
    finally:
        connection.close()
