"""Random calls: selection says that HCCL takes what an oracle read anew from the sources says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.selection.hccl import HcclChoice
from hccl_py.topology import PRESETS, Topology
from tests.selection.oracle import inference
from tests.selection.oracle.cann_2025_07 import ops as of_2025
from tests.selection.oracle.cann_2026_08 import ops as of_2026
from tests.selection.oracle.facts import ALL_TO_ALL, KB, MB, PAIRWISE, WHOLE, Call

PRODUCTS = {
    "910B": "atlas-800t-a2",
    "910_93": "atlas-900-a3",
    "910A": "atlas-800-9000",
    "310P3": "300i-duo",
}
DEVICES = {"910B": (1, 2, 3, 4, 6, 8), "910_93": (1, 2, 3, 4, 6, 8, 12, 16), "910A": (1, 2, 4, 8)}
OPS = (
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "scatter"),
    *("all_gather_v", "reduce_scatter_v", "all_to_all", "all_to_all_v", "all_to_all_vc"),
)
REDUCING = ("all_reduce", "reduce_scatter", "reduce", "reduce_scatter_v")
EDGES = tuple(
    size * KB
    for size in (
        *(16, 32, 64, 128, 190, 256, 512, 700, 760, 1024, 2048, 4096, 8192, 16384, 200 << 10),
        *(256 << 10, 608 << 10),
    )
)
"""The sizes that the sources compare with."""

LEVEL0 = ("NA", "NA", "NA", "null", "null", "pairwise", "ring")
LEVEL1 = (
    *("", "", "", "", "ring", "H-D_R", "NHR", "NHR_V1", "NB", "pipeline", "pairwise", "fullmesh"),
    *("AHC", "AHC", "AHC_BROKE"),
)
LEVEL2 = ("ring", "H-D_R", "NHR", "NB", "pipeline", "AHC", "AHC_BROKE")
JOINING = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
}
"""The ops that AHC is for, with HCCL_ALGO's names of them."""

CCL_MB = (1, 8, 15, 16, 79, 80, 200, 800)
STAGED = "RunAlltoAllVStaged"
EACH = 6
"""Calls on every layout."""

Sizes = tuple[int, ...]
Oracle = Callable[[Call], tuple[str | None, str]]
RELEASES: dict[str, Oracle] = {
    "cann-2025.07": of_2025.taken,
    "cann-2026.08": of_2026.taken,
}
ORDERS = {"cann-2025.07": ("false", "true"), "cann-2026.08": ("false", "true", "strict")}


