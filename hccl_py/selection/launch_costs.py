"""Costs of executors in the release of hicann/hccl after August 2026: launches count, too.

An executor costs the larger of two sums over its templates: of (A / utilisation + B) x bytes + C,
and of D, what the AI CPU needs to launch tasks. Known here: all_gather on AICPU_TS, where meshes
of equal sizes are joined on one level or two, on machines that are no PODs.

Source: zstar1003/hccl-hcomm-annotated @efbe1cd, a copy of hccl 170ddeec, `hccl/src/ops/`:
`op_common/selector/{cost_table,cost_model}.cc`, and CalcCostCoeff and GetAlgNetMeta below
`all_gather/algorithm`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hccl_py.selection.facts_950 import Facts950
from hccl_py.selection.tables import hccl_170ddee as data
from hccl_py.selection.tables.hccl_2026_08 import costs


@dataclass(frozen=True)
class _Share:
    """A template's part in an executor, its share of the bytes, and the network that it uses.

    `copies` are those between the user's memory and the CCL buffer; `seen` is the share by which
    HCCL looks up how well transfers use the links.
    """

    template: str
    ranks: int
    share: float
    net: Literal["mesh", "clos"]
    copies: int
    seen: float
    more: float = 0.0
    launch: float = 0.0


_Composed = tuple[Sequence[_Share], int]


def is_known(op: str, engines: Sequence[str], facts: Facts950) -> bool:
    """Return True if the costs of a call's executors are known here."""
    flat = facts.shape0 == "mesh" and facts.net_levels <= 2 and facts.even_layers
    return op == "all_gather" and tuple(engines) == ("AICPU_TS",) and flat and facts.ranks > 1


def seconds_by_launch(facts: Facts950) -> dict[str, float]:
    """Return the costs of all_gather's executors, in the order in which HCCL registers them."""
    executors = data.EXECUTORS["all_gather"].items()
    return {name: _seconds(*_composed(*row, facts), facts) for name, row in executors}


def _seconds(parts: Sequence[_Share], together: int, facts: Facts950) -> float:
    """Return the cost of parts; of so many `together` the slowest counts."""
    ran = [_part_seconds(part, facts) for part in parts]
    groups = (ran[at : at + together] for at in range(0, len(ran), together))
    return max(sum(map(max, groups)), sum(_launches(part) for part in parts))


def _part_seconds(part: _Share, facts: Facts950) -> float:
    sent = _sent(part, facts) / _use(part, facts)
    per_byte = sent + part.copies * part.share / costs.COPY["aicpu"]
    return per_byte * facts.bytes + _kernels(part) * data.STEP + part.more


def _sent(part: _Share, facts: Facts950) -> float:
    """Return the seconds of transfers for each byte: CalcMeshParam and CalcNHRParams."""
    if part.template == "nhr":
        ports = facts.bus.clos_ports[0] if part.net == "clos" else 1
        return part.share * (part.ranks - 1) / (ports * costs.LINK)
    if part.template == "mesh":
        return part.share / costs.LINK
    half = part.share / 2
    return max(half, half * (part.ranks - 1) / data.DETOUR_PORTS) / costs.LINK


def _use(part: _Share, facts: Facts950) -> float:
    size = int(facts.bytes * part.seen) or facts.bytes
    if part.net == "mesh":
        return _look_up(size, costs.MESH_SIZES, costs.MESH_USE)
    return _look_up(max(size, 1 << 20), costs.CLOS_SIZES, data.CLOS_USE)


def _look_up(size: int, sizes: Sequence[int], uses: Sequence[float]) -> float:
    return uses[min(bisect_left(sizes, size), len(uses) - 1)]


def _kernels(part: _Share) -> int:
    """Return the steps of a template: kernelNum."""
    if part.template == "nhr":
        return max(8 * _log(part.ranks) - 7, 1)
    return 8 if part.template == "mesh" else 16


def _launches(part: _Share) -> float:
    """Return the seconds in which the AI CPU launches a template: D."""
    if part.template == "nhr":
        return 9 * (max(5 * _log(part.ranks) // 3, 2) - 1) * data.NHR_LAUNCH + part.launch
    times = 1 if part.template == "mesh" else 2
    return 9 * (part.ranks - 1) * times * data.LAUNCH + part.launch


def _log(ranks: int) -> int:
    return ranks.bit_length() - 1


# ---- executors ----


def _composed(kind: str, templates: Sequence[str], facts: Facts950) -> _Composed:
    """Return the parts of an executor, and how many of them work side by side."""
    if kind == "sole":
        return [_sole(templates[0], facts)], 1
    l0, l1 = facts.local0, facts.ranks // facts.local0
    first, second = templates
    if kind == "parallel":
        return list(_parallel(first, second, l0, l1, facts)), 2
    launch = max(facts.ranks - 16, 0) // 2 * 1e-6
    return [
        _Share(first, l0, l1, "mesh", 2, l1, data.SEQUENCE, launch),
        _Share(second, l1, 1, "clos", 0, l1 / 2, data.SEQUENCE, launch),
    ], 1


def _sole(template: str, facts: Facts950) -> _Share:
    n = facts.ranks
    if template == "nhr":
        return _Share(template, n, 1, "clos" if facts.net_levels > 1 else "mesh", 1, n / 2)
    return _Share(template, n, 1, "mesh", 2, 1)


def _parallel(first: str, second: str, l0: int, l1: int, facts: Facts950) -> Iterator[_Share]:
    """Yield both orders side by side; HCCL looks up only the first NHR by its steps."""
    clos = _clos_first(l0, l1, sum(facts.bus.clos_ports[:2]))
    mesh, launch = 1 - clos, (9 * facts.ranks + 32) / 32 * 1e-6
    for inner, outer, copies, steps in ((mesh, clos, 1, l1 / 2), (clos * l1, mesh * l0, 0, 1)):
        yield _Share(first, l0, inner, "mesh", 2 * copies, inner, data.PARALLEL, launch)
        yield _Share(second, l1, outer, "clos", copies, outer * steps, data.PARALLEL, launch)


def _clos_first(l0: int, l1: int, ports: int) -> float:
    """Return the part of the data that goes between servers first, in eighths. HCCL takes the
    formula of reduce_scatter here: `CalcParallelDataSplitRatio`, template_utils.cc.
    """
    mesh, clos = 21 / (20 * l0), (l1 - 1) / (l1 * ports)
    return min(max(int(clos / (clos + mesh) * 8 + 0.5), 1), 7) / 8
