"""What tasks use, by the rank that has it."""

import json

import pytest

from hccl_py.formats import from_json
from hccl_py.program.program import Program
from hccl_py.program.usage import usage_of

LOCAL, PEER = ["IN", 0, 8], ["SCRATCH", 16, 8]


def of_rank_0(task: list[object]) -> Program:
    sizes = {"IN": 64, "OUT": 64, "SCRATCH": 64}
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_gather", "dtype": "uint8", "count": 8},
        "ranks": 2,
        "link": "sdma",
        "exported": ["SCRATCH"],
        "buffers": {"0": sizes, "1": sizes},
        "tasks": {"0": {"0": [task]}},
    }
    return from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("task", "reached"),
    [
        (["copy", LOCAL, PEER], [24, 0]),
        (["write", 1, LOCAL, PEER], [0, 24]),
        (["read", 1, PEER, LOCAL], [0, 24]),
    ],
)
def test_memory_counts_where_it_lies(task: list[object], reached: list[int]) -> None:
    assert usage_of(of_rank_0(task)).scratch_bytes.tolist() == reached
