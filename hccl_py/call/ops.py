"""Facts of every op that are known without running it: one row per op, stated here alone.

    from hccl_py.call.ops import OPS

    OPS["gather"].rooted    # True

The behaviour of ops is in `hccl_py/operators/`, whose classes take their row from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

ALL_TO_ALL = ("all_to_all", "all_to_all_v", "all_to_all_vc")
"""The family that the same executors run."""

BARRIER_COUNT = 8
"""The fp32 elements of the all-reduce that HCCL's barrier is, but for the Ascend 950's."""


@dataclass(frozen=True)
class OpFacts:
    """One op: the parameters of its calls, and the shape of its memory.

    A call has a reduce op where it `reduces` and a root where it is `rooted`. `members` are the
    parameters that say how much every rank has, where that may differ; those in `optional` may be
    left out. `slots_in` and `slots_out` say that the input or output has one slot of `count`
    elements per rank.

    `in_place` says whether HCCL lets input and output be the same memory. The smaller one may also
    be the rank's own slot of the larger one where `own_slot` is not 0: 1 where the input lies
    behind the beginning of the output, -1 where it lies before.

    HCCL returns at once from a call without data, unless ranks may well have none
    (`returns_when_empty`). `runs_as` is the op whose executors run it, too. Where an op only
    `meets`, a call has no size and no result. Bus bandwidth is `bus_factor`·(p - 1)/p of algorithm
    bandwidth, or equal to it where that is 0.
    """

    name: str
    reduces: bool = False
    rooted: bool = False
    members: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    slots_in: bool = False
    slots_out: bool = False
    in_place: bool = False
    own_slot: int = 0
    returns_when_empty: bool = True
    runs_as: str = ""
    bus_factor: int = 0
    meets: bool = False

    @property
    def has_slots(self) -> bool:
        """True if a rank's input or output has one slot per rank."""
        return self.slots_in or self.slots_out

    @property
    def needs_count(self) -> bool:
        """True if a count alone says how much is communicated."""
        return not (self.members or self.meets)


_BLOCKS = ("counts", "displs")

_ROWS = (
    OpFacts("all_reduce", reduces=True, in_place=True, bus_factor=2),
    OpFacts("all_gather", slots_out=True, in_place=True, own_slot=1, bus_factor=1),
    OpFacts(
        "all_gather_v",
        members=_BLOCKS,
        optional=("displs",),
        returns_when_empty=False,
        bus_factor=1,
    ),
    OpFacts(
        "reduce_scatter", reduces=True, slots_in=True, in_place=True, own_slot=-1, bus_factor=1
    ),
    OpFacts(
        "reduce_scatter_v",
        reduces=True,
        members=_BLOCKS,
        optional=("displs",),
        returns_when_empty=False,
        bus_factor=1,
    ),
    OpFacts("broadcast", rooted=True, in_place=True),
    OpFacts("reduce", reduces=True, rooted=True, in_place=True),
    OpFacts("scatter", rooted=True, slots_in=True),
    OpFacts("gather", rooted=True, slots_out=True),
    OpFacts("all_to_all", slots_in=True, slots_out=True, bus_factor=1),
    OpFacts(
        "all_to_all_v",
        members=_BLOCKS,
        optional=("displs",),
        returns_when_empty=False,
        bus_factor=1,
    ),
    OpFacts("all_to_all_vc", members=("matrix",), returns_when_empty=False, bus_factor=1),
    OpFacts("send_recv", members=("pairs",), optional=("pairs",)),
    OpFacts("batch_send_recv", members=("pairs",)),
    OpFacts("barrier", reduces=True, in_place=True, runs_as="all_reduce", bus_factor=2, meets=True),
)

OPS = MappingProxyType({row.name: row for row in _ROWS})
"""All ops by name."""

COUNTS_OF = {
    row.name: (row.members[0], 2 if row.name in ALL_TO_ALL else 1)
    for row in _ROWS
    if row.members and "pairs" not in row.members
}
"""The ops that take counts by rank: the parameter that holds them, and how many axes it has."""
