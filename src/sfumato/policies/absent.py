"""⊥, the vertex of every policy that is no cell: a record that is not there."""

from __future__ import annotations


class _Absent(int):
    """⊥, "not there". In arrays of edges it is written -1."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent(-1)
