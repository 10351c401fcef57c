"""Recording a call in one line, and changing what was recorded, for tests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import RDMA_WRITES, DataType, Mode, ReduceOp
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.program.describe import format_action, format_stream
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of

MESH_ONLY = ("AllGatherMeshOpbaseExecutor", "AllReduceMeshOpbaseLoopExecutor")
"""Executors that run in one server and in op-base mode only, as samples of their kind."""

SAMPLES = ("AllGatherComm", "AllReduceComm", *MESH_ONLY)
"""Executors of different make, where all of them would take long."""

BY_NAME = {cls.__name__: cls for cls in EXECUTORS}

CHOSEN = tuple(BY_NAME[name] for name in SAMPLES)


def op_of(
    name: str,
    count: int = 1000,
    dtype: str = "fp32",
    reduce: ReduceOp = ReduceOp.SUM,
    mode: Mode = Mode.OP_BASE,
) -> OpParam:
    """Return the parameters of a call; only reductions get the reduce op."""
    op = reduce if make_operator(name).reduces else None
    return OpParam(name, count, DataType.parse(dtype), op, mode=mode)


def filled(op: OpParam, ranks: int) -> OpParam:
    """Return the call with the usual root and amounts where it leaves them open."""
    if op.root is not None or op.counts or op.matrix or op.pairs:
        return op
    return make_operator(op.name).variants()[0](op, ranks)


def same_tasks(one: Program, other: Program) -> bool:
    """Whether two task views are the same, row by row."""
    mine, theirs = one.tasks, other.tasks
    return (mine.first == theirs.first).all() and all(
        (a == b).all()
        for a, b in zip(mine.meaning().values(), theirs.meaning().values(), strict=True)
    )


def recorded(
    executor: object,
    op: OpParam,
    topology: Topology | int = 4,
    ccl_bytes: int = 1 << 20,
    *,
    by_rank: bool = False,
) -> Program:
    """Record an executor, given as an instance, a class or a built-in's name."""
    if isinstance(executor, str):
        executor = BY_NAME[executor]
    if isinstance(executor, type):
        executor = executor()
    if isinstance(topology, int):
        topology = topology_of(topology)
    return record(
        executor,  # type: ignore[arg-type]
        filled(op, topology.size),
        topology,
        make_operator(op.name),
        ccl_bytes,
        by_rank=by_rank,
    )


def actions(program: Program, rank: int) -> list[str]:
    """Return what a rank does in words, each task with its stream, as recorded."""
    tasks = program.tasks
    rows = range(int(tasks.first[rank]), int(tasks.first[rank + 1]))
    return [f"{format_stream(int(tasks.stream[r]))} {format_action(program, r)}" for r in rows]


def writing_twice(program: Program, size: int | None = None) -> Program:
    """Return the program with every RDMA write done twice in a row, the second time with `size`
    bytes if that is given.
    """
    batches = []
    for batch in program.batches:
        instructions = []
        for i in batch.instructions:
            instructions.append(i)
            if i.kind in RDMA_WRITES:
                instructions.append(i if size is None else i._replace(size=size))
        batches.append(Batch(batch.ranks, tuple(instructions)))
    return replace(program, batches=tuple(batches))


def without(program: Program, drop: Callable[[Instruction], Any]) -> Program:
    """Return the program less the instructions that `drop` picks."""
    batches = tuple(
        Batch(b.ranks, tuple(i for i in b.instructions if not drop(i))) for b in program.batches
    )
    return replace(program, batches=batches)
