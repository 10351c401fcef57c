"""The collectives that a communicator offers: what each takes and gives.

A method says how its arguments are laid out (`communicator/collectives/`). Running is the same for
all of them, and so are the arguments `out`, `executor`, `stream` and `async_op`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, overload

import numpy.typing as npt

from hccl_py.communicator import collectives
from hccl_py.communicator.arrays import Data, Output
from hccl_py.communicator.collectives import Inputs, Ranks, reduction
from hccl_py.communicator.pending import Pending, Result
from hccl_py.communicator.planning import ExecutorChoice
from hccl_py.enums import ReduceOp

if TYPE_CHECKING:
    from typing_extensions import Unpack

Outputs: TypeAlias = Sequence[Output] | None
Reduce: TypeAlias = str | ReduceOp
Layout: TypeAlias = Callable[[Any, Any, Ranks], Data]
"""From inputs, outputs and ranks to what a call says."""


class EveryCall(TypedDict, total=False):
    """What every collective takes: see `hccl_py.Communicator`."""

    out: Outputs
    executor: ExecutorChoice
    stream: object


class Waiting(EveryCall, total=False):
    """A call that comes back with its result."""

    async_op: Literal[False]


class Async(EveryCall):
    """A call that comes back at once."""

    async_op: Literal[True]


class AnyCall(EveryCall, total=False):
    """Either."""

    async_op: bool


class CollectiveOps(ABC):
    """The collectives, on what runs them."""

    @abstractmethod
    def _collective(
        self,
        inputs: Any,
        layout: Layout,
        average: bool = False,
        *,
        out: Outputs = None,
        executor: ExecutorChoice = None,
        stream: object = None,
        async_op: bool = False,
    ) -> Result | Pending:
        """Lay out a call, plan it and run it."""

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
        return self._collective(
            inputs,
            lambda i, _, ranks: collectives.same("all_reduce", i, ranks, reduce=reduce),
            average,
            **how,
        )

    @overload
    def all_gather(self, inputs: Inputs, **how: Unpack[Waiting]) -> Result: ...
    @overload
    def all_gather(self, inputs: Inputs, **how: Unpack[Async]) -> Pending: ...
    def all_gather(self, inputs: Inputs, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give every rank the inputs of all ranks, joined along the first axis in rank order.

        All inputs have one shape and data type. They may lie at the beginning of their outputs, or
        each in its rank's slot.
        """
        return self._collective(
            inputs, lambda i, _, ranks: collectives.same("all_gather", i, ranks), **how
        )

    @overload
    def all_gather_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike | None = ...,
        *,
        displs: npt.ArrayLike | None = ...,
        **how: Unpack[Waiting],
    ) -> Result: ...
    @overload
    def all_gather_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike | None = ...,
        *,
        displs: npt.ArrayLike | None = ...,
        **how: Unpack[Async],
    ) -> Pending: ...
    def all_gather_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike | None = None,
        *,
        displs: npt.ArrayLike | None = None,
        **how: Unpack[AnyCall],
    ) -> Result | Pending:
        """Give every rank all inputs, which may differ along the first axis and be None.

        `counts` has the rows of each rank; without it the inputs tell. `displs` says in which row
        of the outputs each begins, by default packed in rank order; rows between are 0, or stay as
        they are in `out`.
        """
        return self._collective(
            inputs,
            lambda i, out, ranks: collectives.blocks(
                "all_gather_v", i, ranks, counts, displs, out=out
            ),
            **how,
        )

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
        return self._collective(
            inputs,
            lambda i, _, ranks: collectives.same("reduce_scatter", i, ranks, reduce=reduce),
            average,
            **how,
        )

    @overload
    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ...,
        *,
        displs: npt.ArrayLike | None = ...,
        **how: Unpack[Waiting],
    ) -> Result: ...
    @overload
    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ...,
        *,
        displs: npt.ArrayLike | None = ...,
        **how: Unpack[Async],
    ) -> Pending: ...
    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ReduceOp.SUM,
        *,
        displs: npt.ArrayLike | None = None,
        **how: Unpack[AnyCall],
    ) -> Result | Pending:
        """Give rank r its `counts[r]` rows of the reduction of all inputs: `sum`, `max` or `min`.

        They begin at row `displs[r]` of the inputs, by default packed in rank order.
        """
        reduce = op if isinstance(op, ReduceOp) else ReduceOp.parse(op)
        return self._collective(
            inputs,
            lambda i, _, ranks: collectives.blocks(
                "reduce_scatter_v", i, ranks, counts, displs, reduce=reduce
            ),
            **how,
        )

    @overload
    def broadcast(self, inputs: Inputs, root: int = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def broadcast(self, inputs: Inputs, root: int = ..., **how: Unpack[Async]) -> Pending: ...
    def broadcast(self, inputs: Inputs, root: int = 0, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give every rank the root's input; the others' may be None.

        HCCL broadcasts in place: give the same arrays as `inputs` and `out`.
        """
        return self._collective(
            inputs,
            lambda i, out, ranks: collectives.from_root("broadcast", i, ranks, root, out),
            **how,
        )

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
        return self._collective(
            inputs,
            lambda i, _, ranks: collectives.same("reduce", i, ranks, reduce=reduce, root=root),
            average,
            **how,
        )

    @overload
    def scatter(self, inputs: Inputs, root: int = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def scatter(self, inputs: Inputs, root: int = ..., **how: Unpack[Async]) -> Pending: ...
    def scatter(self, inputs: Inputs, root: int = 0, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give every rank its part of the root's input, cut along the first axis.

        The others' inputs may be None; they are not looked at.
        """
        return self._collective(
            inputs,
            lambda i, out, ranks: collectives.from_root("scatter", i, ranks, root, out),
            **how,
        )

    @overload
    def gather(self, inputs: Inputs, root: int = ..., **how: Unpack[Waiting]) -> Result: ...
    @overload
    def gather(self, inputs: Inputs, root: int = ..., **how: Unpack[Async]) -> Pending: ...
    def gather(self, inputs: Inputs, root: int = 0, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give the root all inputs, joined along the first axis in rank order.

        The others' outputs are None, in `out` too.
        """
        return self._collective(
            inputs, lambda i, _, ranks: collectives.same("gather", i, ranks, root=root), **how
        )

    @overload
    def all_to_all(self, inputs: Inputs, **how: Unpack[Waiting]) -> Result: ...
    @overload
    def all_to_all(self, inputs: Inputs, **how: Unpack[Async]) -> Pending: ...
    def all_to_all(self, inputs: Inputs, **how: Unpack[AnyCall]) -> Result | Pending:
        """Give rank r part r of every input, in rank order; inputs are cut along the first axis."""
        return self._collective(
            inputs, lambda i, _, ranks: collectives.same("all_to_all", i, ranks), **how
        )

    @overload
    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: npt.ArrayLike | None = ...,
        *,
        send_displs: npt.ArrayLike | None = ...,
        recv_displs: npt.ArrayLike | None = ...,
        **how: Unpack[Waiting],
    ) -> Result: ...
    @overload
    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: npt.ArrayLike | None = ...,
        *,
        send_displs: npt.ArrayLike | None = ...,
        recv_displs: npt.ArrayLike | None = ...,
        **how: Unpack[Async],
    ) -> Pending: ...
    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: npt.ArrayLike | None = None,
        *,
        send_displs: npt.ArrayLike | None = None,
        recv_displs: npt.ArrayLike | None = None,
        **how: Unpack[AnyCall],
    ) -> Result | Pending:
        """Send `counts[i][j]` rows from every rank i to every rank j.

        What a rank sends and what it receives is packed in rank order, or begins in the rows that
        `send_displs[i][j]` and `recv_displs[j][i]` say. Without counts every input is a list of
        arrays, one for each receiver.
        """
        return self._collective(
            inputs,
            lambda i, out, ranks: collectives.exchange(
                "all_to_all_v", i, ranks, counts, send_displs, recv_displs, out=out
            ),
            **how,
        )

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
        return self._collective(
            inputs,
            lambda i, out, ranks: collectives.exchange("all_to_all_vc", i, ranks, matrix, out=out),
            **how,
        )

    @overload
    def send_recv(
        self, inputs: Inputs, pairs: Sequence[Sequence[int]] | None = ..., **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def send_recv(
        self, inputs: Inputs, pairs: Sequence[Sequence[int]] | None = ..., **how: Unpack[Async]
    ) -> Pending: ...
    def send_recv(
        self, inputs: Inputs, pairs: Sequence[Sequence[int]] | None = None, **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Send the input of `src` to `dst` for all `pairs` (src, dst); by default every rank r
        sends to (r + 1) mod N.

        HCCL's Send at one rank, Recv at the other. All messages have one shape. Ranks that send
        nothing have None as input, those that receive nothing as output.
        """
        return self._collective(
            inputs, lambda i, out, ranks: collectives.ring(i, ranks, pairs, out), **how
        )

    @overload
    def batch_send_recv(
        self, inputs: Sequence[Any], pairs: Sequence[Sequence[int]], **how: Unpack[Waiting]
    ) -> Result: ...
    @overload
    def batch_send_recv(
        self, inputs: Sequence[Any], pairs: Sequence[Sequence[int]], **how: Unpack[Async]
    ) -> Pending: ...
    def batch_send_recv(
        self, inputs: Sequence[Any], pairs: Sequence[Sequence[int]], **how: Unpack[AnyCall]
    ) -> Result | Pending:
        """Send any messages at once, also several between two ranks, and to oneself.

        With `pairs` (src, dst, rows), what a rank sends lies packed in its input, in the order of
        the list; with (src, dst), its input is a list with one array for each message. What a rank
        receives lies packed in its output, in the order of the list; None where that is nothing.
        """
        return self._collective(
            inputs, lambda i, out, ranks: collectives.batch(i, ranks, pairs, out), **how
        )

    @overload
    def barrier(self, **how: Unpack[Waiting]) -> Result: ...
    @overload
    def barrier(self, **how: Unpack[Async]) -> Pending: ...
    def barrier(self, **how: Unpack[AnyCall]) -> Result | Pending:
        """Let nobody go on before everybody has come; there are no outputs.

        HCCL's all-reduce of 8 elements on internal memory, with all-reduce's executors and tag.
        """
        return self._collective((), lambda i, _, ranks: collectives.barrier(ranks), **how)
