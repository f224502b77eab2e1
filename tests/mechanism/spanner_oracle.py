"""Which noise leads from one neighbour to the other, found by walking through a spanner."""

from __future__ import annotations

import numpy as np

from sfumato.linear import CubeIncidence, Difference, Identity, Incidence, Kronecker, PseudoInverse


def spanner_witness(mechanism, u, v):
    """An integer vector c, block by block, with L·c = e_u - e_v (e_u alone when v is ⊥): the path between them."""
    blocks = mechanism.model.blocks
    found = [np.zeros(block.estimator.cols, dtype=np.int64) for block in blocks]
    if blocks and isinstance(blocks[0].estimator, Incidence):
        _along_the_tree(blocks[0].estimator, found[0], int(u), int(v))
        return found
    shape, side = mechanism.policy.domain.shape, mechanism.spanner.side
    ends = [tuple(int(i) for i in np.unravel_index(cell, shape)) for cell in (u, v)]
    for block, c in zip(blocks, found, strict=True):
        if isinstance(block.estimator, CubeIncidence):
            for end, sign in zip(ends, (1, -1), strict=True):
                _hang(shape, side, c, end, sign)
    there, here = ([i // side for i in end] for end in ends)  # the cubes, numbered along every axis
    for block, c in zip(blocks, found, strict=True):
        if isinstance(block.estimator, CubeIncidence):
            continue
        factors = [placed.inner for placed in block.estimator.factors]
        (axis,) = (i for i, factor in enumerate(factors) if isinstance(factor, Difference))
        flow = np.zeros([f.cols if i == axis else f.rows for i, f in enumerate(factors)], dtype=np.int64)
        low, high = sorted((here[axis], there[axis]))
        index = list(here)
        index[axis] = slice(low, high)
        flow[tuple(index)] = 1 if there[axis] < here[axis] else -1
        here[axis] = there[axis]
        across = [f.strategy if isinstance(f, PseudoInverse) else Identity(f.cols) for f in factors]
        c += Kronecker(across).forward(flow.ravel())
    return found


def _hang(shape, side, c, end, sign):
    """The internal edge of a cell, unless it is red: columns are the cells that are not, in C order."""
    red = np.ones(shape, dtype=bool)
    for axis, n in enumerate(shape):
        place = np.arange(n)
        along = (place % side == side - 1) | (place == n - 1)
        red &= np.expand_dims(along, [i for i in range(len(shape)) if i != axis])
    number = int(np.ravel_multi_index(end, shape))
    if not red[end]:
        c[number - int(red.ravel()[:number].sum())] += sign


def _along_the_tree(incidence, c, u, v):
    edges = np.stack([incidence.tail, incidence.head], axis=-1).tolist()
    reached = {v: []}
    while u not in reached:
        for j, (tail, head) in enumerate(edges):
            for a, b, sign in ((tail, head, -1), (head, tail, 1)):
                if a in reached and b not in reached:
                    reached[b] = [*reached[a], (j, sign)]
    for j, sign in reached[u]:
        c[j] += sign
