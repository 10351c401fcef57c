"""Costs of executors in the release of hicann/hccl after August 2026: launches count, too.

An executor costs the larger of two sums over its templates: of (A / utilisation + B) x bytes + C,
and of D, what the AI CPU needs to launch tasks. Known here: AICPU_TS where meshes of equal sizes
are joined on one level or two, on machines that are no PODs, for the ops of the data. Of parts of
different sizes HCCL takes the largest.

Source: zstar1003/hccl-hcomm-annotated @efbe1cd, a copy of hccl 170ddeec, `hccl/src/ops/`:
`op_common/selector/{cost_table,cost_model}.cc`, and CalcCostCoeff and GetAlgNetMeta below
the ops' `algorithm`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hccl_py.selection.facts_950 import Facts950
from hccl_py.selection.tables import hccl_170ddee as data
from hccl_py.selection.tables.hccl_170ddee import LaunchTemplate
from hccl_py.selection.tables.hccl_2026_08 import costs
from hccl_py.selection.tables.hccl_2026_08.costs import factor

_MESH_RANKS = 8
"""Detours, and some templates of all_reduce, are for so many ranks of a mesh at most."""

_SPLIT = ("all_reduce", "reduce", "broadcast")
"""Ops whose count is that of all ranks' parts."""

_BY_LEVELS = ("parallel", "sequence")

_PORTS: dict[str, Callable[[Sequence[int]], int]] = {
    "one": lambda links: links[0],
    "two": lambda links: sum(links[:2]),
    "all": sum,
    "all but two": lambda links: max(sum(links) - 2, 1),
    "eight": lambda links: 8,
}
"""The ports that a template takes, from those of a rank's links to a network."""

_Net = Literal["mesh", "clos"]
_Buffers = Literal["", "i", "o", "io"]
"""The ends of a part that are in the user's memory: its input, its output."""


@dataclass(frozen=True)
class _TemplateShare:
    """A template's part in an executor, its share of the bytes, and the share, and the times of it,
    by which HCCL looks up how well transfers use the links of `seen_net`.
    """

    template: LaunchTemplate
    ranks: int
    share: float
    buffers: _Buffers
    net: _Net
    seen: float
    times: float
    seen_net: _Net

    @property
    def enters(self) -> bool:
        """True if the data is copied into the CCL buffer."""
        return "i" in self.buffers or (self.template.either and self.leaves)

    @property
    def leaves(self) -> bool:
        """True if the data is copied out of it."""
        return "o" in self.buffers


def is_known(op: str, engines: Sequence[str], facts: Facts950) -> bool:
    """Return True if the costs of a call's executors are known here."""
    flat = facts.shape0 == "mesh" and facts.net_levels <= 2 and facts.even_layers
    fits = facts.ranks > 1 and facts.local0 <= _MESH_RANKS
    return op in data.EXECUTORS and tuple(engines) == ("AICPU_TS",) and flat and fits


def seconds_by_launch(op: str, facts: Facts950) -> dict[str, float]:
    """Return the costs of an op's executors, in the order in which HCCL registers them. Composed
    ones have none where a rank is the only one of its server, and so has no ports to a mesh.
    """
    rows = data.EXECUTORS[op].items()
    runs = [(name, row) for name, row in rows if facts.local0 > 1 or row[0] not in _BY_LEVELS]
    return {name: _seconds(op, *row, facts) for name, row in runs}


def _seconds(op: str, kind: str, names: Sequence[str], facts: Facts950) -> float:
    """Return the cost of an executor; of the two parts of a parallel one the slower counts."""
    templates = [data.TEMPLATES[name] for name in names]
    parts = (_levels if kind in _BY_LEVELS else _flat)(op, kind, templates, facts)
    more, launch = data.MORE.get((op, kind), 0.0), _launch_besides(op, kind, facts.ranks)
    ran = [_part_seconds(part, facts) + more for part in parts]
    together = 2 if kind == "parallel" else 1
    groups = (ran[at : at + together] for at in range(0, len(ran), together))
    return max(sum(map(max, groups)), sum(_launches(part) + launch for part in parts))