class Draw:
    """Random calls of a release, from a seed."""

    def __init__(self, release: str, seed: int) -> None:
        self.release, self.random = release, np.random.default_rng(seed)

    def calls(self, number: int) -> Iterator[Call]:
        """Several calls on every layout, as a communicator has them."""
        for at in range(number):
            if at % EACH == 0:
                device = self.one(("910B", "910B", "910_93", "910_93", "910_93", "910A"))
                hosts: Sizes = ()
                if device == "910B" and self.chance(0.3):
                    servers, hosts = self.box16()
                    pods: Sizes = (len(servers),)
                else:
                    servers, pods = self.layout(device)
                machine = self.one((0, 7)), self.chance(0.5)
            yield self.call(device, servers, pods, machine, hosts)

    def one(self, choices: tuple[Any, ...]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def call(
        self,
        device: str,
        servers: Sizes,
        pods: Sizes,
        machine: tuple[int, bool] = (7, False),
        hosts: Sizes = (),
    ) -> Call:
        op = self.one(OPS)
        dtype = DataType.parse(self.one(("fp32", "fp16", "bf16", "int8", "int64", "uint8", "fp64")))
        found = Call(
            op=op,
            device=device,
            servers=servers,
            pods=pods,
            bytes=0,
            dtype=dtype.value,
            reduce=self.one(("sum", "max", "prod")) if op in REDUCING else "",
            graph=self.chance(0.3),
            deterministic=self.one(ORDERS[self.release]),
            expansion=self.one(("", "", "AIV", "AI_CPU", "HOST")),
            ccl=self.one(CCL_MB) * MB,
            hosts=hosts,
            **self.words(op),
            no_inter_hccs=device == "910_93" and self.chance(0.15),
            ports=machine[0],
            lite=machine[1],
            registered=self.release == "cann-2026.08" and self.chance(0.2),
        )
        found = replace(found, bytes=self.size(found, dtype.itemsize))
        return replace(found, matrix=self.matrix(found, dtype.itemsize))

    def words(self, op: str) -> dict[str, Any]:
        """What HCCL_ALGO says: nothing, a word for all ops, or AHC for another op."""
        if self.chance(0.1):
            named = self.one(tuple(name for own, name in JOINING.items() if own != op))
            return {"elsewhere": named}
        level1, level2 = self.one(LEVEL1), self.one(LEVEL2) if self.chance(0.3) else ""
        level0 = self.one(LEVEL0) if level1 else self.one(("", "", "", "null"))
        return {"level0": level0, "level1": level1, "level2": level2}

    def box16(self) -> tuple[Sizes, Sizes]:
        """Modules of hosts, which take part with one or with both; one host has equal ones."""
        number, devices = self.one((1, 1, 2, 2, 3, 4)), self.one(DEVICES["910B"])
        both = [number == 1 or self.chance(0.8) for _ in range(number)]
        hosts = tuple(host for host in range(number) for _ in range(1 + both[host]))
        servers = [devices] * len(hosts)
        if number > 1 and self.chance(0.2):
            servers[int(self.random.integers(len(hosts)))] = self.one(DEVICES["910B"])
        return tuple(servers), hosts

    def layout(self, device: str) -> tuple[Sizes, Sizes]:
        number = self.one((1, 1, 2, 2, 3, 4, 5, 8, 9))
        devices = self.one(DEVICES[device])
        servers = (devices,) * number
        if number > 1 and device != "910A" and self.chance(0.15):
            servers = (*servers[:-1], self.one(DEVICES[device]))
        if device != "910_93" or number == 1 or self.chance(0.5):
            return servers, (number,)
        if number % 2 == 0 and self.chance(0.5):
            return servers, (number // 2,) * 2
        if self.chance(0.4):
            return servers, (1,) * number
        first = int(self.random.integers(1, number))
        return servers, (first, number - first)

    def size(self, call: Call, unit: int) -> int:
        """A size at an edge, as the sources scale it, or anywhere between."""
        if self.chance(0.3):
            return int(2 ** self.random.uniform(0, 30)) // unit * unit + unit
        scales = (1, call.ranks, call.devices, call.server_num)
        edge: int = self.one((*EDGES, call.ccl, 2 * call.ccl, 4 * call.ccl, call.ccl // 4))
        edge = edge * self.one(scales) // self.one(scales)
        beside: int = self.one((-1, 0, 0, 1))
        return max(edge // unit + beside, 1) * unit

    def matrix(self, call: Call, unit: int) -> tuple[tuple[int, ...], ...]:
        if call.op not in ("all_to_all_v", "all_to_all_vc"):
            return ()
        rows = [[call.bytes] * call.ranks for _ in range(call.ranks)]
        if self.chance(0.3):
            rows[-1] = [unit] * (call.ranks - 1) + [call.bytes]
        return tuple(map(tuple, rows))


@lru_cache
def topology_like(
    device: str, servers: Any, pods: Any, ports: int, lite: bool, hosts: Any
) -> Topology:
    product = PRESETS["atlas-200t-a2-box16" if hosts else PRODUCTS[device]]
    machine = replace(product, hccs_ports=ports, rdma_lite=lite)
    return Topology(machine, servers, pods, hosts=hosts or None)


def algo_like(call: Call) -> str:
    """HCCL_ALGO's text."""
    if call.elsewhere:
        return f"{call.elsewhere}=level0:NA;level1:AHC"
    words = {"level0": call.level0, "level1": call.level1, "level2": call.level2}
    return ";".join(f"{level}:{word}" for level, word in words.items() if word)


def op_like(call: Call) -> OpParam:
    dtype = DataType.parse(call.dtype)
    count, ranks = call.bytes // dtype.itemsize, call.ranks
    table = tuple(tuple(size // dtype.itemsize for size in row) for row in call.matrix)
    return OpParam(
        call.op,
        count,
        dtype,
        ReduceOp.parse(call.reduce) if call.reduce else None,
        root=0 if call.op in ("broadcast", "reduce", "scatter") else None,
        mode=Mode.GRAPH if call.graph else Mode.OP_BASE,
        counts=(count, *(count // 2,) * (ranks - 1))
        if call.op in ("all_gather_v", "reduce_scatter_v")
        else (table if call.op == "all_to_all_v" else ()),
        matrix=table if call.op == "all_to_all_vc" else (),
    )


def ours(call: Call, release: str) -> HcclChoice:
    """What selection says of it."""
    config = Config.load(
        {},
        ruleset=release,
        mode=Mode.GRAPH if call.graph else Mode.OP_BASE,
        buffsize_mb=call.ccl >> 20,
        deterministic=call.deterministic,
        op_expansion_mode=call.expansion or None,
        algo=algo_like(call),
        inter_hccs_disable=call.no_inter_hccs,
        zero_copy=call.registered,
    )
    where = topology_like(call.device, call.servers, call.pods, call.ports, call.lite, call.hosts)
    return HcclChoice(op_like(call), where, config)


def differences(release: str, seed: int, number: int) -> Iterator[tuple[Call, Any, Any]]:
    """Yield the calls of which the two say different things; all-to-all runs no level1, but for
    one executor that may be told to go pairwise on level0.
    """
    for call in Draw(release, seed).calls(number):
        executor, level1 = RELEASES[release](call)
        choice = ours(call, release)
        expected = (executor, "ring" if level1 == WHOLE else level1)
        found = choice.executor, choice.levels["level1"]
        if executor is None or call.op in ALL_TO_ALL:
            inside = PAIRWISE if executor == STAGED and call.paired_inside else ""
            told = PAIRWISE if choice.levels["level0"] == PAIRWISE else ""
            expected, found = (executor, inside), (choice.executor, told)
        if found != expected:
            yield call, found, expected


def check(release: str, seed: int, number: int) -> None:
    wrong = list(differences(release, seed, number))
    assert not wrong, f"{len(wrong)} of {number}, such as {wrong[0]}"


@pytest.mark.parametrize("release", RELEASES)
def test_random_calls_take_what_the_oracle_says(release: str) -> None:
    check(release, 1, 1000)


@pytest.mark.sweep
@pytest.mark.parametrize("release", RELEASES)
def test_a_hundred_thousand_calls_take_what_the_oracle_says(release: str) -> None:
    check(release, 2, 100_000)


def check_duo(release: str, seed: int, number: int) -> None:
    """Executors alone: servers of Atlas 300I Duo have one level."""
    draw, wrong = Draw(release, seed), []
    for _ in range(number):
        servers = (draw.one((1, 2, 3, 4, 5, 8, 12, 16)),) * draw.one((1, 1, 2))
        call = draw.call("310P3", servers, (len(servers),))
        call = replace(
            call,
            dtype=draw.one(("fp32", "fp16", "int16", "int32")),
            reduce="",
            level0="",
            level1="",
            level2="",
            elsewhere="",
            expansion="",
            deterministic="false",
            registered=False,
        )
        if call.op in REDUCING:
            call = replace(
                call, reduce="sum" if call.dtype == "int16" else draw.one(("sum", "max"))
            )
        unit = DataType.parse(call.dtype).itemsize
        call = replace(call, bytes=draw.size(call, unit))
        call = replace(call, matrix=draw.matrix(call, unit))
        wanted = inference.taken(call, call.bytes // unit, newest=release == "cann-2026.08")
        found = ours(call, release).executor
        if found != wanted:
            wrong.append((call, found, wanted))
    assert not wrong, f"{len(wrong)} of {number}, such as {wrong[0]}"


@pytest.mark.parametrize("release", RELEASES)
def test_calls_on_atlas_300i_duo_take_what_the_oracle_says(release: str) -> None:
    check_duo(release, 3, 300)


@pytest.mark.sweep
@pytest.mark.parametrize("release", RELEASES)
def test_many_calls_on_atlas_300i_duo_take_what_the_oracle_says(release: str) -> None:
    check_duo(release, 4, 10_000)
