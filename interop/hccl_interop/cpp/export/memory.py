"""A program's memories in HCCL's API: the user's, and parts of the one HCCL buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.values import values_of

USER = {"IN": "input", "OUT": "output"}
"""The user's memories."""

_CONSTANTS = {"CCL_IN": "kCclIn", "CCL_OUT": "kCclOut", "SCRATCH": "kScratch", "CCL": "kCcl"}
_ALIGN = 512


class Home(NamedTuple):
    """The place of a buffer: in `input`, `output` or `ccl`, at the offset of a constant."""

    owner: str
    offset: str = ""


@dataclass(frozen=True)
class Zone:
    """A part of the HCCL buffer: a buffer of the program, its constant, offset and bytes."""

    buffer: str
    constant: str
    offset: int
    size: int

    @property
    def memory(self) -> Home:
        """The zone as the kernel names it."""
        return Home("ccl", self.constant if self.offset else "")


def uses_of_memory(program: Program) -> dict[str, int]:
    """Return the bytes of each buffer that tasks use, at the rank that uses most."""
    most = [0] * len(program.buffers)
    for one in (one for batch in program.batches for one in batch.instructions):
        if one.kind.moves_data:
            size = values_of(one.size)
            for buffer, offset in (
                (one.src_buffer, one.src_offset),
                (one.dst_buffer, one.dst_offset),
            ):
                most[buffer] = max(most[buffer], int(np.max(values_of(offset) + size)))
    return {name: end for name, end in zip(program.buffers, most, strict=True) if end}


def zones_of(program: Program, hccl_bytes: int) -> list[Zone]:
    """Return the parts of the HCCL buffer that a program uses.

    CCL_In is its first half and CCL_Out its second where there is nothing else; otherwise all have
    the same size. Raises NotSupportedError where they do not fit.
    """
    used = uses_of_memory(program)
    names = [name for name in program.buffers if name not in USER and name in used]
    halves = ["CCL_IN", "CCL_OUT"]
    every = halves if set(names) <= set(halves) else names
    size = hccl_bytes // max(len(every), 1) // _ALIGN * _ALIGN
    zones = [
        Zone(name, _CONSTANTS.get(name, f"kMemory{k}"), k * size, size)
        for k, name in enumerate(every)
        if name in names
    ]
    check_room(used, zones)
    return zones


def check_room(used: Mapping[str, int], zones: Sequence[Zone]) -> None:
    """Raise NotSupportedError where a buffer is larger than its part of the HCCL buffer."""
    for zone in zones:
        if used.get(zone.buffer, 0) > zone.size:
            raise NotSupportedError(
                f"{zone.buffer} of {used[zone.buffer]} bytes does not fit its part of the HCCL "
                f"buffer, {zone.size} bytes.",
                "Export a smaller size, or give --buffsize.",
            )
