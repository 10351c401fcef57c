"""Two ranks that post and wait for each other's notifies, which count, and do nothing else."""

from __future__ import annotations

import json
from typing import Any

from hccl_py.formats import from_json
from hccl_py.program.program import Program


def counting(tasks: dict[str, Any]) -> Program:
    """Return the program of these tasks, as program files have them."""
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "barrier"},
        "ranks": 2,
        "notifies": "counting",
        "link": "sdma",
        "exported": [],
        "buffers": {"0": {}, "1": {}},
        "tasks": tasks,
    }
    return from_json(json.dumps(document))
