"""Places in a plan from which tasks of its program come."""

from __future__ import annotations

from typing import NamedTuple

from hccl_interop.mscclpp.plan import PlanBlock
from hccl_interop.mscclpp.steps import PlanStep


class PlanPlace(NamedTuple):
    """The origin of a task: an operation of a threadblock, as it runs once. `what` names the part
    of the operation that the task does, "" for all of it. Without members it is a task by which
    main starts and joins threadblocks.
    """

    block: PlanBlock | None = None
    step: PlanStep | None = None
    what: str = ""

    def words(self, rank: int) -> str:
        """Return the place in a plan's words; empty where the plan does not say it."""
        if self.block is None or self.step is None:
            return self.what
        where = f"{self.step.op} of threadblock {self.block.id} of GPU {rank}"
        passed = f", pass {self.step.number}" if self.step.number >= 0 else ""
        what = f"{self.what} of " if self.what else ""
        return f"{what}{where}, line {self.step.op.line}{passed}"

    def is_authors(self) -> bool:
        """Return True for a signal of a channel or a semaphore, which the author has written."""
        text = self.words(0)
        return "channel" in text or "semaphore" in text
