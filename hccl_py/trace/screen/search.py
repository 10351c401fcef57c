"""Finding tasks: by words, or by what they are about.

    read                 tasks with the word in their kind, label, notify or source line
    kind:wait rank:3     waits of rank 3; peer:, stream:, notify:, label:, source:, round: likewise
    at:CCL_Out[256K]     tasks that read or write this byte; at:CCL_Out any byte of the buffer,
                         at:2.CCL_Out that of rank 2

Tasks match where all terms do. Texts match in parts, in upper or lower case; numbers exactly.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.describe import BUFFER_WORDS
from hccl_py.trace.scene import Scene
from hccl_py.values import IntArray

Mask = npt.NDArray[np.bool_]

_PLACE = re.compile(r"(?:([0-9]{1,9})\.)?([^\[\]]+?)(?:\[([0-9]{1,18})([KMGkmg]?)\])?")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def find_bars(scene: Scene, query: str) -> IntArray:
    """Return the bars that match, in the order of time; ParameterError for what makes no sense."""
    try:
        terms = shlex.split(query, posix=True)
    except ValueError:
        terms = query.split()
    found = np.ones(len(scene.bars), bool)
    for term in terms:
        found &= _matches(scene, term)
    bars = np.flatnonzero(found)
    order: IntArray = bars[np.argsort(scene.bars.start_us[bars], kind="stable")]
    return order


def _matches(scene: Scene, term: str) -> Mask:
    name, colon, value = term.partition(":")
    bars = scene.bars
    kinds = [kind.spelling for kind in TaskKind]
    texts: dict[str, tuple[Sequence[str], npt.NDArray[np.integer]]] = {
        "kind": (kinds, bars.kind),
        "label": (scene.labels, bars.label),
        "notify": (scene.notifies, bars.notify),
        "source": (scene.sources, bars.source),
        "stream": (scene.lanes.names, bars.lane),
    }
    numbers: dict[str, Callable[[], npt.NDArray[np.integer]]] = {
        "rank": lambda: scene.lanes.rank[bars.lane],
        "peer": lambda: bars.peer,
        "round": lambda: bars.round + 1,
    }
    if colon and name in texts:
        return _named(*texts[name], value)
    if colon and name in numbers:
        if not re.fullmatch("[0-9]{1,9}", value):
            raise ParameterError(f"{term!r:.60} names no number.", f"For example {name}:3.")
        return np.asarray(numbers[name]() == int(value))
    if colon and name == "at":
        return _touches(scene, value)
    if colon and name.isalpha() and name.islower():
        known = [*texts, *numbers, "at"]
        raise ParameterError(f"Nothing is searched by {name!r:.40}.", did_you_mean(name, known))
    columns = [texts[key] for key in ("kind", "label", "notify", "source")]
    found: Mask = np.any([_named(*column, term) for column in columns], axis=0)
    return found


def _named(texts: Sequence[str], numbers: npt.NDArray[np.integer], value: str) -> Mask:
    fits = [k for k, text in enumerate(texts) if value.lower() in text.lower()]
    return np.isin(numbers, fits)


def _touches(scene: Scene, value: str) -> Mask:
    """Return a mask of the bars that read or write a byte, or any byte of a buffer."""
    parsed = _PLACE.fullmatch(value)
    names = {BUFFER_WORDS.get(n, n).lower(): k for k, n in enumerate(scene.buffers)}
    names |= {n.lower(): k for k, n in enumerate(scene.buffers)}
    if parsed is None or parsed[2].lower() not in names:
        words = [BUFFER_WORDS.get(name, name) for name in scene.buffers]
        hint = f"For example at:{words[0]}[256K]; there are {', '.join(words)}."
        raise ParameterError(f"{value!r:.60} is no place in memory.", hint)
    rank, buffer, bars = parsed[1], names[parsed[2].lower()], scene.bars
    into = np.where(bars.dst_size < 0, bars.size, bars.dst_size)
    found = np.zeros(len(bars), bool)
    for whose, which, first, size in (
        (bars.src_rank, bars.src_buffer, bars.src_offset, bars.size),
        (bars.dst_rank, bars.dst_buffer, bars.dst_offset, into),
    ):
        here = which == buffer
        if rank is not None:
            here &= whose == int(rank)
        if parsed[3] is not None:
            byte = int(parsed[3]) * _UNITS[parsed[4].upper()]
            here &= (first <= byte) & (byte < first + size)
        found |= here
    return found
