"""Programs to find fault with: recorded from a few lines, or read from a file of two ranks."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from hccl_py.call.op_param import OpParam
from hccl_py.formats import from_json
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.program.program import Program
from hccl_py.topology import Topology
from hccl_py.topology.presets import DEFAULT_PRESET, PRESETS
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Options, Subject
from tests.recording import op_of, recorded

PRODUCT = PRESETS[DEFAULT_PRESET]
MESH = ResourceRequest((PlaneRequest("flat", "mesh"),))
NOTHING = ResourceRequest()

FILE: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_reduce", "dtype": "fp32", "count": 32, "reduce": "sum"},
    "ranks": 2,
    "link": "sdma",
    "exported": ["CCL_OUT"],
    "buffers": {
        "0": {"IN": 128, "OUT": 128, "CCL_IN": 128, "CCL_OUT": 128},
        "1": {"IN": 128, "OUT": 128, "CCL_IN": 128, "CCL_OUT": 128},
    },
    "tasks": {},
}

Find = Callable[[Subject], Iterable[Finding]]


def written(tasks: dict[str, Any], **changes: Any) -> Program:
    """Return the program of a file: FILE with tasks by rank and stream, and other changes."""
    return from_json(json.dumps({**FILE, "tasks": tasks, **changes}))


def authored(
    body: Callable[[Any], None],
    request: ResourceRequest = NOTHING,
    op: OpParam | None = None,
    topology: Topology | int = 2,
    ccl_bytes: int = 1024,
) -> Program:
    """Return the program that an executor records whose `orchestrate` is `body(rank)`."""
    call = op_of("all_reduce", 32) if op is None else op

    class Author:
        op = call.name
        algorithm = "level0:mesh"

        def suits(self, op: Any, topology: Any) -> bool:
            return True

        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return request

        def orchestrate(self, op: Any, rank: Any) -> None:
            body(rank)

    return recorded(Author, call, topology, ccl_bytes)


def found(find: Find, program: Program, **options: Any) -> list[Finding]:
    """Return what a check finds in a program."""
    return list(find(Subject(program, Options(**options))))


def names(find: Find, program: Program, **options: Any) -> list[str]:
    """Return the classes of what a check finds in a program."""
    return [finding.name for finding in found(find, program, **options)]
