"""Selections of calls on products that no preset has, and of single settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hccl_executors import EXECUTORS
from hccl_py.call.config import Config
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.plugins.discovery import Registry
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest, Topology
from hccl_py.selection import Selection, select
from hccl_py.topology import PRESETS, topology_of


class Anything:
    """Takes every call."""

    op = tuple(OPERATORS)
    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None: ...


def registry(*executors: Any) -> Registry:
    """Return a registry of these executors, or of the built-in ones."""
    found = Registry()
    for executor in executors or EXECUTORS:
        found.add(executor, "test")
    return found


def call(
    name: str,
    size: int,
    *,
    ranks: int = 8,
    dtype: str = "fp32",
    reduce: str = "sum",
    mode: str = "op_base",
    **more: Any,
) -> OpParam:
    """Return a call whose count is of `size` bytes, with the usual root and amounts."""
    operator = make_operator(name)
    unit = DataType.parse(dtype).itemsize
    op = ReduceOp.parse(reduce) if operator.reduces else None
    plain = OpParam(name, size // unit, DataType.parse(dtype), op, mode=Mode(mode))
    return replace(operator.variants()[0](plain, ranks), **more)


def topology(servers: int, devices: int, preset: str = "atlas-800t-a2") -> Topology:
    """Return even servers of a preset."""
    return topology_of(servers=servers, devices=devices, preset=preset)


def product(preset: str, **changes: Any) -> Any:
    """Return a preset's product with changes."""
    return replace(PRESETS[preset], **changes)


def chosen(
    op: OpParam, where: Topology, *executors: Any, executor: str | None = None, **settings: Any
) -> Selection:
    """Return the selection under settings, by the tables of July 2025 unless they name others;
    without executors Anything is the only one.
    """
    settings.setdefault("ruleset", "cann-2025.07")
    found = registry(*(executors or (Anything,)))
    return select(op, where, Config.load({}, **settings), found, executor)[0]
