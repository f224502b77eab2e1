"""A policy: a graph over the cells of a domain and ⊥. Everything that privacy means here follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import is_whole
from sfumato.linear import Operator
from sfumato.policies import distance as _distance
from sfumato.policies import sensitivity as _sensitivity
from sfumato.policies.absent import ABSENT
from sfumato.policies.moves import Moves
from sfumato.relations import Relation
from sfumato.values import Amounts, Values

if TYPE_CHECKING:
    from sfumato.policies.spanner import Spanner


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """Which changes to one record must stay hidden.

    Two datasets are neighbours when one record changes along one edge: from a cell to a neighbouring cell (`moves`),
    or between a cell and ⊥ (`absent`, a mask over the cells), that is by appearing or vanishing. A mechanism is
    ε-private under the policy when the probabilities of every set of outputs differ by at most a factor e^ε between
    neighbours; a change along a path of k edges is then hidden at k·ε. Built by `bounded`, `unbounded`, `within`,
    `threshold` and `graph`.

    >>> policy = sf.threshold(sf.Line(0, 24, cells=24), theta=2)
    >>> policy.diameter, policy.total_is_public
    (12.0, True)
    """

    domain: Domain
    moves: Moves
    joined: NDArray[np.bool_] | Callable[[], NDArray[np.bool_]] | None
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    relation: Relation | None = None
    public: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if self.name == "relation":
            public = f", public={list(self.public)!r}" if self.public else ""
            return f"policy({self.domain!r}, hide='{self.relation}'{public})"
        given = ", ".join(f"{k}={v!r}" for k, v in self.arguments.items() if k not in ("edges",) and v is not None)
        return f"{self.name}({self.domain!r}{', ' if given else ''}{given})"

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Policy) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def spec(self) -> dict[str, Any]:
        """The policy as plain data, from which `policy_from_spec` builds it again."""
        return {"name": self.name, "domain": self.domain.spec(), **self.arguments}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the specification: equal for equal policies, and only for those."""
        same = {"name": self.name, "domain": self.domain.identity(), **self.arguments}
        canonical = json.dumps(same, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def describe(self) -> str:
        """The neighbour relation in plain words.

        >>> sf.threshold(sf.Line(0, 24, cells=24), theta=2).describe()
        'one record moves by at most 2 cells (counted along the axes); the number of records is public'
        """
        return self.words

    @property
    def values(self) -> Values | None:
        """What is summed or counted in the place of records; None where records are."""
        return None

    @property
    def on_records(self) -> Policy:
        """The same between records, with all that is published of one: cell and value, where values are summed."""
        return self

    @property
    def on_cells(self) -> Policy:
        """The same as steps of one unit between cells, of which a change of a record takes at most `units`: what
        mechanisms are made for.
        """
        return self

    @property
    def units(self) -> int:
        """How many steps of one unit a change of a record takes at most: one, where records are counted."""
        return 1

    def around(self, values: Amounts) -> Policy:
        """The same for sums of the same value from another point on."""
        raise InvalidInput(f"policy={self.name!r} is of no sums of {values.column!r}.")

    def of_numbers(self) -> Policy:
        """The same for numbers of the records whose value is summed."""
        return self

    @property
    def covers_persons(self) -> bool:
        """Whether any change of one person's records, however many, is one step for each of what is counted of her."""
        return False

    @cached_property
    def absent(self) -> NDArray[np.bool_] | None:
        """The cells that are joined to ⊥, as a mask; None where none is.

        Where they follow from sources they are found when they are first asked for, and not to read a file.
        """
        return self.joined() if callable(self.joined) else self.joined

    @property
    def total_is_public(self) -> bool:
        """Whether no record can appear or vanish, so that the number of records is not hidden at all."""
        return self.joined is None

    @cached_property
    def hides_presence(self) -> bool:
        """Whether a record may appear and vanish in every cell; of domains of any size."""
        if self.relation is not None and self.relation.hides_presence:
            return True
        return self.absent is not None and bool(self.absent.all())

    @cached_property
    def changes(self) -> set[frozenset[int]]:
        """The axes along which one change from cell to cell may move a record at once; none of them is in vain."""
        return {axes for axes in self.moves.changes(self.domain.shape) if axes}

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The factors that were named public: no change touches them, whether or not their totals are exact."""
        return tuple(self.arguments.get("public", ()))

    @property
    def allows_dropping(self) -> bool:
        """Whether points outside the bounds may be dropped: only where leaving the domain is a change that the policy
        hides.
        """
        if self.arguments.get("sources") == "boundary":
            return True
        return self.hides_presence

    @property
    def structured(self) -> bool:
        """Whether the moves follow a rule on the grid, rather than a list."""
        return not self.moves.listed and self.whole

    @cached_property
    def whole(self) -> bool:
        """Whether a path joins all cells that agree in what is public: no totals but those are published exactly."""
        if self.public:
            return self.total_is_public and not self.moves.in_parts(self.domain.shape)
        return self.connected

    @cached_property
    def public_axes(self) -> tuple[int, ...]:
        """The positions of the axes along which the exact number of records is public, jointly."""
        return tuple(sorted(i for name in self.public for i in self.domain.factor(name).positions))

    @property
    def moves_by_road(self) -> bool:
        """Whether some change is one along roads, and none leads anywhere."""
        found = self.relation
        if found is None or found.hides_presence or found.changes_all:
            return False
        return any(
            self.domain.part(name).axes[0].has_roads for name in {str(rule.of) for rule in found.rules if rule.on_map}
        )

    @property
    def moves_exist(self) -> bool:
        """Whether any edge joins two cells."""
        return self.moves.exist and self.domain.size > 1

    def edges(self) -> NDArray[np.int64]:
        """Every edge as a pair of cell numbers (C order), ⊥ written as ABSENT = -1. For small domains.

        >>> sf.threshold(sf.Line(0, 3, cells=3), theta=1).edges().tolist()
        [[0, 1], [1, 2]]
        """
        pairs = self.moves.edges(self.domain.shape)
        if self.absent is None:
            return pairs
        appear = np.flatnonzero(self.absent)
        return np.concatenate([pairs, np.stack([appear, np.full_like(appear, ABSENT)], axis=-1)])

    @cached_property
    def components(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(label of every cell, whether the total of that component is public): what no path can hide."""
        if self.moves.follow_rule:
            return np.zeros(self.domain.size, dtype=np.int64), np.array([self.total_is_public])
        if self.hides_presence:
            return np.zeros(self.domain.size, dtype=np.int64), np.array([False])
        label = self.moves.labels(self.domain.shape)
        if self.absent is not None:  # whoever is joined to ⊥ is joined to all others that are
            grounded = np.zeros(int(label.max()) + 1, dtype=bool)
            grounded[label[self.absent.ravel()]] = True
            label = np.where(grounded[label], len(grounded), label)
        found, label = np.unique(label, return_inverse=True)
        public = np.ones(len(found), dtype=bool)
        if self.absent is not None and self.absent.any():
            public[-1] = False
        return label.reshape(-1).astype(np.int64), public

    @cached_property
    def connected(self) -> bool:
        """Whether every cell can be reached from every other one."""
        if self.moves.follow_rule or self.hides_presence:
            return True
        return len(np.unique(self.components[0])) == 1

    def sensitivity(self, strategy: Operator | Any) -> int | float:
        """The largest L1 distance between strategy·x and strategy·x' over all neighbours x, x': exact, from what is
        built.

        `strategy` is an operator or a (sparse) matrix with one column a cell.

        >>> sf.threshold(sf.Line(0, 4, cells=4), theta=1).sensitivity(np.tril(np.ones((4, 4), dtype=int)))
        1
        """
        return _sensitivity.sensitivity(self, strategy)

    def distance(self, u: Any, v: Any) -> float:
        """The length of the shortest path between two cells (numbers or index tuples, or ABSENT); infinite where none
        is.

        What a release at ε says about a change along that path is bounded by distance × ε.

        >>> sf.threshold(sf.Line(0, 24, cells=24), theta=2).distance(0, 5)
        3.0
        """
        return _distance.distance(self, self._vertex(u, "u"), self._vertex(v, "v"))

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two cells: times ε, the guarantee under replace-one differential privacy
        (Lemma 1).

        Exact without ⊥ and on small domains; elsewhere paths through ⊥ may be shorter and this is an upper bound, as it
        may be on listed graphs of more than 2,000 cells and on huge grids of three axes or more.
        """
        return _distance.diameter(self)

    @cached_property
    def eccentricity(self) -> float:
        """The largest distance from a cell to ⊥: times ε, the guarantee under add/remove differential privacy (Lemma
        1).

        Infinite where records cannot appear: presence is then not hidden. With very many cells an upper bound.
        """
        return _distance.eccentricity(self)

    def spanner(self, *, side: int | None = None) -> Spanner:
        """A sparser graph on the same cells with its exact stretch: run at ε/stretch on it to promise ε here."""
        from sfumato.policies.spanner import span  # a door: spanners look at policies, not the other way round

        return span(self, side=side)

    def _vertex(self, vertex: Any, name: str) -> int:
        if vertex is ABSENT:
            return ABSENT
        if isinstance(vertex, tuple):
            vertex = int(self.domain.ravel(vertex))
        if not is_whole(vertex):
            raise InvalidInput(f"{name}={vertex!r} is not a cell: give its number, its index tuple, or sf.ABSENT.")
        if not 0 <= vertex < self.domain.size:
            raise InvalidInput(f"{name}={vertex!r} is not a cell of this domain, which has {self.domain.size} cells.")
        return int(vertex)
