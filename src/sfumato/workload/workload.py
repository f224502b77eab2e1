"""What every workload offers, and how workloads add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, Protocol

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.calls import quoted
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_fraction, text
from sfumato.workload.axis import AxisQueries
from sfumato.workload.part import Part


class Coefficients(Protocol):
    """Noise in parts, each with its scale, that knows how strongly queries feel it. A workload asks in its own way."""

    def product_terms(self, kinds: Sequence[AxisQueries]) -> list[float]:
        """For every part of the noise, the mean of the squared coefficients over all products of queries of one kind
        along every axis.
        """

    def query_terms(self, matrix: Any) -> list[float]:
        """The same over the rows of a sparse matrix."""


class Workload(ABC):
    """A set of linear queries on the counts, each as important as the next. It is public and knows no data.

    Workloads are added up with ``+``, and multiplied with a positive number of times that each query counts.

    >>> sf.ranges().count(sf.Line(0, 4, cells=4)), sf.histogram().count(sf.Line(0, 4, cells=4))
    (10, 4)
    >>> (sf.ranges() + 2 * sf.histogram()).count(sf.Line(0, 4, cells=4))
    14
    """

    __array_ufunc__: ClassVar[None] = None  # a number of NumPy's leaves multiplication to us

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse a domain on which these queries make no sense."""

    def parts(self, domain: Domain) -> tuple[Part, ...] | None:
        """The queries as a union of products, one kind along every axis; None where they are not of this form."""
        del domain
        return None

    def partition(self, domain: Domain) -> Integers | None:
        """The group of every cell, numbered from 0, where the queries are sums over groups of cells that have no cell
        in common and are no other cells' business; cells of no query are the last group. None elsewhere.
        """
        del domain
        return None

    def shares(self, domain: Domain) -> list[tuple[float, Part]] | None:
        """The parts, each with its share in the mean over all queries; None where there are none."""
        parts = self.parts(domain)
        if parts is None:
            return None
        counted = [part.weight * part.count(domain.shape) for part in parts]
        total = sum(counted, Fraction(0))
        return [(float(weight / total), part) for weight, part in zip(counted, parts, strict=True)]

    def kept(self, domain: Domain) -> tuple[tuple[int, ...], ...] | None:
        """The positions of the axes that each part asks about, everything else being summed over; None where the
        queries are no union of products.
        """
        parts = self.parts(domain)
        return None if parts is None else tuple(part.kept(domain.shape) for part in parts)

    def count(self, domain: Domain) -> int:
        """The number of queries."""
        return sum(part.count(domain.shape) for part in self._required(domain))

    def weight(self, domain: Domain) -> Fraction:
        """How often queries count, all together."""
        return sum((part.weight * part.count(domain.shape) for part in self._required(domain)), Fraction(0))

    def gram(self, domain: Domain) -> Floats:
        """WᵀW over the number of queries, dense: all that a squared error knows of a workload. For small domains."""
        parts = (share * part.gram(domain.shape) for share, part in self._shared(domain))
        return np.asarray(reduce(np.add, parts), dtype=np.float64)

    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """The mean over the queries of the squared coefficients of each part of the noise."""
        return _mean_terms((share, noise.product_terms(part.kinds)) for share, part in self._shared(domain))

    def mean_square(self, values: Floats, domain: Domain) -> float:
        """The mean over the queries of (query · values)², for an array in the domain's shape."""
        return sum(share * part.mean_square(values) for share, part in self._shared(domain))

    @abstractmethod
    def describe(self) -> str:
        """The queries in words."""

    def to_text(self) -> str:
        """The queries in one line as one writes them, for files and command lines; `sf.workload_from_text` reads it.

        >>> (sf.ask(place=sf.ranges()) + 2 * sf.marginals("mode")).to_text()
        'ask(place=ranges()) + 2 * marginals("mode")'
        """
        raise InvalidInput(f"{self.describe()} cannot be written as text: they stay in Python. Nothing was written.")

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What of the workload goes into a file: enough to say what the plan was made for."""

    def _required(self, domain: Domain) -> tuple[Part, ...]:
        parts = self.parts(domain)
        if parts is None:
            raise NotImplementedError(f"{type(self).__name__} says neither its parts nor what is computed from them.")
        return parts

    def _shared(self, domain: Domain) -> list[tuple[float, Part]]:
        self._required(domain)
        return self.shares(domain) or []

    def __add__(self, other: object) -> Workload:
        """The queries of both."""
        if not isinstance(other, Workload):
            return NotImplemented
        return Union((*_terms(self), *_terms(other)))

    def __mul__(self, times: Number) -> Workload:
        """The same queries, each of which counts so many times."""
        if isinstance(times, Workload):
            raise InvalidInput(
                "workloads are added up with +, or multiplied with a positive number. For a query along one factor "
                "times one along another write sf.ask(place=…, mode=…). Nothing was computed."
            )
        weight = positive_fraction(times, "the weight of a workload")
        return Union(tuple((weight * own, term) for own, term in _terms(self)))

    __rmul__ = __mul__


@dataclass(frozen=True)
class Union(Workload):
    """The queries of several workloads, those of each counting as often as its weight says."""

    terms: tuple[tuple[Fraction, Workload], ...]

    def check(self, domain: Domain) -> None:
        """Each by its own rule."""
        for _, term in self.terms:
            term.check(domain)

    def parts(self, domain: Domain) -> tuple[Part, ...] | None:
        """Those of all; None where some workload has none."""
        found: list[Part] = []
        for weight, term in self.terms:
            parts = term.parts(domain)
            if parts is None:
                return None
            found += [Part(weight * part.weight, part.kinds) for part in parts]
        return tuple(found)

    def count(self, domain: Domain) -> int:
        """Of all together."""
        return sum(term.count(domain) for _, term in self.terms)

    def weight(self, domain: Domain) -> Fraction:
        """Of all together."""
        return sum((weight * term.weight(domain) for weight, term in self.terms), Fraction(0))

    def gram(self, domain: Domain) -> Floats:
        """The weighted mean."""
        return np.asarray(reduce(np.add, [share * term.gram(domain) for share, term in self._means(domain)]))

    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """The weighted mean."""
        return _mean_terms((share, term.error_terms(noise, domain)) for share, term in self._means(domain))

    def mean_square(self, values: Floats, domain: Domain) -> float:
        """The weighted mean."""
        return sum(share * term.mean_square(values, domain) for share, term in self._means(domain))

    def _means(self, domain: Domain) -> list[tuple[float, Workload]]:
        total = self.weight(domain)
        return [(float(weight * term.weight(domain) / total), term) for weight, term in self.terms]

    def describe(self) -> str:
        """In words, one after the other."""
        return " + ".join(f"{_times(weight)}{term.describe()}" for weight, term in self.terms)

    def to_text(self) -> str:
        """Each with its weight."""
        return " + ".join(f"{_factor(weight)}{term.to_text()}" for weight, term in self.terms)

    def spec(self) -> dict[str, Any]:
        """Weights and workloads."""
        return {"kind": "union", "terms": [{"weight": str(w), "workload": term.spec()} for w, term in self.terms]}


def _terms(workload: Workload) -> tuple[tuple[Fraction, Workload], ...]:
    return workload.terms if isinstance(workload, Union) else ((Fraction(1), workload),)


def _times(weight: Fraction) -> str:
    return "" if weight == 1 else f"{text(weight)} × "


def _factor(weight: Fraction) -> str:
    """A weight before a workload, exactly."""
    if weight == 1:
        return ""
    return f"{weight} * " if weight.denominator == 1 else f"{quoted(str(weight))} * "


def _mean_terms(weighed: Iterator[tuple[float, list[float]]]) -> list[float]:
    return [float(term) for term in reduce(np.add, [share * np.array(terms) for share, terms in weighed])]
