"""Which template runs an algorithm of HCCL_ALGO on one plane, and which links it needs.

Executors that leave the choice of the algorithm between servers look it up here. NHR goes over
trees where data is small, as HCCL's does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hccl_executors.templates import ahc, nb, nhr, nhr_v1, rhd, ring
from hccl_py.orchestration import Plane, Region, Stream
from hccl_py.orchestration.plane import PlaneView
from hccl_py.resources import Pattern

__all__ = ["LEVELS", "Level", "choices"]


class Level(NamedTuple):
    """A template, called with (stream, plane, work) and the root's index where the op has one, and
    its links: a pattern, or `links`, which makes one from a plane and the root's index.
    """

    template: Callable[..., None]
    pattern: Pattern = ""
    links: Callable[[PlaneView, int], Pattern] | None = None

    def peers(self, plane: PlaneView, root: int = 0) -> Pattern:
        """Return the pattern of the links on a plane."""
        return self.links(plane, root) if self.links else self.pattern

    def run(self, *arguments: Any) -> None:
        """Record the template."""
        self.template(*arguments)


def _nhr_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    whole = bool(work.size <= nhr.ONE_SHOT_ALL_REDUCE)
    (nhr.nhr_all_reduce_one_shot if whole else nhr.nhr_all_reduce)(stream, plane, work)


def _ahc_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    ahc.ahc_all_reduce(stream, plane, work, plane.groups)


def _ahc_broke_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    ahc.ahc_broke_all_reduce(stream, plane, work, plane.groups)


def _rhd_links(plane: PlaneView, root: int) -> Pattern:
    return rhd.rhd_pattern(root)


def _ahc_links(plane: PlaneView, root: int) -> Pattern:
    return ahc.ahc_peers(plane.groups)


def _ahc_broke_links(plane: PlaneView, root: int) -> Pattern:
    return ahc.ahc_peers(plane.groups, broke=True)


LEVELS: dict[str, dict[str, Level]] = {
    "all_gather": {
        "ring": Level(ring.ring_all_gather, "ring"),
        "NHR": Level(nhr.nhr_all_gather, "nhr"),
        "NHR_V1": Level(nhr_v1.nhr_v1_all_gather, nhr_v1.nhr_v1_peers),
        "NB": Level(nb.nb_all_gather, "nhr"),
        "H-D_R": Level(rhd.rhd_all_gather, "rhd"),
    },
    "reduce_scatter": {
        "ring": Level(ring.ring_reduce_scatter, "ring"),
        "NHR": Level(nhr.nhr_reduce_scatter, "nhr"),
        "NHR_V1": Level(nhr_v1.nhr_v1_reduce_scatter, nhr_v1.nhr_v1_peers),
        "NB": Level(nb.nb_reduce_scatter, "nhr"),
        "H-D_R": Level(rhd.rhd_reduce_scatter, "rhd"),
    },
    "all_reduce": {
        "ring": Level(ring.ring_all_reduce, "ring"),
        "NHR": Level(_nhr_all_reduce, "nhr"),
        "NHR_V1": Level(nhr_v1.nhr_v1_all_reduce, nhr_v1.nhr_v1_peers),
        "NB": Level(nb.nb_all_reduce, "nhr"),
        "H-D_R": Level(rhd.rhd_all_reduce, "rhd"),
        "AHC": Level(_ahc_all_reduce, links=_ahc_links),
        "AHC_BROKE": Level(_ahc_broke_all_reduce, links=_ahc_broke_links),
    },
    "broadcast": {
        "H-D_R": Level(rhd.rhd_broadcast, links=_rhd_links),
        "ring": Level(ring.ring_broadcast, "ring"),
        "NHR": Level(nhr.nhr_broadcast, "nhr"),
        "NHR_V1": Level(nhr_v1.nhr_v1_broadcast, nhr_v1.nhr_v1_peers),
        "NB": Level(nb.nb_broadcast, "nhr"),
    },
    "reduce": {
        "H-D_R": Level(rhd.rhd_reduce, links=_rhd_links),
        "ring": Level(ring.ring_reduce, "ring"),
        "NHR": Level(nhr.nhr_reduce, "nhr"),
    },
    "scatter": {
        "ring": Level(ring.ring_scatter, "ring"),
        "NHR": Level(nhr.nhr_scatter, "nhr"),
        "NB": Level(nb.nb_scatter, "nhr"),
    },
    "gather": {
        "ring": Level(ring.ring_gather, "ring"),
        "NHR": Level(nhr.nhr_gather, "nhr"),
    },
}
"""By op, then by HCCL_ALGO's word; the first one is the default."""


def choices(op: str, *without: str) -> str:
    """Return the algorithms of an op as executors format_value them, the default first."""
    return "|".join(name for name in LEVELS[op] if name not in without)