def _launch_besides(op: str, kind: str, ranks: int) -> float:
    """Return the launches that each part of a composed all_gather has besides."""
    if op != "all_gather" or kind == "sole":
        return 0.0
    return (9 * ranks + 32) / 32 * 1e-6 if kind == "parallel" else max(ranks - 16, 0) // 2 * 1e-6


# ---- what a part costs ----


def _part_seconds(part: _TemplateShare, facts: Facts950) -> float:
    template, ranks = part.template, part.ranks
    use = _use(part, facts)
    if template.never is not None:
        return template.never[0] / use * facts.bytes + template.never[1]
    copies = factor(template.enters, ranks) * part.enters
    copies += factor(template.leaves, ranks) * part.leaves
    local = copies / costs.COPY["aicpu"]
    local += factor(template.reduces, ranks) / costs.REDUCE["aicpu"]
    per_byte = _sent(part, facts) / use + local * part.share
    return per_byte * facts.bytes + factor(template.steps, ranks) * data.STEP


def _sent(part: _TemplateShare, facts: Facts950) -> float:
    """Return the seconds of transfers for each byte: CalcMeshParam and CalcNHRParams."""
    template, others = part.template, part.ranks - 1
    amount = factor(template.sends, part.ranks) * part.share / costs.LINK
    outside = part.net == "clos" or template.far
    links = facts.bus.clos_ports if outside else (1,) * max(others, 1)
    ports = _PORTS[template.ports](links)
    if template.way == "detour":
        return max(amount / 2, amount / 2 * others / ports)
    is_mesh = template.way == "mesh" and part.net == "mesh"
    return amount if is_mesh else amount * others / ports


def _use(part: _TemplateShare, facts: Facts950) -> float:
    """Return the use of links; bytes are rounded as in HCCL, to 24 bits, which counts at bounds."""
    seen = np.float32(facts.bytes) * (np.float32(part.seen) * np.float32(part.times))
    size = int(seen) or facts.bytes
    if part.seen_net == "mesh":
        return _look_up(size, costs.MESH_SIZES, costs.MESH_USE)
    least = 1 << 20 if facts.op.name == "all_gather" else 0
    return _look_up(max(size, least), costs.CLOS_SIZES, data.CLOS_USE)


def _look_up(size: int, sizes: Sequence[int], uses: Sequence[float]) -> float:
    return uses[min(bisect_left(sizes, size), len(uses) - 1)]


def _launches(part: _TemplateShare) -> float:
    """Return the seconds in which the AI CPU launches a template: D."""
    template, ranks = part.template, part.ranks
    tasks = factor(template.launches, ranks)
    tasks += factor(template.entering, ranks) * part.enters
    tasks += factor(template.leaving, ranks) * part.leaves
    return tasks * template.each


# ---- executors ----


def _flat(
    op: str, kind: str, templates: Sequence[LaunchTemplate], facts: Facts950
) -> list[_TemplateShare]:
    """Return the parts of an executor over all ranks: one, or a scatter and a gather. HCCL takes
    reduce_scatter, and what is `blind`, for one on a mesh, but for NHR.
    """
    n = facts.ranks
    net: _Net = "clos" if facts.net_levels > 1 else "mesh"
    if kind == "pair":
        first, last = templates
        return [
            _TemplateShare(first, n, 1, "i", net, 1 / n, 1, net),
            _TemplateShare(last, n, 1, "o", net, 1 / n, 1, net),
        ]
    template, is_nhr = templates[0], templates[0].way == "nhr"
    part = 1 / n if op in _SPLIT else 1
    seen = 1 if op == "broadcast" and net == "clos" else part
    share = 1 if op == "broadcast" else part
    buffers: _Buffers = "i" if op.startswith("reduce_scatter") else "io"
    seen_net: _Net = net
    if op == "reduce_scatter" or kind == "blind":
        seen_net = "clos" if is_nhr else "mesh"
    times = n / 2 if is_nhr else 1
    return [_TemplateShare(template, n, share, buffers, net, seen, times, seen_net)]


