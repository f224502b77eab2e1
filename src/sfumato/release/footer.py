"""What a Parquet file says about its sizes, read and checked before anything of that size is made.

A kilobyte of Parquet may say that it holds 10⁹ rows (runs of one value), that a page becomes 2 GB when it is unpacked,
or that its columns lie in each other ten thousand deep. So the footer and the header of every page are read here first:
plain Python, no step without a byte that asks for it. Only a file whose pages unpack to about what its rows need goes
on to the library that reads it.

The encoding is Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
with the structures of parquet.thrift; fields are told by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MAGIC = b"PAR1"
# Values in the footer and page headers together: a release of 10⁹ cells has some 10⁵.
_MOST_VALUES = 1_000_000
_DEEPEST = 12
# Bytes that a value may take in a page: eight, a place in a dictionary beside them, and a bit for what is missing.
_BYTES_A_VALUE = 20
_BYTES_A_COLUMN = 4096

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
_DATA_PAGES = {0: 5, 3: 8}  # the kinds of pages with values: where their header stands


@dataclass(frozen=True)
class Footer:
    """Names and rows of a flat table."""

    columns: tuple[str, ...]
    rows: int


def read_footer(content: bytes) -> Footer:
    """The footer of a flat table whose pages are as large as its rows need; ValueError for everything else."""
    if len(content) < 12 or content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise ValueError("no Parquet file")
    end = len(content) - 8
    start = end - int.from_bytes(content[end : end + 4], "little")
    if start < 4:
        raise ValueError("the footer is longer than the file")
    reader = _Reader(content, start, end)
    about = reader.struct()
    schema, rows, groups = _list(about, 2), _whole(about, 3), _list(about, 4)
    if any(5 in element for element in schema[1:]) or len(schema) > 64 or not schema:
        raise ValueError("columns lie in each other")  # or far more of them than any release has
    names = tuple(bytes(element.get(4, b"")).decode("utf-8") for element in schema[1:])
    counted = 0
    for group in groups:
        held, columns = _whole(group, 3), _list(group, 1)
        if len(columns) != len(names):
            raise ValueError("a group has another number of columns")
        for column in columns:
            _check_column(reader, column, held, start)
        counted += held
    if counted != rows:
        raise ValueError("the groups hold another number of rows")
    return Footer(names, rows)


def _check_column(reader: _Reader, column: dict[int, Any], rows: int, end: int) -> None:
    """The pages of a column hold its rows, and do not become larger than these need."""
    about = column.get(3)
    if not isinstance(about, dict) or 1 in column or 8 in column or 9 in column:
        raise ValueError("a column in another file, or a sealed one")
    values, length, place = _whole(about, 5), _whole(about, 7), _whole(about, 9)
    dictionary = about.get(11)
    if isinstance(dictionary, int) and 0 < dictionary < place:
        place = dictionary
    last, seen, unpacked = place + length, 0, 0
    if values != rows or place < 4 or last > end:
        raise ValueError("a column with another number of values, or beyond the end")
    while seen < values:
        reader.at, reader.end = place, last
        page = reader.struct()
        size, packed = _whole(page, 2), _whole(page, 3)
        kind = _whole(page, 1)
        if kind in _DATA_PAGES:
            seen += _whole(page.get(_DATA_PAGES[kind]), 1)
        unpacked += size
        place = reader.at + packed
        if place > last or unpacked > _BYTES_A_VALUE * values + _BYTES_A_COLUMN:
            raise ValueError("pages beyond the end of their column, or much larger than its values")
    if seen != values:
        raise ValueError("the pages of a column hold another number of values")


def _whole(struct: Any, field: int) -> int:
    value = struct.get(field) if isinstance(struct, dict) else None
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError("a number is missing")
    return value


def _list(struct: dict[int, Any], field: int) -> list[dict[int, Any]]:
    value = struct.get(field)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError("a list is missing")
    return value


class _Reader:
    """Thrift's compact protocol as dictionaries by field number. Every value costs at least a byte of the file."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content = memoryview(content)
        self.at = at
        self.end = end
        self._values = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a structure, by their numbers."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != _STOP:
            field = field + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            found[field] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ValueError("far more in it than in any release")
        if kind in (_TRUE, _FALSE, _BYTE):  # booleans take a byte inside of lists
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (_DOUBLE, _UUID):
            return self._bytes(8 if kind == _DOUBLE else 16)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            if size > self.end - self.at:
                raise ValueError("a list longer than the file")
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError("nothing that is in a Parquet file")  # maps are not

    def _byte(self) -> int:
        if self.at >= self.end:
            raise ValueError("cut off")
        self.at += 1
        return self._content[self.at - 1]

    def _bytes(self, size: int) -> memoryview:
        self.at += size
        if self.at > self.end:
            raise ValueError("cut off")
        return self._content[self.at - size : self.at]

    def _unsigned(self) -> int:
        value = shift = 0
        while (octet := self._byte()) & 0x80:
            value |= (octet & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
        return value | octet << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
