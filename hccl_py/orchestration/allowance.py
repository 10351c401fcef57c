"""How much may be recorded: counted in instructions, so that every machine gives up alike."""

from __future__ import annotations

from hccl_py.program.instruction import Instruction


class TooMuchError(BaseException):
    """More was to be recorded than is allowed; no `except Exception` of an author stops it."""


class Allowance:
    """Counts the instructions of a recording, those of attempts that were given up included."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.spent = 0

    def spend(self) -> None:
        """Count one more; TooMuchError beyond the most."""
        self.spent += 1
        if self.most is not None and self.spent > self.most:
            raise TooMuchError


class Counted(list[Instruction]):
    """The instructions of one batch, which an allowance counts."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance

    def append(self, instruction: Instruction) -> None:
        """Keep one more; TooMuchError beyond what is allowed."""
        self._allowance.spend()
        super().append(instruction)
