"""Proofs by HCCL's own code: how many of its runs executors are equal to.

`run_proofs.json` is written by `scripts/oracle judge`, from the data of tests/executors/fidelity.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

from hccl_py.plugins.executor import BaseExecutor
from hccl_py.plugins.fidelity import Proof

FILE = "run_proofs.json"


def with_proof(executor: type[BaseExecutor]) -> type[BaseExecutor]:
    """Give an executor the proof of its fidelity; one that inherits it has a proof of its own."""
    executor.fidelity = replace(executor.fidelity, proof=_proofs().get(executor.__name__))
    return executor


@cache
def _proofs() -> dict[str, Proof]:
    found = json.loads((files(__package__) / FILE).read_text("utf-8"))
    return {
        name: Proof(source, *row) for source, rows in found.items() for name, row in rows.items()
    }
