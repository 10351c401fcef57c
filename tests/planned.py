"""Plans of calls under some settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan, Planner
from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators import make_operator
from hccl_py.plugins.discovery import installed_executors
from hccl_py.topology import PRESETS, Topology

A2, A3 = PRESETS["atlas-800t-a2"], PRESETS["atlas-900-a3"]
A910, DUO = PRESETS["atlas-800-9000"], PRESETS["300i-duo"]
PCIE, ROCE = "HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"
PODS = Topology(A3, (2, 2))


def planned(topology: Topology, op: str = "all_reduce", count: int = 4096, **settings: Any) -> Plan:
    config = Config.load({}, **settings)
    call = make_operator(op).variants()[0](
        OpParam(op, count, DataType.FP32, ReduceOp.SUM if op == "all_reduce" else None),
        topology.size,
    )
    call = replace(call, mode=config.mode)
    return Planner(topology, config, installed_executors(), GROUP_NAME).plan(call, None)
