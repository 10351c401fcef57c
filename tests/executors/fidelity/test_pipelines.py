"""Pipelines of several servers of Atlas A2, held against models of HCCL's: every stream, signal and
transfer, and where in a buffer it goes.
"""

from collections.abc import Callable

import pytest

from hccl_executors import EXECUTORS
from hccl_py.topology import topology_of
from tests.executors.fidelity.pipelines import (
    Pipe,
    all_gather_pipeline,
    all_reduce_pipeline,
    reduce_scatter_pipeline,
)
from tests.executors.fidelity.recorded import events_of
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
CCL = 200_000
MODELS: dict[str, tuple[str, Callable[[Pipe, int, int], None], int]] = {
    "AllGatherMeshOpbasePipelineExecutor": ("all_gather", all_gather_pipeline, 4),
    "ReduceScatterMeshOpbasePipelineExecutor": ("reduce_scatter", reduce_scatter_pipeline, 4),
    "AllReduceMeshOpbasePipelineExecutor": ("all_reduce", all_reduce_pipeline, 1),
}
"""The op, the model, and how many bytes it counts as one."""


def check(name: str, servers: int, devices: int, count: int) -> None:
    """Compare all ranks; `devices` sub streams are asked for."""
    op, model, unit = MODELS[name]
    assert KINDS[name] == "same"
    where = topology_of(servers=servers, devices=devices)
    program = recorded(name, op_of(op, count), where, CCL)
    assert program.declared.sub_streams.tolist() == [devices] * where.size
    for rank in range(where.size):
        me = Pipe(rank, servers, devices)
        model(me, count * unit, CCL)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize(("servers", "devices"), [(2, 1), (2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("name", MODELS)
def test_pipelines(name: str, servers: int, devices: int) -> None:
    for count in (5001, 11_999):
        check(name, servers, devices, count)


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
def test_pipelines_of_more_servers(name: str) -> None:
    for servers in range(2, 8):
        for devices in (1, 2, 5, 8):
            for count in (1000, 11_777):
                check(name, servers, devices, count)
