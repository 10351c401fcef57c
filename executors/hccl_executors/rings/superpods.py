"""Rings inside the servers, then between the servers of a superpod, then between superpods: A3.

Slots go to the slowest plane before they multiply, so little crosses it. With n devices in each of
S servers in each of P superpods and slots of s bytes:

    all_gather       level2 (P-1)·s, level1 (S-1)·P·s, level0 (n-1)·S·P·s
    reduce_scatter   the mirror image, level0 first
    scatter          level2, level1, level0: whole superpods, servers, slots
    all_reduce       reduce-scatter on level0 and level1, all-reduce on level2, all-gathers back
    broadcast        scatter on level0 and level1, broadcast on level2, all-gathers back
    reduce           reduce-scatter on level0 and level1, reduce on level2, gathers back

The last plane that has several members takes the op itself, so level1 does with one superpod.

Where both dies of all packages take part there are two rings inside, the two ways round, else one;
of two dies, too. In op-base mode each ring has a helper stream besides, which moves data between
user memory and the CCL buffer meanwhile (`templates/direct_ring.py`); scatter has none, and reduce
does without. The executors that are named for it align two rings: all begin a read together
(`templates/aligned_rings.py`). HCCL requests helpers also where they have nothing to do.

Links that cannot reduce on their way bring data to the other CCL buffer (HCCL: scratch), in graph
mode to scratch. Source: cann-hcomm (b5f3e5b), the executors named below.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_executors.levels import fidelities
from hccl_executors.outer_levels import links
from hccl_executors.rings.orders import JOINED, ORDERS, Superpods, between
from hccl_executors.sources import adding_in_scratch, april
from hccl_executors.staging import request
from hccl_py.call.ops import OPS
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    Mode,
    OpParam,
    RankView,
    ResourceRequest,
    SourceFile,
    Topology,
    Unsuitable,
    require,
    same,
    steps,
)

_HELPED = ("all_gather", "all_reduce", "broadcast", "reduce_scatter", "reduce")
"""Ops whose rings have helper streams in op-base mode."""


class SuperpodRings(BaseExecutor):
    """Rings inside, `op.level1` between servers, `op.level2` between superpods. `alone` are the
    algorithms that `op.level1` may be with one superpod only.
    """

    op: str
    serial = False
    two_rings = False
    alone: tuple[str, ...] = ()

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers and superpods alike, and SDMA inside the servers."""
        joined = op.level1 in JOINED and topology.has_equal_servers
        level0, level1 = topology.level0, op.level1
        is_one = len(topology.superpods) == 1
        return require(
            (topology.is_even or joined, "needs servers alike, and superpods alike"),
            (is_one or level1 not in self.alone, f"{level1} takes one superpod"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (level0 != "8p_ring", "goes round one ring or two, and a server of 8 has four"),
            (
                level0 == "double_ring" or not self.two_rings,
                f"needs two rings in a server, not {level0}",
            ),
            (
                not (op.in_place and self.serial and _is_fetched_late(op)),
                "fetches what it sends first after what it keeps: not in place",
            ),
            (
                not (op.in_place and _is_fetched_at_once(op, topology)),
                "two devices fetch what they send while they fetch what they keep: not in place",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links on all planes; a sub stream for every ring but one, and a helper for every ring."""
        outside = [(rank.plane(name), word) for name, word in between(op, rank)]
        inside = [(ring.name, "ring") for ring in rank.rings]
        helped = op.mode is Mode.OP_BASE and op.name in _HELPED
        asked = request(
            op,
            rank,
            *inside,
            *links(op.name, outside, op.root or 0),
            sub_streams=len(inside) - 1 + (len(inside) if helped else 0),
        )
        return (
            asked if OPS[op.name].has_slots else replace(asked, max_count=rank.ccl_bytes // op.unit)
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        levels = Superpods(op, rank, aligned=self.two_rings, serial=self.serial)
        ORDERS[op.name](levels)


def _is_fetched_late(op: OpParam) -> bool:
    """True if a serial ring would fetch from an input over which it has written its output."""
    return op.name == "reduce_scatter" and op.mode is Mode.OP_BASE


def _is_fetched_at_once(op: OpParam, topology: Topology) -> bool:
    """True if a ring's first step is also its last one: with two devices, and no other server. That
    step receives into the output while it fetches the data to be sent.
    """
    return _is_fetched_late(op) and topology.servers == (2,)


_WORDS = {
    "all_reduce": "level1:NHR|NB|ring|AHC|AHC_BROKE;level2:NHR|NB|ring|H-D_R",
    "all_gather": "level1:NHR|NB|ring|AHC|AHC_BROKE;level2:NHR|NB|ring",
    "reduce_scatter": "level1:NHR|NB|ring|AHC|AHC_BROKE;level2:NHR|NB|ring",
    "broadcast": "level1:NHR|NB;level2:NHR|NB|H-D_R",
    "reduce": "level1:ring|H-D_R;level2:H-D_R|ring",
    "scatter": "level1:ring|NHR|NB;level2:ring|NHR|NB",
}
"""The algorithms of each op that HCCL's executors support; the first one stands in for all others
(`CollExecutorBase::SetAlgType`), for reduce and scatter in their own branches.
"""


_SOURCES: dict[str, tuple[SourceFile, ...]] = {
    "all_reduce": april(
        "coll_all_reduce_ring_for_910_93_executor",
        "reduce_scatter_ring_concurrent_direct",
        "all_gather_ring_concurrent_direct",
    ),
    "all_gather": april(
        "coll_all_gather_ring_for_910_93_executor", "all_gather_ring_concurrent_direct"
    ),
    "reduce_scatter": april(
        "coll_reduce_scatter_ring_for_910_93_executor", "reduce_scatter_ring_concurrent_direct"
    ),
    "broadcast": april(
        "coll_broadcast_ring_for_910_93_executor",
        "scatter_ring_concurrent_direct",
        "all_gather_ring_concurrent_direct",
    ),
    "reduce": april("coll_reduce_ring_for_910_93_executor", "gather_ring"),
    "scatter": april("coll_scatter_ring_for_910_93_executor", "scatter_ring_direct"),
}

_CASES: dict[str, dict[str, Fidelity]] = {
    "broadcast": {
        "double_ring": steps(
            "HCCL's root reads, too, to leave memory bandwidth to those who read from it, and with "
            "more than 4 MiB all ranks read before there is data. Both are left out, as they would "
            "read unwritten memory.",
            *april("scatter_double_ring_direct"),
        )
    },
}


def _same(op: str, *names: str) -> Fidelity:
    """Return that all is the same but for words of HCCL_ALGO, and what the op makes of them."""
    cases = {**fidelities(op), **_CASES.get(op, {})}
    found = same(*april(*names), *_SOURCES[op]).with_cases(cases)
    return adding_in_scratch(found) if op == "reduce_scatter" else found


class AllReduceRingFor91093Executor(SuperpodRings):
    """AllReduce over all levels. With AHC, level1 and level2 are one plane, where superpods may
    differ.
    """

    op = "all_reduce"
    algorithm = f"level0:ring;{_WORDS['all_reduce']}"
    fidelity = _same("all_reduce")


class AllGatherRingFor91093Executor(SuperpodRings):
    """AllGather over all levels, level2 first."""

    op = "all_gather"
    algorithm = f"level0:ring;{_WORDS['all_gather']}"
    fidelity = _same("all_gather")


class ReduceScatterRingFor91093Executor(SuperpodRings):
    """ReduceScatter over all levels, level0 first. Two devices alone not in place in op-base mode,
    where HCCL's copies overwrite an input that is being fetched.
    """

    op = "reduce_scatter"
    algorithm = f"level0:ring;{_WORDS['reduce_scatter']}"
    fidelity = _same("reduce_scatter")


class BroadCastRingFor91093Executor(SuperpodRings):
    """Broadcast over all levels. All servers scatter, though only the root's result is read; in the
    others the first device scatters its own buffer.
    """

    op = "broadcast"
    algorithm = f"level0:ring;{_WORDS['broadcast']}"
    fidelity = _same("broadcast")


class ReduceRingFor91093Executor(SuperpodRings):
    """Reduce over all levels. HCCL requests helpers and does not use them."""

    op = "reduce"
    algorithm = f"level0:ring;{_WORDS['reduce']}"
    alone = ("H-D_R",)
    fidelity = _same("reduce")


class ScatterRingFor91093Executor(SuperpodRings):
    """Scatter over all levels, level2 first; rings have no helpers."""

    op = "scatter"
    algorithm = f"level0:ring;{_WORDS['scatter']}"
    fidelity = _same("scatter")


class AlignedAllReduceDoubleRingFor91093Executor(SuperpodRings):
    """AllReduce where there are two rings."""

    op = "all_reduce"
    algorithm = f"level0:double_ring;{_WORDS['all_reduce']}"
    two_rings = True
    fidelity = _same("all_reduce", "coll_aligned_all_reduce_double_ring_for_910_93_executor")


class AlignedAllGatherDoubleRingFor91093Executor(SuperpodRings):
    """AllGather where there are two rings."""

    op = "all_gather"
    algorithm = f"level0:double_ring;{_WORDS['all_gather']}"
    two_rings = True
    fidelity = _same(
        "all_gather",
        "coll_aligned_all_gather_double_ring_for_910_93_executor",
        "aligned_all_gather_double_ring",
    )


class AlignedReduceScatterDoubleRingFor91093Executor(SuperpodRings):
    """ReduceScatter where there are two rings; see ReduceScatterRingFor91093Executor."""

    op = "reduce_scatter"
    algorithm = f"level0:double_ring;{_WORDS['reduce_scatter']}"
    two_rings = True
    fidelity = _same(
        "reduce_scatter",
        "coll_aligned_reduce_scatter_double_ring_for_910_93_executor",
        "aligned_reduce_scatter_double_ring",
    )


class AllReduceFastDoubleRingFor91093Executor(SuperpodRings):
    """AllReduce where there are two rings, and the second one's data is copied to the CCL buffer
    before the rings start, by main alone. HCCL takes it for servers with seven HCCS ports, since
    2026 for every double ring.
    """

    op = "all_reduce"
    algorithm = f"level0:double_ring;{_WORDS['all_reduce']}"
    two_rings = True
    serial = True
    fidelity = _same("all_reduce", "coll_all_reduce_fast_double_ring_for_910_93_executor")


class ReduceScatterFastDoubleRingFor91093Executor(SuperpodRings):
    """ReduceScatter likewise; not in place in op-base mode, where HCCL's order of copies overwrites
    an input that has not been fetched yet.
    """

    op = "reduce_scatter"
    algorithm = f"level0:double_ring;{_WORDS['reduce_scatter']}"
    two_rings = True
    serial = True
    fidelity = _same(
        "reduce_scatter",
        "coll_reduce_scatter_fast_double_ring_for_910_93_executor",
        "aligned_reduce_scatter_double_ring_with_serial_local_copy",
    )
