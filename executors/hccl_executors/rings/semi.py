"""Semi rings: slots march through one server from both sides at once, n/2 steps for n devices.

    all_gather, n = 6, device 0      sub 0, from device 5      sub 1, from device 1
        step 1                       slot 5                    slot 1
        step 2                       slot 4                    slot 2
        step 3                       slot 3, first half        slot 3, second half

Every device talks to its two neighbours only, sub 0 to the one before, sub 1 to the one behind. In
every step the neighbours tell each other that they have come so far, both sub streams line up over
main, and each takes one slot. The slot of the device opposite comes in halves from both sides.

    reduce_scatter, n = 6, device 0  sub 0                     sub 1
        step 1                       slot 2, first half        slot 4, second half
        step 2                       slot 1                    slot 5
        step 3                       slot 0, first half        slot 0, second half
        step 4                       slot 0, second half       slot 0, first half

So partial sums of a slot march towards its device from both sides, and meet there: n/2 + 1 steps.
With two devices one step and one sub stream do.

In graph mode each step has a notify of its own, of the n + 4 that are requested for every transport
besides; in op-base mode Ack and DataSignal take turns. In the end all have been read.

Cost for n devices and N bytes in graph mode: all_gather n/2·α + (n-1)/n·N/2·β, reduce_scatter
(n/2+1)α + (n-1)/n·N/2·(β+γ). Source: all_gather_unified_march.cc and
reduce_scatter_unified_march.cc of cann-hcomm (b5f3e5b); HCCL takes them in graph mode only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hccl_executors.sources import hccl_executor, hccl_template
from hccl_executors.staging import delivered, request, staged
from hccl_py.executor import (
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.fidelity import same, steps
from hccl_py.orchestration import Chunks, Link, Region, Stream

__all__ = ["AllGatherSemiRingExecutor", "ReduceScatterSemiRingExecutor"]


class Step(NamedTuple):
    """What a device takes in a step, from the neighbour before and from the one behind."""

    before: Region
    behind: Region | None = None


class SemiRings(ABC):
    """Stage the input, march, deliver."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with an even number of devices, in a ring at least."""
        return require(
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.is_single_server, f"needs one server, there are {len(topology.servers)}"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (
                topology.size == 1 or topology.size % 2 == 0,
                f"needs an even number of devices, not {topology.size}",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A link to every device with n + 4 notifies besides, two sub streams, n + 4 notifies
        besides.
        """
        if rank.size == 1:
            return request(op, rank)
        asked = request(op, rank, ("level0", "mesh"), sub_streams=2)
        extra = rank.size + 4
        return replace(
            asked,
            planes=tuple(replace(plane, extra_notifies=extra) for plane in asked.planes),
            notifies=2 * asked.sub_streams + extra,
            max_count=rank.ccl_bytes // (rank.size * op.unit),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, march, deliver."""
        slots = staged(op, rank)
        if rank.size > 1:
            march = _March(rank, op.mode)
            march.run(self, self.steps(op, rank, slots))
        delivered(op, rank, slots)

    @abstractmethod
    def steps(self, op: OpParam, rank: Rank[Any, Any], slots: Chunks) -> Sequence[Step]:
        """Return what to take, step by step."""

    @abstractmethod
    def take(self, rank: Rank[Any, Any], stream: Stream, link: Link, part: Region) -> None:
        """Take a part from a neighbour."""


class _March:
    """Both marches of a device, and what keeps them and the neighbours in step."""

    def __init__(self, rank: Rank[Any, Any], mode: Mode) -> None:
        self.rank, self.graph = rank, mode is Mode.GRAPH
        plane, self.sides = rank.level0, 1 if rank.size == 2 else 2
        self.before, self.behind = plane.left, plane.right
        self.done = 0

    def run(self, semi: SemiRings, march: Sequence[Step]) -> None:
        """Take step after step, then hear that all has been read."""
        rank = self.rank
        with rank.fork(self.sides) as subs:
            for number in rank.main.steps("march", len(march)):
                step = march[number]
                self._meet(subs)
                self._line_up()
                semi.take(rank, subs[0], self.before, step.before)
                if step.behind is not None:
                    semi.take(rank, subs[1], self.behind, step.behind)
                self.done += 1
            if self.sides == 2 and not self.graph and not self.done % 2:
                # The last meeting was by DataSignal, which the end needs: one more, by Ack.
                self._line_up()
                self._meet(subs)
            for stream, link, other in self._ways(subs):
                link.tx_data_signal(stream)  # I have read yours
                other.rx_data_signal(stream)  # you have read mine

    def _ways(self, subs: Sequence[Stream]) -> list[tuple[Stream, Link, Link]]:
        """Return of each march its stream, the neighbour that it takes from, and the other one."""
        found = [(subs[0], self.before, self.behind)]
        if self.sides == 2:
            found.append((subs[1], self.behind, self.before))
        return found

    def _meet(self, subs: Sequence[Stream]) -> None:
        """Tell those who read from this device that they may; wait until it may read itself."""
        for stream, link, other in self._ways(subs):
            if self.graph:
                other.post(stream, self.done)
                link.wait(stream, self.done)
            elif self.done % 2 == 0:
                other.tx_ack(stream)
                link.rx_ack(stream)
            else:
                other.tx_data_signal(stream)
                link.rx_data_signal(stream)

    def _line_up(self) -> None:
        rank, subs = self.rank, self.rank.subs[: self.sides]
        ready, go = rank.notifies[:2], rank.notifies[2:4]
        for sub, notify in zip(subs, ready, strict=False):
            sub.post(notify)
            rank.main.wait(notify)
        for sub, notify in zip(subs, go, strict=False):
            rank.main.post(notify)
            sub.wait(notify)


class AllGatherSemiRingExecutor(SemiRings):
    """AllGather in one server; the last slot is cut at half of its bytes."""

    op = "all_gather"
    algorithm = "level0:double_ring"
    fidelity = same(
        hccl_executor("coll_all_gather/coll_all_gather_semi_ring_executor.cc"),
        hccl_template("temp_all_gather/all_gather_unified_march.cc"),
    ).with_cases(
        {
            "op_base": steps(
                "Stages in CCL_Out; HCCL takes it in graph mode only, where all is in the output.",
                hccl_template("temp_all_gather/all_gather_unified_march.cc"),
            )
        }
    )

    def steps(self, op: OpParam, rank: Rank[Any, Any], slots: Chunks) -> Sequence[Step]:
        """Slot after slot from both sides, then two halves of the one opposite."""
        n, me = rank.size, rank.level0.id
        if n == 2:
            return [Step(slots[(me - 1) % n])]
        nearer = [Step(slots[(me - k) % n], slots[(me + k) % n]) for k in range(1, n // 2)]
        opposite = slots[(me + n // 2) % n]
        half = opposite.size // 2
        return [*nearer, Step(opposite.head(half), opposite[half:])]

    def take(self, rank: Rank[Any, Any], stream: Stream, link: Link, part: Region) -> None:
        """Read it."""
        stream.copy(part, link.remote(part))


class ReduceScatterSemiRingExecutor(SemiRings):
    """ReduceScatter in one server: in the order of the marches, so sums do not depend on timing.
    Without inline reduce, data lands in the other CCL buffer, in scratch in graph mode.
    """

    op = "reduce_scatter"
    algorithm = "level0:double_ring"
    fidelity = same(
        hccl_executor("coll_reduce_scatter/coll_reduce_scatter_semi_ring_executor.cc"),
        hccl_template("temp_reduce_scatter/reduce_scatter_unified_march.cc"),
    ).with_cases(
        {
            "op_base": steps(
                "Stages in CCL_In; HCCL takes it in graph mode only, where all is in the input.",
                hccl_template("temp_reduce_scatter/reduce_scatter_unified_march.cc"),
            )
        }
    )

    def steps(self, op: OpParam, rank: Rank[Any, Any], slots: Chunks) -> Sequence[Step]:
        """Halves of what has the farthest to go, whole slots, then both halves of the own one."""
        n, me = rank.size, rank.level0.id
        own = slots[me]
        if n == 2:
            return [Step(own)]
        far = n // 2 + 1
        half = own.size // op.unit // 2 * op.unit
        farthest = Step(slots[(me - far) % n].head(half), slots[(me + far) % n][half:])
        whole = [
            Step(slots[(me - far - k) % n], slots[(me + far + k) % n]) for k in range(1, n // 2 - 1)
        ]
        return [
            farthest,
            *whole,
            Step(own.head(half), own[half:]),
            Step(own[half:], own.head(half)),
        ]

    def take(self, rank: Rank[Any, Any], stream: Stream, link: Link, part: Region) -> None:
        """Add it to what is here."""
        if rank.inline_reduce:
            stream.reduce(part, link.remote(part))
        else:
            beside = rank.landing(part)
            stream.copy(beside, link.remote(part))
            stream.reduce(part, beside)
