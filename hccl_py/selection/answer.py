"""What selection says of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hccl_py.plugins.fidelity import UNDECLARED, Fidelity


@dataclass(frozen=True)
class Rejected:
    """An executor that was not chosen, and why; `listed` if the device's table names it."""

    executor: str
    reason: str
    listed: bool = True


@dataclass(frozen=True)
class Selection:
    """What runs, what HCCL would run, and why.

    `algorithm` is what runs on each level, `hccl_algorithm` what HCCL would run; `levels` has the
    words for levels of `OpParam`. `tag` is the key under which resources are reused.
    `hccl_executor` differs from `executor` only where HCCL's is not offered here or the user named
    another one, and is None where HCCL refuses the call: with `result`, because of `refusal`.
    `fidelity` says how far what runs is what HCCL's executor of that name does. The
    reasons against the others are looked for when somebody reads `rejected`: `against` does it.
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
    source: str = ""
    fidelity: Fidelity = UNDECLARED

    @property
    def is_same(self) -> bool:
        """Whether HCCL would run the same: the executor, the words of open levels, the steps."""
        words = all(self.hccl_algorithm.get(level) == word for level, word in self.levels.items())
        return self.executor == self.hccl_executor and words and self.fidelity.is_same

    @cached_property
    def rejected(self) -> tuple[Rejected, ...]:
        """Every other executor of the op, and why it was not chosen."""
        return self.against()
