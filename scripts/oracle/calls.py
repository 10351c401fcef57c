"""Cases: calls as the driver reads them, and the same calls of hccl-py.

A case is a JSON object: `op`, `product`, `topo` (superpods of servers of device numbers) or `pods`,
`servers` and `devices`, `count`, `counts` or `counts_matrix` in elements, `dtype`, `reduce`,
`root`, `mode`, `env`, `zero_copy`, `aicpu`, `alg` (an executor to force), and facts about the
machine: `hccs_ports`, `rdma_lite`. On a command line it is words:
`op=scatter product=910B servers=2 devices=4 count=8`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import hccl_py as hccl
from hccl_py.call.config import Config
from hccl_py.call.ops import BARRIER_COUNT
from hccl_py.communicator.planning import Planner
from hccl_py.plugins.discovery import installed_executors
from hccl_py.topology import PRESETS, Topology

Case: TypeAlias = Mapping[str, Any]

PRODUCTS = {
    "910B": "atlas-800t-a2",
    "910_93": "atlas-900-a3",
    "910A": "atlas-800-9000",
    "310P3": "300i-duo",
    "950": "ascend950",
}
"""The preset of each device that the driver knows."""

BOX16, MODULE = "atlas-200t-a2-box16", 8
"""The preset of servers of 910B with more devices than a module has."""

HCCS_PORTS, RDMA_LITE = 7, False
"""The answers of a machine in HCCL's own tests, unless a case gives others."""

GROUP = "tag"
"""The tag that the driver gives HCCL, in the place of a group's name."""

_DEFAULTS = {"pods": 1, "servers": 1, "devices": 1, "dtype": "fp32", "mode": "op_base"}
_REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v")
_OWN_COUNTS = ("all_gather_v", "reduce_scatter_v", "all_to_all_v", "all_to_all_vc")


def case_of(words: Sequence[str]) -> Case:
    """Return the case that `key=value` words spell; settings of HCCL are written in capitals."""
    found: dict[str, Any] = dict(_DEFAULTS)
    for word in words:
        key, is_given, text = word.partition("=")
        if not is_given:
            raise SystemExit(f"{word!r} is no word of a case: write key=value, such as devices=8.")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if key.isupper():
            found.setdefault("env", {})[key] = str(text)
        else:
            found[key] = value
    for needed in ("op", "product"):
        if needed not in found:
            raise SystemExit(f"The case has no {needed}: write {needed}=...")
    if found["op"] in _REDUCING:
        found.setdefault("reduce", "sum")
    if found["op"] in ("broadcast", "reduce", "scatter"):
        found.setdefault("root", 0)
    if found["product"] == "910_93":
        found.setdefault("aicpu", True)
    return found


def words_of(case: Case) -> str:
    """Return the words that spell a case."""
    env = case.get("env", {})
    plain = {key: value for key, value in case.items() if key not in ("env", "id", "check")}
    texts = [
        f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for key, value in plain.items()
        if _DEFAULTS.get(key) != value
    ]
    return " ".join([*texts, *(f"'{key}={value}'" for key, value in env.items())])


def servers_of(case: Case) -> list[list[int]]:
    """Return the devices of every server of every superpod."""
    if "topo" in case:
        return [[len(server) for server in pod] for pod in case["topo"]]
    return [[case.get("devices", 1)] * case.get("servers", 1)] * case.get("pods", 1)


def size_of(case: Case) -> int:
    """Return the number of ranks."""
    return sum(map(sum, servers_of(case)))


