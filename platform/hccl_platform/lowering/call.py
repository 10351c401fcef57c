"""What the ranks of a program must agree on, in words and as a number."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hccl_py.program.program import Program

_LONGEST = 240
"""Characters of a call's parameters that its words have."""

TEXT_BYTES = 400
"""Bytes of the words of a call."""


@dataclass(frozen=True)
class Call:
    """What a rank calls, in words, and a number that differs where anything does."""

    text: bytes
    digest: int

    @staticmethod
    def of(short: str, whole: str = "") -> Call:
        """Return a call whose words may leave out what `whole` says."""
        digest = hashlib.blake2b((short + whole).encode(), digest_size=7).digest()
        return Call(short.encode()[:TEXT_BYTES], int.from_bytes(digest, "big"))


def call_of(program: Program) -> Call:
    """Return what the ranks must agree on."""
    op = program.op
    words = [f"calls {op.name} of {op.count} {op.dtype.value}"]
    words += [op.reduce.spelling] if op.reduce is not None else []
    words += [f"root {op.root}"] if op.root is not None else []
    words += [
        f"{name} {value}"
        for name in ("counts", "displs", "matrix", "pairs")
        if (value := getattr(op, name))
    ]
    words += [op.mode.value] + ["in place"] * bool(op.in_place)
    words += [f"by {program.executor}"] if program.executor else []
    levels = " ".join(filter(None, (op.level1, op.level2)))
    words += [f"with {levels}"] if levels else []
    text = ", ".join(words)
    size = program.buffer_sizes.max(axis=0, initial=0).tolist()
    whole = repr((op, program.executor, program.ranks, program.rounds, size, program.task_count))
    return Call.of(text[:_LONGEST], whole)
