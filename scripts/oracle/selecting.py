"""Selection on the Ascend 950: calls, the algorithm that HCCL names for each, and hccl-py's.

Cases are those of `pub/driver.cc`: `op`, `topo`, `count`, `dtype`, `reduce`, `engine`, `env`. A
golden file has a line of JSON that says where it comes from, then one for every call: its case, and
the names that its ranks selected.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import hccl_py as hccl
from hccl_py.call.config import Config
from hccl_py.selection.hccl import HcclChoice
from hccl_py.topology import Topology
from scripts.oracle.asking import ask_lines
from scripts.oracle.calls import Case, placed

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
        _TOPOLOGIES[key] = placed(case["topo"], case.get("bus", {}))
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
        "zero_copy": case.get("symmetric"),
        "new_selector": env.get("HCCL_USE_NEW_SELECTOR"),
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
            if "costs" in line:
                found["costs"] = [[name, float(f"{cost:.8g}")] for name, cost in line["costs"]]
            file.write(json.dumps(found, separators=(",", ":")).encode() + b"\n")
            count += 1
    return count


Selected: TypeAlias = tuple[Case, tuple[str, ...], dict[str, float]]
"""A case, the names that HCCL selected, and the seconds of its cost table, where that chose."""


def read_selections(path: Path) -> Iterator[Selected]:
    """Yield the calls of a golden file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        file.readline()
        for text in file:
            line = json.loads(text)
            yield line["case"], tuple(line["names"]), dict(line.get("costs", ()))


# ---- drawn calls ----

_OPS = (
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "reduce",
    "scatter",
    "all_to_all",
)
_V_OPS = ("all_to_all_v", "all_to_all_vc", "all_gather_v", "reduce_scatter_v")
_ENGINES = ("AI_CPU", "AI_CPU", "CCU_MS", "CCU_SCHED", "CCU_SCHED", "AIV", "AIV_ONLY")
_DTYPES = {"fp32": 4, "fp16": 2, "bfp16": 2, "int8": 1, "int64": 8, "uint64": 8, "fp64": 8}
_BOUNDS_KB = (1, 16, 64, 128, 256, 512, 1024, 1536, *(1024 << k for k in range(1, 13)), 150 << 10)
_LARGEST = 1 << 37
_ROW = list(range(8))
_SERVERS = (
    *([[0, 1], [0, 1, 2], [0, 1, 2, 3], _ROW] * 2),
    *([0, 8, 16, 24], [0, 1, 8, 9], [*_ROW, *range(8, 16)], [*range(4), *range(8, 12)], [0]),
)
_BY_COST = ("all_reduce", "all_gather", "reduce_scatter")
_ALGOS = (
    "mesh",
    "nhr",
    "not(sole{})",
    "sole{not(mesh)}",
    "parallel{}",
    "sequence{};nhr",
    "concur{}",
)
_BUSES: tuple[Case, ...] = (
    *({"ubx": True}, {"ubx": True, "pcie": True}, {"pcie": True}, {"lone_clos": True}),
    *({"dies": "regular"}, {"dies": "irregular"}, {"top": "UBOE"}, {"top": "UB_RTP"}),
)


def drawn_cases(number: int, seed: int) -> Iterator[Case]:
    """Yield cases whose sizes lie at the bounds that HCCL compares with, and beside them."""
    draw = random.Random(seed)
    for _ in range(number):
        yield _drawn(draw)


def _drawn(draw: random.Random) -> Case:
    op = draw.choice(_OPS if draw.random() < 0.85 else _V_OPS)
    topo = _drawn_topology(draw)
    ranks = sum(len(server) for pod in topo for server in pod)
    dtype = draw.choice(("fp32", *_DTYPES)) if draw.random() < 0.4 else "fp32"
    factor = draw.choice((1, 1, ranks, 1 / ranks, ranks / 8, ranks**2 / 8, ranks**2 / 64))
    count = int(draw.choice(_BOUNDS_KB) * factor * 1024) // _DTYPES[dtype]
    count = min(max(1, count + draw.choice((-1, 0, 0, 1))), _LARGEST // ranks // _DTYPES[dtype])
    case: dict[str, Any] = {"op": op, "topo": topo, "count": count, "dtype": dtype, "env": {}}
    case |= {"engine": draw.choice(_ENGINES), "select": True, "seconds": 60}
    if op in _BY_COST and draw.random() < 0.25:
        case["env"]["HCCL_USE_NEW_SELECTOR"] = "1"
        case["env"] |= {"HCCL_ALGO": draw.choice(_ALGOS)} if draw.random() < 0.3 else {}
    if op in _REDUCING:
        case["reduce"] = draw.choice(
            ("sum", "sum", "sum", "max", "max" if dtype == "bfp16" else "prod")
        )
    if draw.random() < 0.15:
        case["env"]["HCCL_DETERMINISTIC"] = draw.choice(("true", "strict"))
    if draw.random() < 0.4:
        buses = _BUSES if len({len(server) for pod in topo for server in pod}) == 1 else _BUSES[2:3]
        case["bus"] = draw.choice(buses)
    if draw.random() < 0.1 and not op.startswith("all_to_all") and op not in _V_OPS:
        case["in_place"] = True
    if draw.random() < 0.1:
        case["symmetric"] = True
    return case


def _drawn_topology(draw: random.Random) -> list[list[list[int]]]:
    server = draw.choice(_SERVERS)
    shape = draw.random()
    if shape < 0.35:
        return [[server if len(server) > 1 else _ROW]]
    if shape < 0.45:
        return [[_ROW[: draw.choice((2, 4, 6, 8))], _ROW[: draw.choice((1, 2, 3, 4))]]]
    if shape < 0.55:
        return [[_ROW[: draw.choice((1, 2, 2, 4))]] * draw.choice((8, 9, 17, 33))]
    if shape < 0.65:
        return [[_ROW] * draw.choice((8, 9))]
    if shape < 0.85:
        return [[server] * draw.choice((2, 3, 4))]
    return [[server] * draw.choice((1, 2))] * 2 if shape < 0.97 else [[server], [server] * 2]


def ask_selections(cases: Iterable[Case], driver: Path) -> Iterator[dict[str, Any]]:
    """Yield the driver's lines for cases."""
    yield from map(json.loads, ask_lines(cases, driver))
