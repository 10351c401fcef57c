"""Templates and their links for every algorithm of HCCL_ALGO on one plane, by op.

Executors that leave the choice of the algorithm between servers look it up here. NHR goes over
trees where data is small, as HCCL's does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from hccl_executors.sources import april, like_april, like_newest
from hccl_executors.staging import PlaneLinks
from hccl_executors.templates import ahc, nb, nhr, nhr_v1, rhd, ring
from hccl_executors.templates.ahc_slots import (
    ahc_broke_all_gather,
    ahc_broke_reduce_scatter,
    slot_peers_between,
    slot_peers_inside,
)
from hccl_py.orchestration import Plane, Region, Stream
from hccl_py.orchestration.plane import PlaneView
from hccl_py.plugins.executor import Fidelity, ours, steps
from hccl_py.plugins.fidelity import joined
from hccl_py.plugins.resources import Pattern


class Level(NamedTuple):
    """A template, called with (stream, plane, work) and the root's index where the op has one, and
    its links: a pattern, or `links`, which makes one from a plane and the root's index; `between`
    makes the pattern of the links that go by RDMA where the plane spans superpods, even inside of
    one. `fidelity` says how the template stands to HCCL's. Between superpods it is `outermost`, if
    that is given. Where `meets`, they take `meeting`: whether ranks meet after their steps.
    """

    template: Callable[..., None]
    fidelity: Fidelity
    pattern: Pattern = ""
    links: Callable[[PlaneView, int], Pattern] | None = None
    between: Callable[[PlaneView], Pattern] | None = None
    outermost: Callable[..., None] | None = None
    meets: bool = False

    def peers(self, plane: PlaneView, root: int = 0) -> Pattern:
        """Return the pattern of the links on a plane."""
        return self.links(plane, root) if self.links else self.pattern

    def all_links(self, plane: PlaneView, root: int = 0) -> list[PlaneLinks]:
        """Return all links on a plane."""
        found = [PlaneLinks(plane.name, self.peers(plane, root))]
        if self.between:
            found.append(PlaneLinks(plane.name, self.between(plane), len(plane.groups) > 1))
        return found

    def in_parts(self) -> Level:
        """Return the same without a tree for small data."""
        return self._replace(template=self.outermost or self.template)

    def run(self, stream: Stream, plane: Plane, *arguments: Any, meeting: bool = False) -> None:
        outermost = self.outermost if plane.name == "level2" else None
        options = {"meeting": meeting} if self.meets else {}
        (outermost or self.template)(stream, plane, *arguments, **options)


def _nhr_all_reduce(stream: Stream, plane: Plane, work: Region, *, meeting: bool) -> None:
    if work.size <= nhr.ONE_SHOT_ALL_REDUCE:
        nhr.nhr_all_reduce_one_shot(stream, plane, work, meeting=meeting)
    else:
        nhr.nhr_all_reduce(stream, plane, work, meeting=meeting)


def _rhd_links(plane: PlaneView, root: int) -> Pattern:
    return rhd.rhd_pattern(root)


def _ahc_level(
    template: Callable[..., None], file: str, *peers: Callable[[tuple[int, ...]], Pattern]
) -> Level:
    """Return a level over groups; `peers` make its patterns inside of them and between them."""

    def run(stream: Stream, plane: Plane, work: Region) -> None:
        template(stream, plane, work, ahc.cut_groups(plane.groups))

    def inside(plane: PlaneView, root: int) -> Pattern:
        return peers[0](ahc.cut_groups(plane.groups))

    def between(plane: PlaneView) -> Pattern:
        return peers[1](ahc.cut_groups(plane.groups))

    fidelity = like_newest(
        file,
        "asymmetric_hierarchical_concatenate_base",
        "asymmetric_hierarchical_concatenate_alg_template_base",
        "base/communicator/topo_info_extractor",
    )
    return Level(run, fidelity, links=inside, between=between)


def _scattered(*files: str, deviation: str = "") -> Fidelity:
    left_out = steps(
        "Of 7, 11, 13, 14, 15, 19 and some more ranks HCCL's also send slices that the sender does "
        "not have, which would be READ_UNDEFINED; they are not read, and are left out.",
        *april(*files),
    )
    found = steps(deviation, *april(*files)) if deviation else like_april(*files)
    return found.with_cases({"uneven_tree": left_out})


_SLOT_PEERS = (slot_peers_inside, slot_peers_between)
_AHC_OF_SLOTS = ours(
    "AHC_BROKE runs. HCCL's takes AHC for servers of one device in superpods that differ, and cuts "
    "all slots of a group together."
)
_TRANSFERS = ("component/sender", "component/reducer")
_RHD = "recursive_halvingdoubling_base"
_NHR_V1 = "nonuniform_hierarchical_ring_v1_base"
_GATHER = ours("HCCL has no gather in its API.")

LEVELS: dict[str, dict[str, Level]] = {
    "all_gather": {
        "ring": Level(ring.ring_all_gather, like_april("all_gather_ring", *_TRANSFERS), "ring"),
        "NHR": Level(nhr.nhr_all_gather, like_april("all_gather_nhr"), "nhr"),
        "NHR_V1": Level(
            nhr_v1.nhr_v1_all_gather, like_april("all_gather_nhr_v1", _NHR_V1), nhr_v1.nhr_v1_peers
        ),
        "NB": Level(nb.nb_all_gather, like_april("all_gather_nb"), "nhr"),
        "H-D_R": Level(rhd.rhd_all_gather, like_april("all_gather_recursive_hd", _RHD), "rhd"),
        "AHC": _ahc_level(ahc_broke_all_gather, "all_gather_ahc", *_SLOT_PEERS)._replace(
            fidelity=_AHC_OF_SLOTS
        ),
        "AHC_BROKE": _ahc_level(ahc_broke_all_gather, "all_gather_ahc_broke", *_SLOT_PEERS),
    },
    "reduce_scatter": {
        "ring": Level(
            ring.ring_reduce_scatter, like_april("reduce_scatter_ring", *_TRANSFERS), "ring"
        ),
        "NHR": Level(nhr.nhr_reduce_scatter, like_april("reduce_scatter_nhr"), "nhr", meets=True),
        "NHR_V1": Level(
            nhr_v1.nhr_v1_reduce_scatter,
            like_april("reduce_scatter_nhr_v1", _NHR_V1),
            nhr_v1.nhr_v1_peers,
        ),
        "NB": Level(nb.nb_reduce_scatter, like_april("reduce_scatter_nb", *_TRANSFERS), "nhr"),
        "H-D_R": Level(
            rhd.rhd_reduce_scatter, like_april("reduce_scatter_recursive_hd", _RHD), "rhd"
        ),
        "AHC": _ahc_level(ahc_broke_reduce_scatter, "reduce_scatter_ahc", *_SLOT_PEERS)._replace(
            fidelity=_AHC_OF_SLOTS
        ),
        "AHC_BROKE": _ahc_level(ahc_broke_reduce_scatter, "reduce_scatter_ahc_broke", *_SLOT_PEERS),
    },
    "all_reduce": {
        "ring": Level(ring.ring_all_reduce, like_april("all_reduce_ring", *_TRANSFERS), "ring"),
        "NHR": Level(
            _nhr_all_reduce,
            like_april("all_reduce_nhr", "all_reduce_nhr_oneshot"),
            "nhr",
            outermost=nhr.nhr_all_reduce,
            meets=True,
        ),
        "NHR_V1": Level(
            nhr_v1.nhr_v1_all_reduce, like_april("all_reduce_nhr_v1", _NHR_V1), nhr_v1.nhr_v1_peers
        ),
        "NB": Level(nb.nb_all_reduce, like_april("all_reduce_nb", *_TRANSFERS), "nhr"),
        "H-D_R": Level(rhd.rhd_all_reduce, like_april("all_reduce_recursive_hd", _RHD), "rhd"),
        "AHC": _ahc_level(
            ahc.ahc_all_reduce, "all_reduce_ahc", ahc.ahc_peers_inside, ahc.ahc_peers_between
        ),
        "AHC_BROKE": _ahc_level(
            ahc.ahc_broke_all_reduce,
            "all_reduce_ahc_broke",
            partial(ahc.ahc_peers_inside, broke=True),
            partial(ahc.ahc_peers_between, broke=True),
        ),
    },
    "broadcast": {
        "H-D_R": Level(
            rhd.rhd_broadcast,
            like_april("temp_broadcast/bcast_recursive_halvingdoubling", _RHD),
            links=_rhd_links,
        ),
        "ring": Level(ring.ring_broadcast, like_april("broadcast_ring", *_TRANSFERS), "ring"),
        "NHR": Level(
            nhr.nhr_broadcast,
            _scattered("broadcast_nhr", "broadcast_nhr_oneshot"),
            "nhr",
            outermost=nhr.nhr_broadcast_in_parts,
        ),
        "NHR_V1": Level(
            nhr_v1.nhr_v1_broadcast, like_april("broadcast_nhr_v1", _NHR_V1), nhr_v1.nhr_v1_peers
        ),
        "NB": Level(
            nb.nb_broadcast,
            _scattered(
                "broadcast_nb",
                "broadcast_nb_binary",
                deviation="Over a tree, HCCL's receiver says over HCCS by a second Ack that it has "
                "read, which the next call's may overrun (NOTIFY_OVERRUN), and over other links of "
                "SDMA not at all; here it posts DataSignal.",
            ),
            "nhr",
            outermost=nb.nb_broadcast_in_parts,
        ),
    },
    "reduce": {
        "H-D_R": Level(rhd.rhd_reduce, like_april("reduce_recursive_hd", _RHD), links=_rhd_links),
        "ring": Level(ring.ring_reduce, like_april("reduce_ring", *_TRANSFERS), "ring"),
        "NHR": Level(
            nhr.nhr_reduce,
            ours(
                "HCCL has NHR for reduce only inside of small all-reduces.",
                *april("reduce_nhr_oneshot"),
            ),
            "nhr",
        ),
    },
    "scatter": {
        "ring": Level(ring.ring_scatter, like_april("scatter_ring", *_TRANSFERS), "ring"),
        "NHR": Level(nhr.nhr_scatter, _scattered("scatter_nhr"), "nhr"),
        "NB": Level(nb.nb_scatter, _scattered("scatter_nb"), "nhr"),
    },
    "gather": {
        "ring": Level(ring.ring_gather, _GATHER, "ring"),
        "NHR": Level(nhr.nhr_gather, _GATHER, "nhr"),
    },
}
"""By op, then by HCCL_ALGO's word; the first one is the default."""


GROUPED = "AHC|AHC_BROKE"
"""Algorithms over groups of a plane: those of all_reduce, as executors format_value them."""


def choices(op: str, *without: str, first: str = "") -> str:
    """Return the algorithms of an op on any plane as executors format_value them, the default
    first: `first`, which HCCL's executor takes for words that it does not know.
    """
    found = [name for name, level in LEVELS[op].items() if level.between is None]
    kept = [name for name in found if name not in without]
    return "|".join(sorted(kept, key=lambda name: name != first))


def fidelities(*ops: str) -> dict[str, Fidelity]:
    """Return the fidelity of every word where an executor runs these ops on a level."""
    words = dict.fromkeys(word for op in ops for word in LEVELS[op])
    return {
        word: joined([LEVELS[op][word].fidelity for op in ops if word in LEVELS[op]])
        for word in words
    }
