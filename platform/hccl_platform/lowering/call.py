"""The identity of a call: all ranks of a communicator must agree on it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hccl_py.program.program import Program

_LONGEST = 240
"""Characters of a call's parameters that its text keeps."""

TEXT_BYTES = 400
"""Bytes of the text of a call."""


@dataclass(frozen=True)
class CallIdentity:
    """The text of a call, for messages, and a digest that differs if anything in the call does."""

    text: bytes
    digest: int

    @staticmethod
    def of(short: str, whole: str = "") -> CallIdentity:
        """Return the identity of a call with text `short`; the digest covers `whole` as well."""
        digest = hashlib.blake2b((short + whole).encode(), digest_size=7).digest()
        return CallIdentity(short.encode()[:TEXT_BYTES], int.from_bytes(digest, "big"))


def call_of(program: Program) -> CallIdentity:
    """Return the identity of the call that a program was recorded for."""
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
    return CallIdentity.of(text[:_LONGEST], whole)
