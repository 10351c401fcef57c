"""What a call of somebody else's notation has, an algorithm of MSCCL or a plan of mscclpp: a
program, where one can be made, and what is wrong with the text itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from hccl_py.msccl.checks import Defect
from hccl_py.program.program import Program

if TYPE_CHECKING:  # who only times a program does without the verifier
    from hccl_py.verifier import Finding, Report

__all__ = ["UNVERIFIED", "ImportedCall"]

UNVERIFIED = "The program was not verified: it is not whole."


class ReadNotation(Protocol):
    """An algorithm or a plan, as it was read."""

    @property
    def file(self) -> str: ...

    def source(self, line: int) -> str:
        """Return a line as findings name it."""


class WrittenTasks(Protocol):
    """What was made of it."""

    @property
    def program(self) -> Program: ...


class ImportedCall(ABC):
    """A call: `built` is None where `defects` leave no program to be made."""

    defects: tuple[Defect, ...]
    built: WrittenTasks | None

    @property
    @abstractmethod
    def notation(self) -> ReadNotation:
        """The algorithm or plan."""

    @property
    def program(self) -> Program | None:
        """The program, where one can be made."""
        return None if self.built is None else self.built.program

    def require(self) -> Program:
        """Return the program; ParameterError with the first defect where there is none."""
        if self.built is not None:
            return self.built.program
        first = next(defect for defect in self.defects if defect.is_fatal)
        raise first.refusal(self.notation.source(first.line))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the notation itself."""
        return tuple(d.finding(self.notation.source(d.line)) for d in self.defects)

    def recorded(self) -> Report:
        """Return these findings alone."""
        from hccl_py.verifier import Report

        programs = {} if self.program is None else {"": self.program}
        return Report.of(self.notation.file, self.findings, programs, cases=len(programs))
