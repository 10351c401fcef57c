"""Programs whose facts are known without looking at what draws them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

import hccl_py as hccl
from hccl_py.formats import from_json
from hccl_py.program.program import Program
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.verifier import verify_program

SIZE = 1 << 20
"""Bytes of a rank's input in `ping`."""


def recorded(executor: str, name: str, ranks: int, count: int) -> tuple[Program, hccl.Topology]:
    reduce = hccl.ReduceOp.SUM if "reduce" in name else None
    op = hccl.OpParam(name, count, hccl.DataType.FP32, reduce)
    topology = hccl.topology_of(ranks=ranks)
    return hccl.record(executor, op, topology), topology


@cache
def gather() -> Scene:
    """HCCL's mesh all-gather: 4 ranks, 43 tasks each on 4 streams, 64 KiB a rank."""
    program, topology = recorded("AllGatherMeshOpbaseExecutor", "all_gather", 4, 1 << 14)
    return scene_of(program, topology, title="hello, world")


@cache
def ring() -> Scene:
    """A ring all-reduce of 8 ranks, one stream each: 7 steps of reduce-scatter, 7 of all-gather."""
    program, topology = recorded("AllReduceRing", "all_reduce", 8, 1 << 16)
    return scene_of(program, topology, title="ring of 8")


def program_of(tasks: dict[str, Any]) -> Program:
    """Return a program of two ranks from its tasks by rank and stream."""
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_gather", "dtype": "uint8", "count": SIZE},
        "ranks": 2,
        "link": "sdma",
        "exported": ["CCL"],
        "buffers": {str(rank): {"IN": SIZE, "OUT": 2 * SIZE, "CCL": SIZE} for rank in range(2)},
        "tasks": tasks,
    }
    return from_json(json.dumps(document))


def ping_tasks(label: str = "swap", source: str = "ping.py:7") -> dict[str, Any]:
    """Each rank shows its data to the other one, reads the other's, and says that it has."""
    more = {"label": label, "source": source}
    return {
        str(rank): {
            "0": [
                ["copy", ["IN", 0, SIZE], ["CCL", 0, SIZE], more],
                ["copy", ["IN", 0, SIZE], ["OUT", SIZE * rank, SIZE], more],
                ["post", 1 - rank, 0, more],
                ["wait", 1 - rank, 0, more],
                ["read", 1 - rank, ["CCL", 0, SIZE], ["OUT", SIZE - SIZE * rank, SIZE], more],
                ["post", 1 - rank, 1, more],
                ["wait", 1 - rank, 1, more],
            ]
        }
        for rank in range(2)
    }


def ping(label: str = "swap", source: str = "ping.py:7") -> Scene:
    """Two ranks of one stream with seven tasks each: post 2 of one serves wait 3 of the other, and
    post 5 wait 6.
    """
    return scene_of(program_of(ping_tasks(label, source)), title="ping")


def deadlock() -> Scene:
    """The same, but rank 1 never posts that its data can be read: wait 3 of rank 0 never ends."""
    tasks = ping_tasks()
    del tasks["1"]["0"][2]
    program = program_of(tasks)
    return scene_of(program, title="deadlock", report=verify_program(program))


def bar_at(scene: Scene, rank: int, stream: int, number: int) -> int:
    """Return the bar of a task by its place in the program."""
    lanes, bars = scene.lanes, scene.bars
    (bar,) = np.flatnonzero(
        (lanes.rank[bars.lane] == rank)
        & (lanes.stream[bars.lane] == stream)
        & (bars.number == number)
    )
    return int(bar)
