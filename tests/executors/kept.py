"""Synchronisation that stays although nothing needs it where these executors use it, and why.

The testing kit deletes every line's synchronisation, and all of it must be missed somewhere. What
is listed here is a template's step that others need; it is named by what the step says, because
line numbers move.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import hccl_executors

__all__ = ["KEPT", "kept_lines"]

FOLDER = Path(hccl_executors.__file__).parent


class Kept(NamedTuple):
    """One statement of a file that holds this text, and the reason why it stays."""

    file: str
    text: str
    reason: str


STAR = Kept(
    "templates/star.py",
    "exchange(stream, frm=plane[root], recv=work)",
    "rank 0 has had this rank's data, so it knows that memory is free; a broadcast alone needs it",
)
TURN = (
    "planes of 3 have one step of the kind, and the steps beside it order it; larger ones need it"
)
GATHER = Kept("templates/nhr_v1.py", "send=chunks[(me - step * way.inner) % p]", TURN)
REDUCE = Kept("templates/nhr_v1.py", "send=chunks[(me - (back + 1) * way.inner) % p]", TURN)
KEPT = {
    "AllReduceStar": (STAR,),
    "AllReduceReducePlusBcast": (STAR,),
    "AllReduceRingExecutor": (GATHER,),
    "AllReduceDoubleRingConcurrentExecutor": (REDUCE,),
    "BroadCastRingExecutor": (GATHER,),
}
"""By executor."""


def kept_lines(executor: str) -> dict[str, str]:
    """Return an executor's entries as `check_executor` takes them, by file and line."""
    return {f"{kept.file}:{_line(kept)}": kept.reason for kept in KEPT.get(executor, ())}


def _line(kept: Kept) -> int:
    """Return the line on which the one call begins that holds the text, the innermost statement."""
    source = (FOLDER / kept.file).read_text(encoding="utf-8")
    statements = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    lines = [
        node.lineno
        for node in statements
        if kept.text in (ast.get_source_segment(source, node) or "")
    ]
    assert len(lines) == 1, f"{kept.file} has {len(lines)} statements with {kept.text!r}"
    return lines[0]
