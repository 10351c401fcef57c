"""Where the tasks of a plan's program come from."""

from __future__ import annotations

from typing import NamedTuple

from hccl_interop.mscclpp.plan import PlanBlock
from hccl_interop.mscclpp.steps import PlanStep


class PlanPlace(NamedTuple):
    """What a task comes from: an operation of a threadblock, as it runs once. `what` says what the
    task is for, where that is not all of it. Nothing at all is what main does: it starts and joins
    threadblocks.
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
