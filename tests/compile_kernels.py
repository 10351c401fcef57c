"""Compile one half of the kernels: python -m tests.compile_kernels verifier

Small programs run with kernels that are compiled from the first loop step on; numba keeps the
machine code on disk. What one half compiles runs plain in the other.
"""

import sys

import numpy as np

import hccl_py.program.kernels as kernels
from hccl_platform.lowering.kernels import reduce_words
from hccl_py.enums import DataType
from hccl_py.program.levels import levels
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_batches, simulate_contended, simulate_tasks
from hccl_py.simulator.contended import Contention
from hccl_py.simulator.contended.classes import classes_of
from hccl_py.topology import topology_of
from hccl_py.topology.networks.shortest import Graph
from hccl_py.topology.networks.spray import Spreading
from hccl_py.verifier import verify
from tests.kernel_cache import kernels_loaded
from tests.platform.running import TILES, run, whole_numbers
from tests.recording import op_of, recorded

TILED = [d.value for d in DataType if d is not DataType.FP32 and not d.is_moved]
"""Types whose tiles are compiled besides fp32, which the other half has: each has its own."""


def compile_always() -> None:
    """From here on everything that is called runs compiled."""
    kernels.WORTH_COMPILING = kernels.WORTH_CALLING = 0


def compile_verifier() -> None:
    """Compile what matches, verifies, and unites the moves of a run."""
    compile_always()
    servers = topology_of(servers=2, devices=4)
    program = recorded("AllReduceMeshExecutor", op_of("all_reduce"), servers)
    verify(program)
    levels(program)
    program.open_ends  # noqa: B018 - kept by the program
    into, what = np.zeros((2, 1), np.uint16)
    reduce_words.compiled(into, what, False, 0)
    run_in_tiles(program)


def compile_simulator() -> None:
    """Compile what simulates, what finds routes, and tiles."""
    for dtype in TILED:
        run_in_tiles(recorded("AllReduceComm", op_of("all_reduce", 100, dtype), 3))
    topology, cost = topology_of(preset="torus:4x4"), CostModel.of("mesh")
    program = recorded("AllReduceComm", op_of("all_reduce"), topology)
    program.linked  # noqa: B018 - matched plain
    compile_always()
    timeline = simulate_tasks(program, topology, cost)
    timeline.critical_path()
    timeline.slack()
    for lockstep in (True, False):
        simulate_batches(program, topology, cost, lockstep=lockstep)
    simulate_contended(program, topology, cost)
    exchange = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all"), topology)
    shared = Contention(exchange, topology, cost)
    classes_of(exchange, shared.durations, shared.shared)  # asked where there are many flows
    ends = np.array([0, 1]), np.array([1, 0])
    graph = Graph.of(2, *ends, np.array([1, 1]))
    graph.reached(0)
    Spreading("two nodes", graph).spread(*ends)
    fork = Graph.of(3, np.array([0, 0]), np.array([1, 2]), np.array([1, 1]))
    Spreading("a fork", fork, np.array([1.0, 2.0])).spread(*ends)


def run_in_tiles(program: Program) -> None:
    """Run on the emulated platform, with compiled tiles."""
    run(program, whole_numbers(program.op, program.ranks), TILES)


if __name__ == "__main__":
    {"verifier": compile_verifier, "simulator": compile_simulator}[sys.argv[1]]()
    print(*kernels_loaded(), sep="\n")  # for the test that they are all
