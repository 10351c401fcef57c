"""Small program files in JSON, to be changed."""

from __future__ import annotations

import json
from typing import Any

from hccl_py.formats import from_json
from hccl_py.program.program import Program

SHORT: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "fp32", "count": 1},
    "ranks": 2,
    "link": "sdma",
    "exported": ["CCL"],
    "buffers": {"0": {"IN": 4, "OUT": 8, "CCL": 4}, "1": {"IN": 4, "OUT": 8, "CCL": 4}},
    "tasks": {},
}

GENERAL: dict[str, Any] = {
    **{key: SHORT[key] for key in ("format", "op", "ranks", "buffers", "tasks")},
    "links": [
        {"id": 7, "ranks": [1, 0], "kind": "rdma", "exports": {"0": ["CCL"], "1": ["CCL", "OUT"]}},
        {"id": 2, "ranks": [0, 1], "kind": "sdma", "exports": {"0": ["IN"]}, "notifies": 2},
    ],
}

# The example of the format's description.
EXAMPLE = """{
  "format": "hccl-py.program/1",
  "op": {"name": "all_gather", "dtype": "uint8", "count": 64, "reduce": null, "root": null,
         "in_place": false},
  "ranks": 4,
  "link": "sdma",
  "buffers": {"0": {"IN": 64, "OUT": 256, "CCL": 64}, "1": {"IN": 64, "OUT": 256, "CCL": 64}},
  "exported": ["CCL"],
  "resources": {"0": {"streams": 3, "local_notifies": {"0": 2, "1": 1, "2": 1},
                      "channel_notifies": {"1": 3, "2": 3, "3": 3}}},
  "tasks": {"0": {"0": [["copy", ["IN", 0, 64], ["CCL", 0, 64]], ["local_post", 1, 0],
                        ["post", 1, 0], ["wait", 1, 0],
                        ["read", 1, ["CCL", 0, 64], ["OUT", 64, 64]]]}}
}"""


def with_tasks(*tasks: list[Any], base: dict[str, Any] = SHORT, **more: Any) -> Program:
    """Return the program of a file whose rank 0 has some tasks on its main stream."""
    return from_json(json.dumps({**base, "tasks": {"0": {"0": tasks}}, **more}))
