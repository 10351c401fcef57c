"""The ranks of one batch, as executors see them.

`resources(op, rank)` gets a `RankView`, `orchestrate(op, rank)` a `Rank`. Both stand for many ranks
at once: `rank.id` and all that follows from it are per-rank values (values.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Generic, TypeVar, overload

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import Buffer, Mode
from hccl_py.orchestration.fabric import Fabric
from hccl_py.orchestration.plane import Membership, Plane, PlaneView
from hccl_py.orchestration.recorder import Recorder, orchestration_error
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.orchestration.stream import Notify, Stream
from hccl_py.orchestration.workers import Workers
from hccl_py.plugins.resources import ResourceRequest
from hccl_py.program.transports import LocalNotifies
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, OutOfBoundsError, PerRank, RankInt

T = TypeVar("T")
In = TypeVar("In", bound=Region | Chunks)
Out = TypeVar("Out", bound=Region | Chunks)
OnePlane = TypeVar("OnePlane")


class Requested(Sequence[T]):
    """Streams or notifies that were requested; any other index is refused with the number."""

    def __init__(self, things: Iterable[T], what: str, finding: str) -> None:
        self._things = tuple(things)
        self._what = what
        self._finding = finding

    def __len__(self) -> int:
        return len(self._things)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        try:
            return self._things[index]
        except IndexError:
            raise orchestration_error(
                f"There is no {self._what} {index}: {len(self._things)} were requested",
                "Ask for more in resources().",
                finding=self._finding,
            ) from None

    def __iter__(self) -> Iterator[T]:
        return iter(self._things)


class OnPlanes(ABC, Generic[OnePlane]):
    """A rank's planes by name; each is made when it is first asked for."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._planes: dict[str, OnePlane] = {}

    @abstractmethod
    def _make(self, name: str) -> OnePlane: ...

    @property
    def flat(self) -> OnePlane:
        """The plane that holds every rank."""
        return self.plane("flat")

    @property
    def level0(self) -> OnePlane:
        """The plane inside this rank's server."""
        return self.plane("level0")

    @property
    def level1(self) -> OnePlane:
        """The plane of the ranks with the same index in every server of a superpod."""
        return self.plane("level1")

    @property
    def level2(self) -> OnePlane:
        """The plane of the ranks with the same index in every superpod."""
        return self.plane("level2")

    @property
    def level12(self) -> OnePlane:
        """The plane of the ranks with the same index in every server of all superpods."""
        return self.plane("level12")

    @property
    def rings(self) -> tuple[OnePlane, ...]:
        """The rings inside this rank's server: one plane each, in the product's orders."""
        return tuple(map(self.plane, self.topology.rings))

    def plane(self, name: str) -> OnePlane:
        """Return a plane by name, one of `hccl_py.topology.PLANES`."""
        if name not in self._planes:
            self._planes[name] = self._make(name)
        return self._planes[name]


class RankView(OnPlanes[PlaneView]):
    """The facts about a rank that are known before its resources exist."""

    def __init__(self, ids: IntArray, op: OpParam, topology: Topology, ccl_bytes: int) -> None:
        super().__init__(topology)
        self.id: RankInt = PerRank.of(ids)
        self.size = topology.size
        self.ccl_bytes = ccl_bytes
        self.mode = op.mode
        self.inline_reduce = topology.reduces_inline(op.dtype, op.reduce)

    def _make(self, name: str) -> PlaneView:
        return PlaneView(self.topology, name, Membership.of(self.topology, name, self.id))


