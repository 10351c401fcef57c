"""Two loops that are a fork or a join: main wakes its workers, or waits for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hccl_interop.cpp.export.folding import CppStep, Loop, Node
from hccl_interop.cpp.export.formulas import Formula, Number, Variable, plus
from hccl_interop.cpp.export.steps import StepShape
from hccl_py.enums import TaskKind

_POST = StepShape(TaskKind.NOTIFY_POST, is_local=True)
_WAIT = StepShape(TaskKind.NOTIFY_WAIT, is_local=True)
_MAIN = Number(0)


def fork_or_join(
    nodes: Sequence[Node], depth: int, fields_of: Callable[[CppStep], dict[str, Formula]]
) -> str | None:
    """Return Fork or Join for two nodes that are one, inside `depth` loops; None otherwise."""
    if len(nodes) < 2:
        return None
    first, second = (_only_step(node) for node in nodes[:2])
    if first is None or second is None or (first.shape, second.shape) != (_POST, _WAIT):
        return None
    counter = Variable(f"loop{depth}")
    worker = plus(counter, Number(1))
    fork = {"thread": _MAIN, "owner": worker, "notify": Number(0)}
    join = {"thread": worker, "owner": _MAIN, "notify": counter}
    posts, waits = fields_of(first), fields_of(second)
    if posts == fork and waits == {"thread": worker, "notify": Number(0)}:
        return "Fork"
    if posts == join and waits == {"thread": _MAIN, "notify": counter}:
        return "Join"
    return None


def _only_step(node: Node) -> CppStep | None:
    """Return the step that a loop has, if it has one only."""
    if isinstance(node, Loop) and len(node.body) == 1 and isinstance(node.body[0], CppStep):
        return node.body[0]
    return None
