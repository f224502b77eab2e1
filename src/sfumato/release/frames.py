"""Answers and cells as tables of others: Arrow, pandas, Polars, xarray. None is loaded before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain import Axis, Domain, Hexagons, Labels
from sfumato.domain.instants import Instants
from sfumato.domain.ordered import Ordered
from sfumato.domain.places import ELSEWHERE, Places
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.exact import shown
from sfumato.naming import nearest
from sfumato.release.answer import Answer
from sfumato.release.keys import Key

if TYPE_CHECKING:
    from sfumato.release.release import Release

KINDS = ("arrow", "pandas", "polars")


def measures(answer: Answer) -> dict[str, Floats]:
    """What is told of every answer."""
    return {"value": answer.value, "stderr": answer.stderr, "low": answer.low, "high": answer.high}


def all_keys(domain: Domain) -> tuple[Key, ...]:
    """Every cell of every axis."""
    return tuple(Key(i, axis, np.arange(axis.cells, dtype=np.int64)) for i, axis in enumerate(domain.axes))


def rows_of(keys: Sequence[Key], shape: tuple[int, ...], figures: Mapping[str, Floats]) -> Any:
    """A pyarrow table with one row a cell of the shape, in C order: what it belongs to, and its figures.

    What is not known is null. A name that is taken gets an underscore behind it: an axis may bear any name.
    """
    import pyarrow as pa

    index = np.indices(shape, sparse=True)
    lead = len(shape) - len(keys)
    columns: dict[str, Any] = {}

    def add(name: str, along: Any, position: NDArray[np.int64]) -> None:
        while name in columns or name in figures:
            name += "_"
        columns[name] = pa.array(along).take(pa.array(np.broadcast_to(position, shape).ravel()))

    if lead:
        many = np.arange(int(np.prod(shape[:lead], dtype=np.int64))).reshape((*shape[:lead], *(1,) * len(keys)))
        columns["range"] = pa.array(np.broadcast_to(many, shape).ravel())
    for key, position in zip(keys, index[lead:], strict=True):
        for ending, along in columns_of(key.axis).items():
            add(f"{key.axis.name}{ending}", along, key.cells[position])
    for name, values in figures.items():
        columns[name] = pa.array(np.asarray(values, dtype=np.float64).ravel(), from_pandas=True)
    return pa.table(columns)


def columns_of(axis: Axis) -> dict[str, Any]:
    """What is told of every cell of an axis, by what is put behind the axis's name: both edges, or a label."""
    import pyarrow as pa

    if axis.named:
        return {"": list(cast(Labels, axis).labels)}
    if axis.winds:
        return {"": axis.cell_names()}
    edges: Any = cast(Ordered, axis).edges
    if axis.reads == "times":
        edges = pa.array(edges, pa.timestamp("us", tz=cast(Instants, axis).tz))
        return {"_low": edges[:-1], "_high": edges[1:]}
    return {"_low": edges[:-1], "_high": edges[1:]}


def table_of_cells(release: Release, cells: Answer) -> Any:
    """Every cell of a release as a row; the guarantee in words in the metadata."""
    return said(rows_of(all_keys(release.domain), release.domain.shape, measures(cells)), release)


def said(table: Any, release: Release) -> Any:
    """A table with what a release promises in its metadata."""
    return table.replace_schema_metadata({"guarantee": str(release.guarantee), "release": release.id})


def framed(table: Any, kind: str) -> Any:
    """An Arrow table as what was asked for."""
    if kind not in KINDS:
        near = nearest(kind, KINDS) if isinstance(kind, str) else ""
        raise InvalidInput(f"kind={shown(kind)} must be one of {', '.join(map(repr, KINDS))}.{near}")
    try:
        if kind == "pandas":
            return table.to_pandas()
        if kind == "polars":
            import polars

            return polars.from_arrow(table)
    except ImportError as error:
        raise MissingExtra(kind, kind, f"A frame of {kind}") from error
    return table


def dataset(keys: Sequence[Key], shape: tuple[int, ...], figures: Mapping[str, Floats]) -> Any:
    """An xarray Dataset: one dimension an axis, with its middles, times or labels as coordinates, and its edges beside
    them.
    """
    try:
        import xarray
    except ImportError as error:
        raise MissingExtra("xarray", "xarray", "A Dataset") from error
    lead = len(shape) - len(keys)
    ranges = ["range" if lead == 1 else f"range_{i}" for i in range(lead)]
    names = _apart([*ranges, *(key.axis.name for key in keys)], figures)
    coordinates: dict[str, Any] = {}
    for name, key in zip(names[lead:], keys, strict=True):
        for ending, along in _coordinates(key.axis).items():
            coordinates[_apart([f"{name}{ending}"], {**coordinates, **figures})[0]] = (name, along[key.cells])
    return xarray.Dataset({name: (names, np.asarray(values)) for name, values in figures.items()}, coordinates)


def dataset_of_cells(release: Release, cells: Answer) -> Any:
    """Every cell of a release, one dimension an axis."""
    found = _indexed(dataset(all_keys(release.domain), release.domain.shape, measures(cells)), release.domain)
    told = {"guarantee": str(release.guarantee), "release": release.id, "confidence": cells.confidence}
    return found.assign_attrs(told)


def _indexed(found: Any, domain: Domain) -> Any:
    """A Dataset with the numbers of its hexagons as xdggs reads them, and what is elsewhere beside them. Of several
    places, where some records are elsewhere on one side alone, all stays as it is.
    """
    hexagons = [i for i, axis in enumerate(domain.axes) if axis.reads == "places" and cast(Places, axis).indexed]
    if len(hexagons) != 1:
        return found
    axis, along = cast(Hexagons, domain.axes[hexagons[0]]), found["value"].dims[hexagons[0]]
    away = {f"{name}_{ELSEWHERE}": part.isel({along: -1}, drop=True) for name, part in found.data_vars.items()}
    about = {"grid_name": "h3", "level": axis.resolution}
    within = found.isel({along: slice(None, -1)})
    return within.assign_coords({"cell_ids": (along, axis.indices, about)}).assign(away)


def _apart(names: Sequence[str], taken: Mapping[str, Any]) -> list[str]:
    """Names that are not taken, nor twice there."""
    found: list[str] = []
    for wanted in names:
        name = wanted
        while name in found or name in taken:
            name += "_"
        found.append(name)
    return found


def _coordinates(axis: Axis) -> dict[str, NDArray[Any]]:
    """The coordinates of an axis by what is put behind its name: the middle of every cell, its label, or when it
    begins; and its edges. xarray's times have no zone: instants are told in UTC.
    """
    if axis.named:
        return {"": np.array(cast(Labels, axis).labels)}
    if axis.winds:
        return {"": np.array(axis.cell_names())}
    edges = np.asarray(cast(Ordered, axis).edges)
    if axis.reads == "times":
        edges = edges.astype("M8[us]")
        return {"": edges[:-1], "_high": edges[1:]}
    return {"": (edges[:-1] + edges[1:]) / 2, "_low": edges[:-1], "_high": edges[1:]}
