"""Timelines of small calls by every walk, for tests."""

from collections.abc import Callable

from hypothesis import strategies as st

from hccl_py.simulator import Stragglers, Timeline, simulate_contended, simulate_tasks
from hccl_py.topology import Topology
from hccl_py.topology.presets import PRESETS
from tests.recording import op_of, recorded
from tests.simulator.costs import COST

Walk = Callable[..., Timeline]


EXECUTORS = ("AllGatherComm", "AllReduceComm", "AllReduceMeshExecutor", "AllReduceRingExecutor")


def timed(
    name: str = "AllReduceComm",
    servers: tuple[int, ...] = (2, 2),
    slow: tuple[str, ...] = (),
    walk: Walk = simulate_tasks,
) -> Timeline:
    topology = Topology(PRESETS["atlas-800t-a2"], servers)
    op = op_of("all_gather" if "Gather" in name else "all_reduce", 999)
    return walk(recorded(name, op, topology), topology, COST, Stragglers.parse(slow))


arguments = (
    st.sampled_from(EXECUTORS),
    st.sampled_from([(1,), (2,), (3,), (2, 2), (1, 1, 1), (2, 2, 2)]),
    st.sampled_from([(), ("rank=0:3x",)]),
)


alone = st.builds(timed, *arguments)


timelines = alone | st.builds(timed, *arguments, st.just(simulate_contended))
