"""The collectives that a communicator offers: the inputs and outputs of each.

A method opens the call, lays out its arguments (`communicator/collectives/`) and runs it. Only the
layout differs; the arguments `out`, `executor`, `stream` and `async_op` are those of all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, overload

import numpy.typing as npt

from hccl_py.communicator import collectives
from hccl_py.communicator.arrays import Data, Output
from hccl_py.communicator.collectives import Inputs, Ranks, reduction
from hccl_py.communicator.pending import Pending, Result
from hccl_py.communicator.planning import ExecutorChoice
from hccl_py.communicator.tensors import Tensors
from hccl_py.enums import ReduceOp

if TYPE_CHECKING:
    from typing_extensions import Unpack

Outputs: TypeAlias = Sequence[Output] | None
Reduce: TypeAlias = str | ReduceOp
Rows: TypeAlias = npt.ArrayLike | None
Pairs: TypeAlias = Sequence[Sequence[int]]


@dataclass(frozen=True)
class CallArguments:
    """The arguments of one call: `inputs` and `out` as arrays, and how to run it. `tensors` are the
    caller's, None where it gave arrays.
    """

    inputs: Any
    out: Any
    ranks: Ranks
    tensors: Tensors | None
    executor: ExecutorChoice
    stream: object
    async_op: bool


class EveryCall(TypedDict, total=False):
    """Keywords of every collective: see `hccl_py.Communicator`."""

    out: Outputs
    executor: ExecutorChoice
    stream: object


class Waiting(EveryCall, total=False):
    """Keywords of a call that returns its result."""

    async_op: Literal[False]


class Async(EveryCall):
    """Keywords of a call that returns at once."""

    async_op: Literal[True]


class AnyCall(EveryCall, total=False):
    """Keywords of either."""

    async_op: bool


class CollectiveOps(ABC):
    """The collectives: each lays out its arguments, and the communicator runs the call."""

    @abstractmethod
    def _open_call(
        self,
        inputs: Any,
        *,
        out: Outputs = None,
        executor: ExecutorChoice = None,
        stream: object = None,
        async_op: bool = False,
    ) -> CallArguments:
        """Open the communicator, and return a call's arguments with arrays in place of tensors."""

    @abstractmethod
    def _run_call(self, call: CallArguments, data: Data, average: bool = False) -> Result | Pending:
        """Plan a call that has been laid out, and run it."""

    @overload
    def all_reduce(self, inputs: Inputs, op: Reduce = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def all_reduce(self, inputs: Inputs, op: Reduce = ..., **how: Unpack[Async]) -> Pending: ...
    def all_reduce(
        self, inputs: Inputs, op: Reduce = ReduceOp.SUM, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Give every rank the reduction of all inputs: `sum`, `prod`, `max`, `min`, or `avg`.

        All inputs have one shape and data type. `out` may be the same arrays. `avg` is a sum,
        divided by the number of ranks after it, of floats only; HCCL has none.
        """
        reduce, average = reduction(op)
        call = self._open_call(inputs, **how)
        data = collectives.same("all_reduce", call.inputs, call.ranks, reduce=reduce)
        return self._run_call(call, data, average)

    @overload
    def all_gather(self, inputs: Inputs, **how: Unpack[Waiting]) -> Result: ...
    @overload
    def all_gather(self, inputs: Inputs, **how: Unpack[Async]) -> Pending: ...
    def all_gather(self, inputs: Inputs, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give every rank the inputs of all ranks, joined along the first axis in rank order.

        All inputs have one shape and data type. They may lie at the beginning of their outputs, or
        each in its rank's slot.
        """
        call = self._open_call(inputs, **how)
        data = collectives.same("all_gather", call.inputs, call.ranks)
        return self._run_call(call, data)

    @overload
    def all_gather_v(
        self, inputs: Inputs, counts: Rows = ..., *, displs: Rows = ..., **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def all_gather_v(
        self, inputs: Inputs, counts: Rows = ..., *, displs: Rows = ..., **how: Unpack[Async]
    ) -> Pending: ...
    def all_gather_v(
        self, inputs: Inputs, counts: Rows = None, *, displs: Rows = None, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Give every rank all inputs, which may differ along the first axis and be None.

        `counts` has the rows of each rank; without it the inputs tell. `displs` says in which row
        of the outputs each begins, by default packed in rank order; rows between are 0, or stay as
        they are in `out`.
        """
        call = self._open_call(inputs, **how)
        data = collectives.blocks(
            "all_gather_v", call.inputs, call.ranks, counts, displs, out=call.out
        )
        return self._run_call(call, data)

    @overload
    def reduce_scatter(
        self, inputs: Inputs, op: Reduce = ..., **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def reduce_scatter(self, inputs: Inputs, op: Reduce = ..., **how: Unpack[Async]) -> Pending: ...
    def reduce_scatter(
        self, inputs: Inputs, op: Reduce = ReduceOp.SUM, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Give every rank its part of the reduction of all inputs, cut along the first axis.

        The ops are those of `all_reduce`. An output may lie at the beginning of its input, or all
        in their ranks' parts.
        """
        reduce, average = reduction(op)
        call = self._open_call(inputs, **how)
        data = collectives.same("reduce_scatter", call.inputs, call.ranks, reduce=reduce)
        return self._run_call(call, data, average)

    @overload
    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ...,
        *,
        displs: Rows = ...,
        **how: Unpack[Waiting],
    ) -> Result: ...
    @overload
    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ...,
        *,
        displs: Rows = ...,
        **how: Unpack[Async],
    ) -> Pending: ...
    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ReduceOp.SUM,
        *,
        displs: Rows = None,
        **how: Unpack[AnyCall],
    ) -> Result | Pending:
        """Give rank r its `counts[r]` rows of the reduction of all inputs: `sum`, `max` or `min`.

        They begin at row `displs[r]` of the inputs, by default packed in rank order.
        """
        reduce = op if isinstance(op, ReduceOp) else ReduceOp.parse(op)
        call = self._open_call(inputs, **how)
        data = collectives.blocks(
            "reduce_scatter_v", call.inputs, call.ranks, counts, displs, reduce=reduce
        )
        return self._run_call(call, data)

    @overload
    def broadcast(self, inputs: Inputs, root: int = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def broadcast(self, inputs: Inputs, root: int = ..., **how: Unpack[Async]) -> Pending: ...
    def broadcast(self, inputs: Inputs, root: int = 0, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give every rank the root's input; the others' may be None.

        HCCL broadcasts in place: give the same arrays as `inputs` and `out`.
        """
        call = self._open_call(inputs, **how)
        data = collectives.from_root("broadcast", call.inputs, call.ranks, root, call.out)
        return self._run_call(call, data)

    @overload
    def reduce(
        self, inputs: Inputs, root: int = ..., op: Reduce = ..., **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def reduce(
        self, inputs: Inputs, root: int = ..., op: Reduce = ..., **how: Unpack[Async]
    ) -> Pending: ...
    def reduce(
        self, inputs: Inputs, root: int = 0, op: Reduce = ReduceOp.SUM, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Give the root the reduction of all inputs; the ops are those of `all_reduce`.

        The others' outputs are None. `out` may have None there too; what an array there holds
        afterwards is open, as in HCCL.
        """
        reduce, average = reduction(op)
        call = self._open_call(inputs, **how)
        data = collectives.same("reduce", call.inputs, call.ranks, reduce=reduce, root=root)
        return self._run_call(call, data, average)

    @overload
    def scatter(self, inputs: Inputs, root: int = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def scatter(self, inputs: Inputs, root: int = ..., **how: Unpack[Async]) -> Pending: ...
    def scatter(self, inputs: Inputs, root: int = 0, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give every rank its part of the root's input, cut along the first axis.

        The others' inputs may be None; they are not looked at.
        """
        call = self._open_call(inputs, **how)
        data = collectives.from_root("scatter", call.inputs, call.ranks, root, call.out)
        return self._run_call(call, data)

    @overload
    def gather(self, inputs: Inputs, root: int = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def gather(self, inputs: Inputs, root: int = ..., **how: Unpack[Async]) -> Pending: ...
    def gather(self, inputs: Inputs, root: int = 0, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give the root all inputs, joined along the first axis in rank order.

        The others' outputs are None, in `out` too.
        """
        call = self._open_call(inputs, **how)
        data = collectives.same("gather", call.inputs, call.ranks, root=root)
        return self._run_call(call, data)

    @overload
    def all_to_all(self, inputs: Inputs, **how: Unpack[Waiting]) -> Result: ...
    @overload
    def all_to_all(self, inputs: Inputs, **how: Unpack[Async]) -> Pending: ...
    def all_to_all(self, inputs: Inputs, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give rank r part r of every input, in rank order; inputs are cut along the first axis."""
        call = self._open_call(inputs, **how)
        data = collectives.same("all_to_all", call.inputs, call.ranks)
        return self._run_call(call, data)

    @overload
    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: Rows = ...,
        *,
        send_displs: Rows = ...,
        recv_displs: Rows = ...,
        **how: Unpack[Waiting],
    ) -> Result: ...
    @overload
    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: Rows = ...,
        *,
        send_displs: Rows = ...,
        recv_displs: Rows = ...,
        **how: Unpack[Async],
    ) -> Pending: ...
    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: Rows = None,
        *,
        send_displs: Rows = None,
        recv_displs: Rows = None,
        **how: Unpack[AnyCall],
    ) -> Result | Pending:
        """Send `counts[i][j]` rows from every rank i to every rank j.

        What a rank sends and what it receives is packed in rank order, or begins in the rows that
        `send_displs[i][j]` and `recv_displs[j][i]` say. Without counts every input is a list of
        arrays, one for each receiver.
        """
        call = self._open_call(inputs, **how)
        data = collectives.exchange(
            "all_to_all_v",
            *(call.inputs, call.ranks, counts, send_displs, recv_displs),
            out=call.out,
        )
        return self._run_call(call, data)

    @overload
    def all_to_all_vc(
        self, inputs: Inputs, matrix: npt.ArrayLike, **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def all_to_all_vc(
        self, inputs: Inputs, matrix: npt.ArrayLike, **how: Unpack[Async]
    ) -> Pending: ...
    def all_to_all_vc(
        self, inputs: Inputs, matrix: npt.ArrayLike, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Send `matrix[i][j]` rows from every rank i to every rank j, packed in rank order."""
        call = self._open_call(inputs, **how)
        data = collectives.exchange("all_to_all_vc", call.inputs, call.ranks, matrix, out=call.out)
        return self._run_call(call, data)

    @overload
    def send_recv(
        self, inputs: Inputs, pairs: Pairs | None = ..., **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def send_recv(
        self, inputs: Inputs, pairs: Pairs | None = ..., **how: Unpack[Async]
    ) -> Pending: ...
    def send_recv(
        self, inputs: Inputs, pairs: Pairs | None = None, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Send the input of `src` to `dst` for all `pairs` (src, dst); by default every rank r
        sends to (r + 1) mod N.

        HCCL's Send at one rank, Recv at the other. All messages have one shape. Ranks that send
        nothing have None as input, those that receive nothing as output.
        """
        call = self._open_call(inputs, **how)
        data = collectives.ring(call.inputs, call.ranks, pairs, call.out)
        return self._run_call(call, data)

    @overload
    def batch_send_recv(
        self, inputs: Sequence[Any], pairs: Pairs, **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def batch_send_recv(
        self, inputs: Sequence[Any], pairs: Pairs, **how: Unpack[Async]
    ) -> Pending: ...
    def batch_send_recv(
        self, inputs: Sequence[Any], pairs: Pairs, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Send any messages at once, also several between two ranks, and to oneself.

        With `pairs` (src, dst, rows), what a rank sends lies packed in its input, in the order of
        the list; with (src, dst), its input is a list with one array for each message. What a rank
        receives lies packed in its output, in the order of the list; None where that is nothing.
        """
        call = self._open_call(inputs, **how)
        data = collectives.batch(call.inputs, call.ranks, pairs, call.out)
        return self._run_call(call, data)

    @overload
    def barrier(self, **how: Unpack[Waiting]) -> Result: ...
    @overload
    def barrier(self, **how: Unpack[Async]) -> Pending: ...
    def barrier(self, **how: Unpack[AnyCall]) -> Result | Pending:
        """Hold every rank until all ranks have made the call; there are no outputs.

        HCCL's all-reduce of 8 elements on internal memory, with all-reduce's executors and tag.
        """
        call = self._open_call((), **how)
        return self._run_call(call, collectives.barrier(call.ranks))
