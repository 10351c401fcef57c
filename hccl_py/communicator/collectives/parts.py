"""v-ops: parts of their own sizes, counted in rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hccl_py.call.op_param import OpParam, Table
from hccl_py.communicator.arrays import Array, Data, common_type, one_per_rank, taken
from hccl_py.communicator.collectives.ranks import (
    Inputs,
    Ranks,
    all_given,
    check_rows,
    common_shape,
    counts_in,
    from_everyone,
    in_elements,
    numbers,
    row_arrays,
    row_shape,
    table,
)
from hccl_py.enums import ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator
from hccl_py.operators.parts import blocks_of, end_of, exchange_of, extents


def blocks(
    name: str,
    inputs: Inputs,
    ranks: Ranks,
    counts: object,
    displs: object,
    *,
    reduce: ReduceOp | None = None,
    out: object = None,
) -> Data:
    """Lay out all_gather_v, whose counts the inputs tell where none are given, or
    reduce_scatter_v.
    """
    gathers = name == "all_gather_v"
    arrays = row_arrays(name, inputs, ranks)
    if not gathers:
        full = all_given(name, inputs, ranks)
        common_shape(name, zip(ranks.local, full, strict=True))
    if gathers and counts is None:
        counts = from_everyone([0 if a is None else len(a) for a in arrays], ranks)
    known = counts_in(arrays, ranks) or counts_in(out, ranks)
    row = row_shape(name, known)
    op = OpParam(
        name,
        0,
        common_type(name, known),
        reduce,
        counts=() if counts is None else numbers(name, "counts", counts),
        displs=() if displs is None else numbers(name, "displs", displs),
    )
    make_operator(name).check(op, ranks.topology)
    mine, begins = blocks_of(op, ranks.size)
    end = end_of(mine, begins)
    sizes = mine.tolist()
    check_rows(name, arrays, sizes if gathers else [end] * ranks.size, ranks)
    shapes = [(end if gathers else sizes[rank], *row) for rank in ranks.local]
    return Data(in_elements(op, prod(row)), arrays, shapes)


def exchange(
    name: str,
    inputs: Sequence[Any],
    ranks: Ranks,
    counts: object,
    send_displs: object = None,
    recv_displs: object = None,
    out: object = None,
) -> Data:
    """Lay out all_to_all_v or all_to_all_vc. Without counts every rank's input is a list of arrays,
    one for each receiver, that say them.
    """
    what = "matrix" if name == "all_to_all_vc" else "counts"
    if counts is not None:
        arrays = row_arrays(name, inputs, ranks)
    elif what == "matrix":
        raise ParameterError(f"{name} needs a matrix.", "Give the rows from every rank to each.")
    else:
        arrays, rows = joined(name, inputs, ranks, [ranks.size] * ranks.size, out)
        counts = from_everyone(rows, ranks)
    known = counts_in(arrays, ranks) or counts_in(out, ranks)
    row = row_shape(name, known)
    amounts = table(name, what, counts)
    op = OpParam(
        name,
        0,
        common_type(name, known),
        counts=amounts if name == "all_to_all_v" else (),
        matrix=amounts if name == "all_to_all_vc" else (),
    )
    make_operator(name).check(op, ranks.topology)
    if send_displs is not None or recv_displs is not None:
        displs = _displacements(op, ranks, send_displs, recv_displs)
        op = OpParam(name, 0, op.dtype, counts=amounts, displs=displs)
        make_operator(name).check(op, ranks.topology)
    parts = exchange_of(op, ranks.size)
    check_rows(name, arrays, extents(parts.send_displs, parts.sends).tolist(), ranks)
    received = extents(parts.recv_displs, parts.receives).tolist()
    shapes = [(received[rank], *row) for rank in ranks.local]
    return Data(in_elements(op, prod(row)), arrays, shapes)


def joined(
    op: str, inputs: Sequence[Any], ranks: Ranks, parts: Sequence[int], out: object
) -> tuple[list[Array | None], list[list[int]]]:
    """Join the arrays of every rank along the first axis; return them with the rows of each.

    `parts` says how many arrays each rank has. None is an empty one; where there are no others,
    `out` tells their type.
    """
    lists = one_per_rank(op, inputs, "inputs", ranks.local)
    arrays = [
        _listed(op, rank, mine, parts[rank]) for rank, mine in zip(ranks.local, lists, strict=True)
    ]
    known = [
        (rank, array)
        for rank, mine in zip(ranks.local, arrays, strict=True)
        for array in mine
        if array is not None
    ] or counts_in(out, ranks)
    nothing = np.zeros((0, *row_shape(op, known)), common_type(op, known).numpy)
    whole: list[Array | None] = [
        np.concatenate([nothing, *(a for a in mine if a is not None and len(a))]) for mine in arrays
    ]
    return whole, [[0 if array is None else len(array) for array in mine] for mine in arrays]


def _listed(op: str, rank: int, given: Any, parts: int) -> list[Array | None]:
    if given is None and not parts:
        return []
    if not isinstance(given, (list, tuple)):
        raise ParameterError(
            f"Rank {rank}'s input of {op} is a {type(given).__name__}.",
            f"Give a list of {parts} arrays, or counts.",
        )
    if len(given) != parts:
        raise ParameterError(
            f"Rank {rank} has {len(given)} arrays in {op}.", f"It sends {parts}: give as many."
        )
    return [None if array is None else np.atleast_1d(taken(array, rank)) for array in given]


def _displacements(op: OpParam, ranks: Ranks, send: object, recv: object) -> Table:
    """Return a row for every rank: where parts begin in its input, then where in its output."""
    packed = exchange_of(op, ranks.size)
    from_ = packed.send_displs if send is None else table(op.name, "send_displs", send)
    to = packed.recv_displs if recv is None else table(op.name, "recv_displs", recv)
    shape = ranks.size, ranks.size
    for what, found in (("send_displs", from_), ("recv_displs", to)):
        if np.shape(found) != shape:
            raise ParameterError(
                f"{op.name} has {what} of shape {np.shape(found)}.",
                f"Give {ranks.size} x {ranks.size} whole numbers, for all ranks.",
            )
    return tuple(tuple(row) for row in np.concatenate([from_, to], axis=1).tolist())
