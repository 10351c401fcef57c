"""Kernels of the Ascend 950's CCU that were recorded from HCCL's own source, and the verdicts.

`ccu_kernels.json` is written by `scripts/oracle kernels`: a row for each of HCCL's algorithms.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

_FILE = "tables/hccl_2026_08/ccu_kernels.json"


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files(__package__) / _FILE).read_text("utf-8"))
    return found


def proof_of_ccu(executor: str) -> list[str]:
    """Return the kernels of one of HCCL's executors and what was proved of them; a sentence alone
    for one that was not recorded.
    """
    row = _recorded()["algorithms"].get(executor)
    if row is None:
        return ["not recorded from HCCL's source"]
    if not row["kernels"]:
        return [f"HCCL's own host code does not run it: {row['refused']}"]
    errors = f"the verifier finds {', '.join(row['errors'])}" if row["errors"] else "verified"
    return [
        f"same (source): {', '.join(row['kernels'])}",
        f"HCCL's own host code and kernels, recorded at {row['ranks']} ranks ({row['cluster']}) "
        f"and {row['size'] >> 10} KiB, {errors}; {_recorded()['source']}",
    ]