class CallRank(Generic[In, Out]):
    """The facts about a call that all kinds of recording share.

    `user_in` and `user_out` are regions or chunks of user memory, already cut to the round:
    all_gather's `user_out` has one chunk per rank. `start` is the number of elements of each part
    that earlier rounds have taken, `count` the number that this one takes of the largest part. `id`
    is the rank's number, a per-rank value, `size` the number of ranks, `ccl_bytes` the bytes of a
    CCL buffer; `inline_reduce` is true if links reduce the call's data type with its op.
    """

    user_in: In
    user_out: Out

    def __init__(self, ids: IntArray, op: OpParam, topology: Topology, ccl_bytes: int) -> None:
        self.id: RankInt = PerRank.of(ids)
        self.size = topology.size
        self.start = 0
        self.count = 0
        self.mode = op.mode
        self.inline_reduce = topology.reduces_inline(op.dtype, op.reduce)
        self.ccl_bytes = ccl_bytes

    def own(self, table: Sequence[int]) -> RankInt:
        """Return the number that a table has for the rank: `table[rank.id]` for every rank of the
        batch at once, where indexing a list would make a batch of each. IndexError for a table that
        has not one number for each rank.
        """
        if len(table) != self.size:
            raise OutOfBoundsError(f"a table of {len(table)} numbers for {self.size} ranks")
        values = np.asarray(table, dtype=np.int64)
        return self.id.looked_up(values) if isinstance(self.id, PerRank) else int(values[self.id])


