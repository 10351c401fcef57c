"""Selection on the Ascend 950: calls, the algorithm that HCCL names for each, and hccl-py's.

Cases are those of `pub/driver.cc`: `op`, `topo`, `count`, `dtype`, `reduce`, `engine`, `env`. A
golden file has a line of JSON that says where it comes from, then one for every call: its case, and
the names that its ranks selected.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hccl_py as hccl
from hccl_py.call.config import Config
from hccl_py.selection.hccl import HcclChoice
from hccl_py.topology import PRESETS, Topology
from scripts.oracle.calls import Case

MODES = {"": "CCU_MS", "HOST_TS": "CCU_MS", "AI_CPU": "AICPU_TS"}
"""The driver has no hcomm that HCCL could ask for its mode: without one that means something,
HCCL falls back to CCU_MS there (op_common.cc:3237), hcomm says AICPU_TS.
"""

_DROPPED = ("id", "name", "check", "seconds", "counts_matrix")
_REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v")
_ROOTED = ("broadcast", "reduce", "scatter")
_TOPOLOGIES: dict[str, Topology] = {}


def topology_of(case: Case) -> Topology:
    """Return the topology of a case: superpods of servers of device numbers."""
    key = json.dumps([case["topo"], case.get("bus")])
    if key not in _TOPOLOGIES:
        servers = [(pod, ids) for pod, found in enumerate(case["topo"]) for ids in found]
        numbers = [n for n, (_, ids) in enumerate(servers) for _ in ids]
        devices = [i for _, ids in servers for i in ids]
        pods = [pod for pod, ids in servers for _ in ids]
        product = PRESETS["ascend950"]
        product = replace(product, bus=replace(product.bus, **case.get("bus", {})))
        _TOPOLOGIES[key] = Topology.placed(product, numbers, devices, pods)
    return _TOPOLOGIES[key]


def choice_of(case: Case) -> HcclChoice:
    """Return hccl-py's choice for a case."""
    topology, count = topology_of(case), case["count"]
    parts = (count,) * topology.size
    named: dict[str, Any] = {"in_place": bool(case.get("in_place"))}
    if case["op"] in _REDUCING:
        named["reduce"] = hccl.ReduceOp.parse(case.get("reduce", "sum"))
    if case["op"] in _ROOTED:
        named["root"] = case.get("root", 0)
    if case["op"] in ("all_gather_v", "reduce_scatter_v"):
        named["counts"] = tuple(case.get("counts", parts))
    if case["op"] in ("all_to_all_v", "all_to_all_vc"):
        named["counts" if case["op"] == "all_to_all_v" else "matrix"] = (parts,) * topology.size
    dtype = hccl.DataType.parse(str(case["dtype"]).replace("bfp16", "bf16"))
    op = hccl.OpParam(case["op"], count, dtype, **named)
    return HcclChoice(op, topology, _config_of(case))


def _config_of(case: Case) -> Config:
    env, engine = case.get("env", {}), case.get("engine", "AI_CPU")
    size = env.get("HCCL_BUFFSIZE")
    given: dict[str, Any] = {
        "op_expansion_mode": MODES.get(engine, engine),
        "deterministic": env.get("HCCL_DETERMINISTIC"),
        "algo": env.get("HCCL_ALGO"),
        "buffsize_mb": None if size is None else int(size),
    }
    return Config.load({}, **given)


def names_of(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the names that ranks selected in a line of the driver, also where it went on to
    crash.
    """
    names = [name.partition("|")[0] for name, _ in line.get("selected", [])]
    return tuple(names or (one["alg"] for one in line.get("first_selected", [])))


def write_selections(path: Path, source: str, lines: Iterable[dict[str, Any]]) -> int:
    """Write a golden file from lines of the driver; return the number of calls."""
    count = 0
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps({"source": source}).encode() + b"\n")
        for line in lines:
            case = {key: value for key, value in line["case"].items() if key not in _DROPPED}
            found = {"case": case, "names": names_of(line)}
            file.write(json.dumps(found, separators=(",", ":")).encode() + b"\n")
            count += 1
    return count


def read_selections(path: Path) -> Iterator[tuple[Case, tuple[str, ...]]]:
    """Yield the cases of a golden file with HCCL's names."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        file.readline()
        for text in file:
            line = json.loads(text)
            yield line["case"], tuple(line["names"])
