"""Pipelines of several servers of Atlas A2, held against models of HCCL's: every stream, signal and
transfer, and where in a buffer it goes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import pipelines
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.pipelines import Pipe
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
CCL = 200_000


class Model(NamedTuple):
    """How HCCL runs an op in a mode, with how many sub streams fewer than devices of a server."""

    op: str
    mode: Mode
    run: Callable[..., None]
    spared: int = 0


BASE, GRAPH = Mode.OP_BASE, Mode.GRAPH
MODELS = {
    "AllGatherMeshOpbasePipelineExecutor": Model("all_gather", BASE, pipelines.all_gather_pipeline),
    "AllGatherMeshGraphPipelineExecutor": Model(
        "all_gather", GRAPH, pipelines.all_gather_graph_pipeline
    ),
    "ReduceScatterMeshOpbasePipelineExecutor": Model(
        "reduce_scatter", BASE, pipelines.reduce_scatter_pipeline
    ),
    "ReduceScatterMeshGraphPipelineExecutor": Model(
        "reduce_scatter", GRAPH, pipelines.reduce_scatter_graph_pipeline
    ),
    "AllReduceMeshOpbasePipelineExecutor": Model("all_reduce", BASE, pipelines.all_reduce_pipeline),
    "AllReduceMeshGraphPipelineExecutor": Model(
        "all_reduce", GRAPH, pipelines.all_reduce_graph_pipeline, spared=1
    ),
}
V_MODELS = {
    "AllGatherVMeshOpbasePipelineExecutor": Model(
        "all_gather_v", BASE, pipelines.all_gather_v_pipeline
    ),
    "AllGatherVMeshGraphPipelineExecutor": Model(
        "all_gather_v", GRAPH, pipelines.all_gather_v_graph_pipeline
    ),
    "ReduceScatterVMeshOpbasePipelineExecutor": Model(
        "reduce_scatter_v", BASE, pipelines.reduce_scatter_v_pipeline
    ),
}


def check(name: str, model: Model, shape: tuple[int, int], op: OpParam, *call: Any) -> int:
    """Compare all ranks of so many servers of so many devices; return the number of rounds."""
    servers, devices = shape
    assert KINDS[name] == "same"
    where, subs = topology_of(servers=servers, devices=devices), devices - model.spared
    program = recorded(name, replace(op, mode=model.mode), where, CCL)
    assert program.declared.sub_streams.tolist() == [subs] * where.size
    for rank in range(where.size):
        me = Pipe(rank, servers, devices, subs)
        model.run(me, *call, CCL)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(subs + 1)] == me.streams
    return program.rounds


def check_v(name: str, shape: tuple[int, int], counts: Sequence[int]) -> int:
    """The same for blocks of so many elements, between which there are gaps."""
    displs = [sum(counts[:rank]) + 7 * rank for rank in range(len(counts))]
    op = replace(op_of(V_MODELS[name].op, 0), counts=tuple(counts), displs=tuple(displs))
    return check(name, V_MODELS[name], shape, op, counts, displs)


def uneven(ranks: int, most: int) -> list[int]:
    """So many elements or fewer; some ranks have none."""
    return [most * (3 * rank % 5) // 4 for rank in range(1, ranks + 1)]


@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("name", MODELS)
def test_pipelines(name: str, shape: tuple[int, int]) -> None:
    for count in (1, 5001, 11_999):
        check(name, MODELS[name], shape, op_of(MODELS[name].op, count), count)


@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("name", V_MODELS)
def test_pipelines_of_v_ops(name: str, shape: tuple[int, int]) -> None:
    ranks = shape[0] * shape[1]
    assert check_v(name, shape, uneven(ranks, 11_999)) == 1
    assert check_v(name, shape, [0] * (ranks - 1) + [1]) == 1
    many = check_v(name, shape, uneven(ranks, 200_001))
    assert many > 2 or V_MODELS[name].mode is GRAPH


@pytest.mark.sweep
@pytest.mark.parametrize("name", [*MODELS, *V_MODELS])
def test_pipelines_of_more_servers(name: str) -> None:
    for servers in range(2, 8):
        for devices in (1, 2, 5, 8):
            shape, count = (servers, devices), 1000 if servers % 2 else 11_777
            if name in V_MODELS:
                check_v(name, shape, uneven(servers * devices, count))
            else:
                check(name, MODELS[name], shape, op_of(MODELS[name].op, count), count)


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Slots of any size, or blocks of several; one round."""
    form, is_v, most = form_of(at), name in V_MODELS, CCL // 4 // at.size // 3
    model = V_MODELS[name] if is_v else MODELS[name]
    subs = form.devices - model.spared
    counts = uneven(at.size, most)
    displs = [sum(counts[:rank]) + 7 * rank for rank in range(at.size)]
    given: tuple[Any, ...] = (counts, displs) if is_v else (most,)
    op = op_of(model.op, 0 if is_v else most, mode=mode)
    if is_v:
        op = replace(op, counts=tuple(counts), displs=tuple(displs))

    def run(rank: int) -> list[list[Event]]:
        me = Pipe(rank, form.all_servers, form.devices, subs)
        me.joined = form.joined
        model.run(me, *given, CCL)
        return me.streams

    yield Held(op, run, CCL)


HELD: Holders = dict.fromkeys([*MODELS, *V_MODELS], _held)
