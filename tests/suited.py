"""Calls that an executor suits, drawn for property tests: no example is thrown away."""

from functools import lru_cache
from typing import NamedTuple

from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode
from hccl_py.plugins.executor import ops_of
from hccl_py.testing.calls import suits
from hccl_py.topology import PRESETS, Topology
from tests.recording import BY_NAME, filled, op_of

EVEN_OR_NOT = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
"""Devices of each server."""


class SuitedCall(NamedTuple):
    """An executor's name, and a call that it suits."""

    name: str
    op: OpParam
    topology: Topology


@lru_cache(maxsize=4096)
def suited_calls(
    preset: str, servers: tuple[int, ...], count: int, dtype: str, mode: Mode
) -> tuple[SuitedCall, ...]:
    """Return a call of every op of every executor that suits it, by the executors' names."""
    topology, found = Topology(PRESETS[preset], servers), []
    for name in sorted(BY_NAME):
        executor = BY_NAME[name]()
        for one in ops_of(executor):
            op = filled(op_of(one, count, dtype, mode=mode), topology.size)
            if suits(executor, op, topology):
                found.append(SuitedCall(name, op, topology))
    return tuple(found)


@st.composite
def suited(
    draw: st.DrawFn,
    presets: tuple[str, ...] = ("mesh",),
    servers: st.SearchStrategy[tuple[int, ...]] = EVEN_OR_NOT,
    counts: tuple[int, ...] = (0, 1, 1000, 5000),
    dtypes: tuple[str, ...] = ("fp32",),
    modes: tuple[Mode, ...] = (Mode.OP_BASE,),
) -> SuitedCall:
    """Draw where ranks lie and how much data they have, then an executor that suits that."""
    layout = draw(st.sampled_from(presets)), draw(servers)
    data = draw(st.sampled_from(counts)), draw(st.sampled_from(dtypes))
    found = suited_calls(*layout, *data, draw(st.sampled_from(modes)))
    return draw(st.sampled_from(found))