class Rank(OnPlanes[Plane], CallRank[In, Out]):
    """The object that an executor records on: streams, notifies, planes with links, and this
    round's memory.

    `ccl_in`, `ccl_out` and `scratch` are whole. A stream, notify or link that the rank did not
    request raises OrchestrationError. `inline_reduces` says for SDMA and for RDMA whether they
    reduce the call's data type with its op; each link has its own answer.
    """

    def __init__(
        self,
        ids: IntArray,
        op: OpParam,
        fabric: Fabric,
        recorder: Recorder,
        ccl_bytes: int,
        request: ResourceRequest,
    ) -> None:
        OnPlanes.__init__(self, fabric.topology)
        CallRank.__init__(self, ids, op, fabric.topology, ccl_bytes)
        self.fabric = fabric
        self.recorder = recorder
        self.ccl_in = Region(Buffer.CCL_IN, 0, ccl_bytes)
        self.ccl_out = Region(Buffer.CCL_OUT, 0, ccl_bytes)
        self.scratch = Region(Buffer.SCRATCH, 0, request.scratch_bytes)
        self.main = Stream(recorder, 0)
        self.is_in_place = op.in_place
        product = fabric.topology.product
        self.inline_reduces = (
            product.reduces_inline(op.dtype, op.reduce),
            product.reduces_over_rdma(op.dtype, op.reduce),
        )
        self._request = request

    def _make(self, name: str) -> Plane:
        return Plane(self, name)

    @cached_property
    def subs(self) -> Requested[Stream]:
        """The sub streams that were requested; OrchestrationError for an index beyond them."""
        streams = (Stream(self.recorder, i + 1) for i in range(self._request.sub_streams))
        return Requested(streams, "sub stream", "UNDECLARED_STREAM")

    @cached_property
    def notifies(self) -> Requested[Notify]:
        """The local notifies that were requested: main's (one per sub), one per sub, then extra
        ones; OrchestrationError for an index beyond them.
        """
        cells = self.id * len(self.fabric.local_notifies.slots) + self.fabric.transports.cells
        notifies = (Notify(cells + slot) for slot in self._notify_slots)
        return Requested(notifies, "notify", "NOTIFY_INDEX_OUT_OF_RANGE")

    @cached_property
    def _workers(self) -> Workers:
        return Workers(self.main, self.subs, self.notifies)

    def fork(
        self,
        count: int | None = None,
        *,
        subs: Iterable[int | Stream] | None = None,
        by: Stream | None = None,
    ) -> AbstractContextManager[tuple[Stream, ...]]:
        """Wake sub streams (all, the first `count`, or those that `subs` names) from main, or from
        the stream `by`, which waits for them when the block ends. Use it as `with rank.fork() as
        streams:`.

        Forks may be open at the same time where they wake different sub streams. Raises
        OrchestrationError for streams that are awake already or were not requested, and for too
        few notifies.
        """
        return self._workers.fork(count, subs, by)

    def wake(self, sub: int | Stream, *, by: Stream | None = None) -> Stream:
        """Wake one sub stream from main, or from the stream `by`, and return it; it is awake until
        `join`, independent of forks of other streams. Raises the errors of `fork`.
        """
        return self._workers.wake(sub, by)

    def join(self, sub: int | Stream, *, to: Stream | None = None) -> None:
        """Let main, or the stream `to`, wait for a sub stream that is awake; OrchestrationError
        for one that is not.
        """
        self._workers.join(sub, to)

    def stage_in(self) -> Region:
        """Put this round's input where peers can reach it and it may be changed; return that
        memory.

        Op-base mode: a copy in CCL_In. Graph mode: the user's output after a copy of the input (no
        copy in place), because the input is the caller's. Raises OrchestrationError for an input of
        chunks, and for one that CCL_In does not hold.
        """
        if not isinstance(self.user_in, Region):
            raise orchestration_error(
                "stage_in() takes an input of one region", "Copy the chunks that you need."
            )
        if self.mode is Mode.OP_BASE:
            work = self._fitting(self.ccl_in, self.user_in.size)
        else:
            if not isinstance(self.user_out, Region):
                raise orchestration_error(
                    "In graph mode, stage_in() takes an output of one region",
                    "Copy the input to the chunks of rank.user_out that need it.",
                )
            work = self.user_out
            if self.is_in_place:
                return work
        self.main.copy(work, self.user_in)
        return work

    def stage_out(self) -> Chunks:
        """Return memory that peers can reach and that has one slot per chunk of this round's
        output, not filled.

        Op-base mode: CCL_Out, slots packed. Graph mode: the user's output itself. Raises
        OrchestrationError for an output of one region, and for slots that CCL_Out does not hold.
        """
        if not isinstance(self.user_out, Chunks):
            raise orchestration_error(
                "stage_out() takes an output of chunks", "Use ccl_out.head(size)."
            )
        if self.mode is Mode.GRAPH:
            return self.user_out
        sizes = self.user_out.sizes
        ends = sizes.cumsum(axis=1)
        self._fitting(self.ccl_out, int(ends.max()))
        return Chunks(Buffer.CCL_OUT, ends - sizes, sizes, self.user_out.row)

    def slots(self, size: RankInt) -> Chunks:
        """Return one slot of `size` bytes per rank, side by side in memory that peers can reach,
        not filled: CCL_In, or scratch in graph mode.
        """
        memory = self.ccl_in if self.mode is Mode.OP_BASE else self.scratch
        return memory.head(size * self.size).split(self.size, align=1)

    def deliver(self, work: Region | Chunks) -> None:
        """Copy finished data to this round's output, piece by piece; nothing to do where it lies
        there already.
        """
        if work.buffer != Buffer.USER_OUT:
            self.main.copy(self.user_out, work)

    def landing(self, region: Region) -> Region:
        """Return the memory for raw data that will be reduced into `region`: the same place in the
        other CCL buffer.

        In graph mode it is the same place in scratch, or half of scratch further on where `region`
        lies in scratch itself.
        """
        other = {Buffer.CCL_IN: Buffer.CCL_OUT, Buffer.CCL_OUT: Buffer.CCL_IN}.get(
            Buffer(region.buffer)
        )
        if other is not None:
            return Region(other, region.offset, region.size)
        start = region.offset
        if region.buffer == Buffer.SCRATCH:
            start = start + int(self.scratch.size) // 2
        return self.scratch[start : start + region.size]

    def _fitting(self, memory: Region, size: RankInt) -> Region:
        if int(size) > self.ccl_bytes:
            raise orchestration_error(
                f"{int(size)} bytes do not fit a CCL buffer of {self.ccl_bytes}",
                "Set ResourceRequest.max_count so that a round fits.",
                finding="OUT_OF_BOUNDS",
            )
        return memory.head(size)

    @property
    def _notify_slots(self) -> list[int]:
        """This rank's slots in the common layout."""
        request = self._request
        return LocalNotifies.requested(
            request.sub_streams, request.notify_count, self.fabric.sub_streams
        )
