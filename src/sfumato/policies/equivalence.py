"""Transformational equivalence: queries on cells under a policy are queries on the policy's edges under add/remove.

Let P be the incidence matrix of a connected policy (Haney, Machanavajjhala, Ding, VLDB 2015, section 4.4): one row a
cell, one column an edge. A change along the edge j adds ±P·e_j to the counts x, so with x = P·z it adds ±1 to one entry
of z, and W·x = (W·P)·z has the sensitivity under add/remove that W has under the policy. Where the policy has no ⊥ the
total n is public, and one cell stands for ⊥: its count is n less all the others, which adds a constant c(W, n).

What this promises, and what it does not. The matrix mechanism is the same on both sides for every connected policy
(Theorem 4.1): what it *reports* does not depend on the choice of z. The noisy edge values z + noise themselves are
private only where the policy is a tree, because z is then unique (Theorem 4.3). On a cycle any fixed rule for choosing
z moves it by more than one edge; `edge_sensitivity` says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Integers
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import is_whole
from sfumato.linear import Incidence, Matrix, Operator
from sfumato.linear.operator import as_operator
from sfumato.policies.absent import ABSENT
from sfumato.policies.policy import Policy
from sfumato.policies.spanner import Spanner
from sfumato.policies.tree import Tree

# `edge_sensitivity` solves for one flow an edge, each as long as all edges.
LARGEST_EDGE_TABLE = 25_000_000


def transform(graph: Policy | Spanner, *, replaced: int | None = None) -> Transformed:
    """The edges of a connected policy or spanner as a database of their own.

    Without ⊥ the cell `replaced` stands for it, by default the last one. Which one it is changes the edge values but
    no answer and no sensitivity.
    """
    policy = graph.policy if isinstance(graph, Spanner) else graph
    size = policy.domain.size
    if not policy.connected:
        parts = len(np.unique(policy.components[0]))
        raise InvalidInput(
            f"policy leaves its {size} cells in {parts} parts that no path joins; the equivalence holds for one part "
            "at a time. Nothing was computed. Use a policy that is connected."
        )
    pairs = graph.edges()
    if len(pairs) == 0:
        raise InvalidInput("policy has one cell and no edge: it hides nothing. Nothing was computed.")
    if (pairs == ABSENT).any():
        if replaced is not None:
            raise InvalidInput(f"replaced={replaced!r} is for policies without ⊥; this one has it. Leave replaced out.")
        root = int(ABSENT)
    else:
        root = size - 1 if replaced is None else _cell(replaced, size)
    # The root is always the head: its row is not there, and W·P comes out the same with it as without.
    pairs = np.where((pairs[:, 0] == root)[:, None], pairs[:, ::-1], pairs)
    return Transformed(policy=policy, edges=pairs, root=root)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Transformed:
    """A policy seen from its edges. Built by `transform`.

    `edges` are pairs (tail, head) of cell numbers, and the columns of everything here are in their order. `root` is the
    vertex that has no row: ⊥ (ABSENT), or the cell that stands for it.
    """

    policy: Policy
    edges: Integers
    root: int

    def __repr__(self) -> str:
        return f"Transformed({self.policy!r}, edges={len(self.edges)}, root={self.root})"

    @property
    def total_is_public(self) -> bool:
        """Whether a cell stands for ⊥, so that the total is needed to answer."""
        return self.root != ABSENT

    @property
    def is_tree(self) -> bool:
        """Whether the edge values are unique: only then may they be published with noise on them."""
        return len(self.edges) == self.policy.domain.size - self.total_is_public

    @cached_property
    def incidence(self) -> Incidence:
        """P, of full row rank: one row a cell (without the one that stands for ⊥), +1 at the tail, -1 at the head."""
        if not self.total_is_public:
            return Incidence(self.policy.domain.size, self.edges[:, 0], self.edges[:, 1])
        grounded = np.where(self.edges == self.root, ABSENT, self.edges - (self.edges > self.root))
        return Incidence(self.policy.domain.size - 1, grounded[:, 0], grounded[:, 1])

    def workload(self, workload: Operator | Any) -> scipy.sparse.csr_matrix:
        """W_G = W·P: the weight of every edge in every query. W is an operator or matrix with one column a cell."""
        # Every column of the full incidence matrix sums to zero, so W less its column for the root gives the same.
        full = Incidence(self.policy.domain.size, self.edges[:, 0], self.edges[:, 1])
        return scipy.sparse.csr_matrix(self._columns(workload) @ full.sparse())

    def constant(self, workload: Operator | Any, total: int) -> NDArray[Any]:
        """c(W, n): what the public total adds to every answer."""
        columns = self._columns(workload)
        if not self.total_is_public:
            raise InvalidInput("total is for policies without ⊥; under this one the number of records is not public.")
        return columns[:, [self.root]].toarray().ravel() * total

    def database(self, counts: NDArray[Any]) -> NDArray[Any]:
        """x_G with P·x_G = x: the values on the edges, along the last axis. It is as private as the counts.

        On a tree there is one such x_G, the sum of the counts beyond each edge; integers stay integers. On a graph with
        cycles it is the smallest in the Euclidean norm, in floating point: W_G·x_G is what it is for, never release.
        """
        x = self._flat(counts)
        if self._tree is None:
            return self.incidence.pinv(np.delete(x, self.root, axis=-1) if self.total_is_public else x)
        padded = x if self.total_is_public else np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)
        beyond = self._tree.subtree_sums(padded)
        downwards = self._tree.parent[self.edges[:, 0]] != self.edges[:, 1] % self._vertices
        child = np.where(downwards, self.edges[:, 1], self.edges[:, 0])
        return np.where(downwards, -1, 1) * beyond[..., child]

    def answers(self, workload: Operator | Any, values: NDArray[Any], *, total: int | None = None) -> NDArray[Any]:
        """The answers on the cells from (noisy) edge values: W_G·z, and c(W, n) where the total is public."""
        z = np.asarray(values)
        if z.shape[-1:] != (len(self.edges),):
            raise InvalidInput(f"values has shape {z.shape}, but there are {len(self.edges)} edges: one value an edge.")
        if self.total_is_public and total is None:
            raise InvalidInput("total=None, but no record can appear or vanish: give the number of records as total.")
        found = Matrix(self.workload(workload)).forward(z)
        return found if total is None else found + self.constant(workload, total)

    @cached_property
    def edge_sensitivity(self) -> float:
        """The largest L1 change of `database` over all neighbours: 1 on a tree, more on a graph with cycles.

        Noise of scale 1/ε on every edge value costs ε times this if those values are published.
        """
        if self._tree is not None:
            return 1
        if len(self.edges) ** 2 > LARGEST_EDGE_TABLE:
            raise TooLarge(f"{len(self.edges):,} edges are too many to solve for the flow of each one.")
        moves = self.incidence.sparse().toarray().T.astype(np.float64)
        return float(np.abs(self.incidence.pinv(moves)).sum(axis=-1).max())

    @cached_property
    def _tree(self) -> Tree | None:
        root = self.root % self._vertices
        return Tree.of(self._vertices, self.edges % self._vertices, root) if self.is_tree else None

    @property
    def _vertices(self) -> int:
        """Cells, and ⊥ as one more: modulo this number -1 becomes the last vertex, and cells stay what they are."""
        return self.policy.domain.size + (not self.total_is_public)

    def _columns(self, workload: Operator | Any) -> scipy.sparse.csr_matrix:
        operator = as_operator(workload)
        size = self.policy.domain.size
        if operator.cols != size:
            raise InvalidInput(
                f"workload has {operator.cols} columns, but the domain has {size} cells: give one column a cell."
            )
        return scipy.sparse.csr_matrix(operator.sparse())

    def _flat(self, counts: NDArray[Any]) -> NDArray[Any]:
        x = np.asarray(counts)
        domain = self.policy.domain
        x = x.ravel() if x.shape == domain.shape else x
        if x.shape[-1:] != (domain.size,) or x.dtype.kind not in "biuf":
            raise InvalidInput(
                f"counts is an array of {x.dtype} of shape {x.shape}; give numbers in the domain's shape, "
                f"{domain.shape}, or with {domain.size} along the last axis."
            )
        return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)  # sums would wrap around in narrow types


def _cell(replaced: object, size: int) -> int:
    if not is_whole(replaced) or not 0 <= replaced < size:
        raise InvalidInput(f"replaced={replaced!r} is not a cell: give a number from 0 to {size - 1}.")
    return int(replaced)
