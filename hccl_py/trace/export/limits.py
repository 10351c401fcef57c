"""Limits of what is written: flows and links up to a number, and sentences for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.trace.scene import UNREACHED, Scene
from hccl_py.values import IntArray

FLOWS = 10_000
"""Arrows from posts to waits that are written by default. Perfetto's page draws all that are in
sight, and does not respond any more with some ten thousands.
"""

MOST_LINKS = 256
"""Links whose load is written, the busiest first; every one is a track of its own to look at."""


def left_out(scenes: Mapping[str, Scene], flows: int = FLOWS) -> list[str]:
    """Return sentences about the parts of scenes that are not written."""
    found: list[str] = []
    for scene in scenes.values():
        found += left_out_of(scene, flows)
    return list(dict.fromkeys(found))


def left_out_of(scene: Scene, flows: int) -> Iterator[str]:
    """Yield sentences about the parts of one scene that are not written."""
    if scene.left_out:
        yield scene.left_out
    waits = int(_matched(scene).sum())
    if waits > flows:
        yield f"{flows} of {waits} flows are written: those whose waits last longest."
    unreached = int((scene.bars.state == UNREACHED).sum())
    if unreached:
        yield f"{unreached} tasks that are never reached have no slice."
    links = 0 if scene.links is None else len(scene.links) + scene.links.left_out
    if links > MOST_LINKS:
        yield f"Of {links} links the load of the {MOST_LINKS} busiest is written."


def _matched(scene: Scene) -> npt.NDArray[np.bool_]:
    bars = scene.bars
    is_wait: npt.NDArray[np.bool_] = bars.kind == TaskKind.NOTIFY_WAIT
    return is_wait & (bars.partner >= 0)


def flows_of(scene: Scene, most: int) -> IntArray:
    """Return for every bar the post of its flow, -1 for none: the waits that last longest."""
    bars = scene.bars
    waits = np.flatnonzero(_matched(scene))
    if len(waits) > most:
        lasting = bars.end_us[waits] - bars.start_us[waits]
        waits = waits[np.argsort(-lasting, kind="stable")[:most]]
    found = np.full(len(bars), -1, np.int64)
    posts = bars.partner[waits]
    found[waits] = posts
    found[posts] = posts
    return found
