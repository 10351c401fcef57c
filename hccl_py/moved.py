"""Old names of modules: an import by one gives the module that has its place, with a warning.

    from hccl_py.executor import Rank    # warns: write `from hccl_py.plugins.executor import ...`

`import hccl_py` appends one finder to the end of `sys.meta_path`; Python asks it for names alone
that nothing else knows. No module of the project uses an old name.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "current_name"]

_ROOMS = {
    "hccl_py.call": "algo algo_executors call_spec config expansion op_param ops",
    "hccl_py.clocks": "cost stragglers",
    "hccl_py.communicator": (
        "arrays collective_ops collectives data device_arrays domain groups measurement overlaps "
        "pending planning tensors"
    ),
    "hccl_py.plugins": "authors discovery executor fidelity platforms resources",
    "hccl_interop": "checker_logs chakra cpp msccl mscclpp",
}

MOVED = {
    f"hccl_py.{name}": f"{room}.{name}" for room, names in _ROOMS.items() for name in names.split()
}
MOVED |= {
    f"hccl_py.simulator.{name}": f"hccl_py.clocks.{name}"
    for name in ("alpha", "cost_files", "durations", "jitter", "links")
}
MOVED |= {
    "hccl_py.cpp.export.conditions": "hccl_interop.cpp.export.fitting",
    "hccl_py.cpp.export.files": "hccl_interop.cpp.export.text",
    "hccl_py.msccl.operation": "hccl_interop.common.meaning",
    "hccl_py.jobs.issued": "hccl_py.jobs.communicators",
    "hccl_py.jobs.start_end": "hccl_py.jobs.events",
    "hccl_py.simulator.fit": "hccl_py.fit.fit",
    "hccl_py.simulator.hccl_test_log": "hccl_py.fit.logs.hccl_test",
    "hccl_py.simulator.logged_calls": "hccl_py.fit.logs.logged_calls",
    "hccl_py.simulator.measured_logs": "hccl_py.fit.logs.measured",
    "hccl_py.simulator.nccl_tests_log": "hccl_py.fit.logs.nccl_tests",
    "hccl_py.simulator.rccl_tests_file": "hccl_py.fit.logs.rccl_tests",
}
MOVED |= {
    "hccl_py.selection.order": "hccl_py.selection.sum_order",
    "hccl_py.torch.tensors": "hccl_py.torch.tensor_arrays",
    "hccl_py.trace.columns": "hccl_py.trace.side_by_side",
    "hccl_py.trace.gantt.drawing": "hccl_py.trace.gantt.chart",
    "hccl_py.trace.page.columns": "hccl_py.trace.page.scene_block",
    "hccl_py.trace.page.document": "hccl_py.trace.page.scene_block",
    "hccl_py.trace.pictures.cells": "hccl_py.trace.pictures.held_cells",
    "hccl_py.trace.pictures.page": "hccl_py.trace.pictures.film",
    "hccl_py.trace.pictures.parts": "hccl_py.trace.pictures.input_chunks",
    "hccl_py.trace.pictures.words": "hccl_py.trace.pictures.captions",
    "hccl_py.trace.scene.load": "hccl_py.trace.scene.traffic",
    "hccl_py.trace.scene.memory": "hccl_py.trace.scene.memory_states",
    "hccl_py.trace.scene.part": "hccl_py.trace.scene.excerpt",
    "hccl_py.trace.screen.lanes": "hccl_py.trace.screen.lanes_view",
    "hccl_py.trace.table": "hccl_py.trace.task_list",
}
MOVED |= {
    f"hccl_py.selection.tables.{release}.files": f"hccl_py.selection.tables.{release}.shared_rows"
    for release in ("cann_2025_07", "cann_2026_08")
}
"""Today's module by its old name; modules inside of it moved with it."""


def current_name(name: str) -> str | None:
    """Return today's name of a module that has moved, None for any other."""
    parts = name.split(".")
    for cut in range(len(parts), 1, -1):
        moved = MOVED.get(".".join(parts[:cut]))
        if moved is not None:
            return ".".join([moved, *parts[cut:]])
    return None


class _OldNames(MetaPathFinder, Loader):
    """Finds modules by their old names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if current_name(name) is None else ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = current_name(old)
        assert new is not None
        sys.modules[old] = import_module(new)
        text = f"{old} is {new} now: write `from {new} import ...`."
        # Python leaves its own importer out of the count: 2 is the import statement.
        warnings.warn(text, DeprecationWarning, stacklevel=2)


def install() -> None:
    """Append the finder, once."""
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        sys.meta_path.append(_OldNames())
