"""send_recv and batch_send_recv: messages between pairs of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from hccl_py.call.op_param import OpParam, Table
from hccl_py.communicator.arrays import Array, Data, MissingArrayError, common_type
from hccl_py.communicator.collectives.parts import joined
from hccl_py.communicator.collectives.ranks import (
    Inputs,
    Ranks,
    check_rows,
    common_shape,
    counts_in,
    from_everyone,
    given,
    in_elements,
    index_of,
    row_arrays,
    row_shape,
)
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator

Pairs = Sequence[Sequence[int]]


def ring(inputs: Inputs, ranks: Ranks, pairs: Pairs | None, out: object) -> Data:
    """Lay out send_recv: messages of one shape; without pairs, rank r sends to r + 1."""
    name = "send_recv"
    arrays = given(name, inputs, ranks)
    listed = () if pairs is None else _numbers(name, pairs, 2)
    if pairs is not None and not listed:
        return _nothing(name, ranks)
    op = OpParam(name, 1, common_type(name, zip(ranks.local, arrays, strict=True), out))
    op = replace(op, pairs=listed)
    if any(array is not None and array.size for array in arrays):
        make_operator(name).check(op, ranks.topology)
    senders = {pair[0] for pair in listed} or set(range(ranks.size))
    receivers = {pair[1] for pair in listed} or senders
    sent = list(_sent(name, arrays, ranks, senders))
    shape = common_shape(name, sent) if sent else _shape_of(out)
    op = replace(op, count=prod(shape))
    shapes = [shape if rank in receivers else None for rank in ranks.local]
    return Data(op, arrays, shapes)


def batch(inputs: Sequence[Any], ranks: Ranks, pairs: Pairs, out: object) -> Data:
    """Lay out batch_send_recv: (source, destination, rows), with what a rank sends packed in the
    order of the list; or (source, destination), with one array for each message that it sends.
    """
    name = "batch_send_recv"
    listed = _numbers(name, pairs, 2, 3)
    if not listed:
        return _nothing(name, ranks)
    op = OpParam(name, 0, DataType.INT8, pairs=listed)
    make_operator(name).check(op, ranks.topology)
    if len({len(pair) for pair in listed}) > 1:
        raise ParameterError(
            f"Some messages of {name} have a count, others have not.", "Give all one, or none."
        )
    if len(listed[0]) == 2:
        arrays, listed = _from_lists(name, inputs, ranks, listed, out)
        op = replace(op, pairs=listed)
    else:
        arrays = row_arrays(name, inputs, ranks)
    known = counts_in(arrays, ranks) or counts_in(out, ranks)
    op = replace(op, dtype=common_type(name, known))
    row = row_shape(name, known)
    sent, received = (b // op.unit for b in make_operator(name).user_bytes(op, ranks.size))
    check_rows(name, arrays, sent.tolist(), ranks)
    receivers = {pair[1] for pair in listed}
    rows = received.tolist()
    shapes = [(rows[rank], *row) if rank in receivers else None for rank in ranks.local]
    return Data(in_elements(op, prod(row)), arrays, shapes)


def _from_lists(
    op: str, inputs: Sequence[Any], ranks: Ranks, pairs: Table, out: object
) -> tuple[list[Array | None], Table]:
    """Join what each rank sends; return the pairs with the rows of their messages."""
    senders = [pair[0] for pair in pairs]
    parts = [senders.count(rank) for rank in range(ranks.size)]
    arrays, rows = joined(op, inputs, ranks, parts, out)
    rest = [iter(mine) for mine in from_everyone(rows, ranks)]
    return arrays, tuple((*pair, next(rest[pair[0]])) for pair in pairs)


def _sent(
    op: str, arrays: Sequence[Array | None], ranks: Ranks, senders: set[int]
) -> Iterator[tuple[int, Array]]:
    """Yield the inputs of the ranks that send; refuse inputs of ranks that do not."""
    for rank, array in zip(ranks.local, arrays, strict=True):
        if rank in senders and array is None:
            raise MissingArrayError(f"Rank {rank} has no input.", f"It sends a message in {op}.")
        if rank in senders and array is not None:
            yield rank, array
        elif array is not None and array.size:
            raise ParameterError(f"Rank {rank} sends nothing in {op}.", "Give None as its input.")


def _numbers(op: str, pairs: Pairs, *lengths: int) -> Table:
    """Return the messages as tuples of whole numbers."""
    try:
        listed = [tuple(pair) for pair in pairs]
    except TypeError:
        raise ParameterError(
            f"{op} got {pairs!r:.60} as pairs.", "Give (source, destination) for every message."
        ) from None
    for number, pair in enumerate(listed):
        if len(pair) not in lengths:
            forms = "(source, destination)"
            forms += " or (source, destination, count)" if 3 in lengths else ""
            raise ParameterError(f"{op}: message {number} is {pair!r:.60}.", f"Give {forms}.")
    return tuple(tuple(index_of(n, f"A number of {op}'s pairs") for n in pair) for pair in listed)


def _nothing(op: str, ranks: Ranks) -> Data:
    none = [None] * len(ranks.local)
    return Data(OpParam(op, 0, DataType.INT8), none, none)


def _shape_of(out: object) -> tuple[int, ...]:
    """Return the shape of the messages where no local rank sends one."""
    arrays = out if isinstance(out, (list, tuple)) else ()
    shape: tuple[int, ...] = next((a.shape for a in arrays if a is not None), ())
    return shape