def _levels(
    op: str, kind: str, templates: Sequence[LaunchTemplate], facts: Facts950
) -> list[_TemplateShare]:
    """Return the parts of an executor inside meshes and between them. Of the second part, NHR's
    first one, HCCL looks up the use of links by all of its steps.
    """
    l0, l1 = facts.local0, facts.ranks // facts.local0
    split = _split(op, l0, l1, sum(facts.bus.clos_ports[:2]))
    parts = []
    for at, (place, share, buffers) in enumerate(_COMPOSED[op, kind](l0, l1, split)):
        ranks = 1 if place >= _ALONE else l1 if place % 2 else l0
        net: _Net = "clos" if place % 2 else "mesh"
        times = ranks / 2 if at == 1 else 1
        parts.append(
            _TemplateShare(templates[place % _ALONE], ranks, share, buffers, net, share, times, net)
        )
    return parts


def _split(op: str, l0: int, l1: int, ports: int) -> float:
    """Return the part of the data that goes inside meshes first, in eighths; in all_gather between
    them: `CalcParallelDataSplitRatio` with the formula of reduce_scatter, or of scatter,
    template_utils.cc. Others halve.
    """
    if op in ("broadcast", "reduce", "reduce_scatter"):
        return 0.5
    mesh, clos = (1 if op == "scatter" else 1.05) / l0, (l1 - 1) / (l1 * ports)
    return min(max(int(clos / (clos + mesh) * 8 + 0.5), 1), 7) / 8


_Parts = Sequence[tuple[int, float, _Buffers]]
_Composition = Callable[[int, int, float], _Parts]

_ALONE = 4
"""Places from here on are of the templates, too, on a level of one rank."""


def _there_and_back(l0: int, l1: int, q: float) -> _Parts:
    """Return a reduction's parts, of which the last are a gather's."""
    return (
        *((0, q / l0, "i"), (1, (1 - q) / l1, "i")),
        *((0, (1 - q) / (l0 * l1), ""), (1, q / (l0 * l1), "")),
        *((2, (1 - q) / (l0 * l1), ""), (3, q / (l0 * l1), "")),
        *((2, q / l0, "o"), (3, (1 - q) / l1, "o")),
    )


_COMPOSED: dict[tuple[str, str], _Composition] = {
    ("all_gather", "parallel"): lambda l0, l1, q: (
        *((0, 1 - q, "io"), (1, q, "i")),
        *((0, q * l1, ""), (1, (1 - q) * l0, "")),
    ),
    ("all_gather", "sequence"): lambda l0, l1, q: ((0, l1, "io"), (1, 1, "")),
    ("all_reduce", "parallel"): _there_and_back,
    ("all_reduce", "sequence"): lambda l0, l1, q: (
        *((0, 1 / l0, "i"), (1, 1 / (l0 * l1), "i")),
        *((3, 1 / (l0 * l1), ""), (2, 1 / l0, "o")),
    ),
    ("broadcast", "parallel"): lambda l0, l1, q: (
        *((0, q / l0, "i"), (1, q / l1, "i")),
        *((1, q / (l0 * l1), ""), (0, q / (l0 * l1), "")),
        *((3, q / (l0 * l1), ""), (2, q / (l0 * l1), "")),
        *((2, q / l0, "o"), (3, q / l1, "o")),
    ),
    ("reduce", "parallel"): _there_and_back,
    ("reduce", "sequence"): lambda l0, l1, q: (
        *((0, 1 / l0, "i"), (1, 1 / (l0 * l1), "i")),
        *((_ALONE + 1, 1 / (l0 * l1), ""), (_ALONE + 3, 1 / (l0 * l1), "")),
        *((3, 1 / (l0 * l1), ""), (2, 1 / l0, "o")),
    ),
    ("reduce_scatter", "parallel"): lambda l0, l1, q: (
        *((0, q * l1, "i"), (1, q * l0, "i")),
        *((1, q, ""), (0, q, "")),
    ),
    ("scatter", "parallel"): lambda l0, l1, q: (
        *((0, q * l1, "i"), (1, (1 - q) * l0, "i")),
        *((1, q, "o"), (0, 1 - q, "o")),
    ),
    ("scatter", "sequence"): lambda l0, l1, q: ((0, l1, "i"), (1, 1, "o")),
    ("reduce_scatter", "sequence"): lambda l0, l1, q: ((0, l1, "i"), (1, 1, "o")),
}
"""By op and composition: the template of each part, its share, and its buffers."""
