"""The result of selection for one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hccl_py.plugins.fidelity import UNDECLARED, Fidelity
from hccl_py.selection.rules import Cost


@dataclass(frozen=True)
class Rejected:
    """An executor that was not chosen, and why; `listed` if the device's table names it."""

    executor: str
    reason: str
    listed: bool = True


@dataclass(frozen=True)
class Selection:
    """The executor that runs, the one that HCCL would run, and the reasons.

    `algorithm` has the algorithm of each level, `hccl_algorithm` HCCL's; `levels` has the words for
    the levels of `OpParam`. `tag` is the key under which resources are reused. `hccl_executor`
    differs from `executor` only where HCCL's is not offered here or the user named another one, and
    is None where HCCL refuses the call: with `result`, because of `refusal`, and where hccl-py does
    not know what it takes: because of `unknown`. `engine` is that of HCCL's executor on an Ascend
    950, and `costs` what HCCL's cost table has, where that chooses. `fidelity` says how closely the
    executor follows HCCL's of that name. `why_levels` has the reason for the algorithm of each
    level, `overruled` a sentence for each word of HCCL_ALGO that does not count. `against` finds
    the reasons against the other
    executors, when `rejected` is first read.
    """

    op: str
    executor: str
    hccl_executor: str | None
    algorithm: Mapping[str, str]
    tag: str
    reasons: tuple[str, ...]
    ruleset: str
    against: Callable[[], tuple[Rejected, ...]] = field(default=tuple, repr=False, compare=False)
    hccl_algorithm: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    result: str = ""
    refusal: str = ""
    unknown: str = ""
    engine: str = ""
    costs: tuple[Cost, ...] = ()
    source: str = ""
    fidelity: Fidelity = UNDECLARED
    why_levels: Mapping[str, str] = field(default_factory=dict)
    overruled: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """True if HCCL would run this executor with these levels, and it does what HCCL's does."""
        words = all(self.hccl_algorithm.get(level) == word for level, word in self.levels.items())
        return self.executor == self.hccl_executor and words and self.fidelity.is_same

    @cached_property
    def rejected(self) -> tuple[Rejected, ...]:
        """The other executors of the op, each with the reason why it was not chosen."""
        return self.against()
