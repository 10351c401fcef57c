"""A limit of recording, counted in instructions, so that every machine gives up alike."""

from __future__ import annotations

from hccl_py.program.instruction import Instruction


class TooMuchError(BaseException):
    """A recording exceeds its allowance; no `except Exception` of an author stops it."""


class Allowance:
    """Counts the instructions of a recording, with those of attempts that were given up."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.spent = 0

    def spend(self) -> None:
        """Count one instruction more; TooMuchError beyond the most."""
        self.spent += 1
        if self.most is not None and self.spent > self.most:
            raise TooMuchError


class LimitedList(list[Instruction]):
    """The instructions of one batch, counted by an allowance."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance

    def append(self, instruction: Instruction) -> None:
        """Append one more; TooMuchError beyond the allowance."""
        self._allowance.spend()
        super().append(instruction)
