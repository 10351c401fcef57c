"""Labels of transfers, in few letters, and the stems of labels."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.trace.pictures.flow import Flow, PictureMove
from hccl_py.trace.units import runs_of_numbers


def label(flow: Flow, move: PictureMove) -> str:
    """Return a transfer's label: `0,2–4`, `+1` where it is added, `0→2` in all-to-all."""
    sources = sorted({part.source for part in move.parts})
    chunks = sorted({part.chunk for part in move.parts})
    if flow.reduces:
        text = _numbers(chunks)
    elif flow.op.name.startswith("all_to_all"):
        is_block = len(move.parts) == len(sources) * len(chunks)
        text = f"{_numbers(sources)}→{_numbers(chunks)}" if is_block else f"{len(move.parts)} parts"
    elif flow.chunks == 1:
        text = _numbers(sources)
    elif len(flow.sources) == 1:
        text = _numbers(chunks)
    else:
        text = " ".join(
            _numbers([part.source for part in sorted(move.parts) if part.chunk == chunk])
            + letter(chunk)
            for chunk in chunks
        )
    return f"+{text}" if move.reduces else text


def _numbers(numbers: Sequence[int]) -> str:
    """Return `0,2–4` for 0, 2, 3, 4."""
    texts = []
    for first, last in runs_of_numbers(numbers):
        pair = f"{first},{last}" if last > first else str(first)
        texts.append(f"{first}–{last}" if last > first + 1 else pair)
    return ",".join(texts)


def letter(chunk: int) -> str:
    """Return a chunk's name where numbers stand for ranks: a, b, ..."""
    return chr(ord("a") + chunk) if chunk < 26 else f"[{chunk}]"


def stem(label: str) -> str:
    """Return a label without `2/4`."""
    name, _, step = label.rpartition(" ")
    return name if "/" in step else label