def topology_of(case: Case) -> Topology:
    """Return the topology of a case, with a machine that answers as HCCL's own tests do."""
    pods = servers_of(case)
    is_box = case["product"] == "910B" and max(map(max, pods)) > MODULE
    product = PRESETS[BOX16 if is_box else PRODUCTS[case["product"]]]
    if "topo" in case and case["product"] == "950":
        return placed(case["topo"], case.get("bus", {}))
    is_a3 = product.superpod_servers > 0
    product = dataclasses.replace(
        product,
        hccs_ports=case.get("hccs_ports", HCCS_PORTS) if is_a3 else product.hccs_ports,
        rdma_lite=case.get("rdma_lite", RDMA_LITE),
    )
    servers = [size for pod in pods for size in pod]
    if not is_box:
        return Topology(product, tuple(servers), tuple(map(len, pods)) if is_a3 else None)
    modules = [(host, m) for host, size in enumerate(servers) for m in (MODULE, size - MODULE) if m]
    return Topology(product, tuple(m for _, m in modules), hosts=tuple(host for host, _ in modules))


def placed(pods: Sequence[Sequence[Sequence[int]]], bus: Mapping[str, Any]) -> Topology:
    """Return the topology of devices of an Ascend 950 that a case names: their places in a grid
    tell; `bus` says what the machine answers about its links. Its `jetties`, links of two devices
    of different boards, are the driver's alone: what uses several here always uses four.
    """
    product = PRESETS[PRODUCTS["950"]]
    bus = {name: answer for name, answer in bus.items() if name != "jetties"}
    product = dataclasses.replace(product, bus=dataclasses.replace(product.bus, **bus))
    servers = [(pod, devices) for pod, members in enumerate(pods) for devices in members]
    numbers = [n for n, (_, devices) in enumerate(servers) for _ in devices]
    devices = [device for _, devices in servers for device in devices]
    return Topology.placed(product, numbers, devices, [servers[n][0] for n in numbers])


def planner_of(case: Case, ruleset: str) -> Planner:
    """Return a planner with the settings of a case, and no others."""
    env = case.get("env", {})
    given: dict[str, Any] = {
        "mode": case.get("mode", "op_base"),
        "algo": env.get("HCCL_ALGO"),
        "deterministic": env.get("HCCL_DETERMINISTIC"),
        "buffsize_mb": int(env["HCCL_BUFFSIZE"]) if "HCCL_BUFFSIZE" in env else None,
        "zero_copy": case.get("zero_copy"),
        "ruleset": ruleset,
    }
    config = Config.load({}, **{key: value for key, value in given.items() if value is not None})
    return Planner(topology_of(case), config, installed_executors(), GROUP)


def parameters_of(case: Case) -> hccl.OpParam:
    """Return the parameters of the call."""
    op, ranks, count = case["op"], size_of(case), case.get("count", 0)
    dtype = hccl.DataType.parse(str(case["dtype"]))
    named: dict[str, Any] = {"mode": hccl.Mode(case.get("mode", "op_base"))}
    if op == "barrier":
        return hccl.OpParam(op, BARRIER_COUNT, dtype, hccl.ReduceOp.SUM, **named)
    if op in _REDUCING:
        named["reduce"] = hccl.ReduceOp.parse(case.get("reduce", "sum"))
    if op in ("broadcast", "reduce", "scatter"):
        named["root"] = case.get("root", 0)
    if op in ("all_gather_v", "reduce_scatter_v"):
        named["counts"] = tuple(case.get("counts", [count] * ranks))
        named["displs"] = tuple(case.get("displs", ()))
    elif op in ("all_to_all_v", "all_to_all_vc"):
        matrix = case.get("counts_matrix", [count] * ranks * ranks)
        rows = tuple(tuple(matrix[i * ranks : (i + 1) * ranks]) for i in range(ranks))
        named["counts" if op == "all_to_all_v" else "matrix"] = rows
    elif op == "send_recv":
        named["pairs"] = ((case.get("src", 0), case.get("dst", 1)),)
    elif op == "batch_send_recv":
        named["pairs"] = tuple((i, j) for i in range(ranks) for j in range(ranks))
    return hccl.OpParam(op, 0 if op in _OWN_COUNTS else count, dtype, **named)
