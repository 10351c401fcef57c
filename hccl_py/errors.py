"""Errors: each names the defect, the place, the numbers, and a way out.

Every error that a user can cause derives from `HcclError`. It carries the HcclResult that HCCL's C
API would return, one clear sentence, and a hint. The command line prints both and exits with status
2.
"""

import copy
import difflib
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

__all__ = [
    "ConfigError",
    "DeadlockError",
    "ExecTimeoutError",
    "FileError",
    "HcclError",
    "HcclResult",
    "MismatchError",
    "NotSupportedError",
    "OrchestrationError",
    "ParameterError",
    "PeerLostError",
    "PluginError",
    "ProgramFileError",
    "RankTableError",
    "TooManyTasksError",
    "did_you_mean",
]


class HcclResult(IntEnum):
    """The return codes of HCCL's C API."""

    SUCCESS = 0
    E_PARA = 1
    E_PTR = 2
    E_MEMORY = 3
    E_INTERNAL = 4
    E_NOT_SUPPORT = 5
    E_NOT_FOUND = 6
    E_UNAVAIL = 7
    E_SYSCALL = 8
    E_TIMEOUT = 9
    E_REMOTE = 21


SomeError = TypeVar("SomeError", bound="HcclError")


class HcclError(Exception):
    """Base of all errors; `result` is the HcclResult, `hint` the way out. `code` is HCCL's number
    for the error, such as EI0002, where it has one.
    """

    result = HcclResult.E_INTERNAL
    code: str = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def reworded(self: SomeError, message: str) -> SomeError:
        """Return the same error with another message."""
        error = copy.copy(self)
        error.message, error.args = message, (message, self.hint)
        return error

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ParameterError(HcclError):
    """An argument is outside of what the operation takes (HCCL_E_PARA)."""

    result = HcclResult.E_PARA


class ConfigError(ParameterError):
    """An environment variable or a setting has an illegal value (HCCL's EI0001)."""

    code = "EI0001"


class MismatchError(ParameterError):
    """Ranks called one op with different arguments (HCCL's EI0005)."""

    code = "EI0005"


class FileError(ParameterError):
    """A file violates its format; the message names the JSON path."""

    def __init__(self, message: str, hint: str = "", code: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


class ProgramFileError(FileError):
    """A program file violates its format; the message names the JSON path."""


class RankTableError(FileError):
    """A rank table or its topology file violates HCCL's format (EI0004, EI0014); the message names
    the JSON path.
    """


class NotSupportedError(HcclError):
    """Legal in itself, but not offered for this product, data type or topology
    (HCCL_E_NOT_SUPPORT).
    """

    result = HcclResult.E_NOT_SUPPORT


class DeadlockError(HcclError):
    """Streams wait for notifies that no task will post (on hardware: HCCL_E_TIMEOUT after
    HCCL_EXEC_TIMEOUT).
    """

    result = HcclResult.E_TIMEOUT


class LostLinkError(DeadlockError):
    """A program needs a link that is lost: `what` goes over it, `size` bytes."""

    def __init__(self, message: str, hint: str = "", *, what: str = "", size: int = 0) -> None:
        super().__init__(message, hint)
        self.what = what
        self.size = size


class ExecTimeoutError(HcclError):
    """A wait took longer than HCCL_EXEC_TIMEOUT or its caller allows (HCCL's EI0002)."""

    result = HcclResult.E_TIMEOUT
    code = "EI0002"


class PeerLostError(HcclError):
    """A process that owns ranks of the group has ended (HCCL_E_REMOTE)."""

    result = HcclResult.E_REMOTE


class PluginError(HcclError):
    """A plugin package or one of its executors breaks the contract; the message names it."""


class OrchestrationError(HcclError):
    """An executor recorded something impossible.

    `finding` is the verifier's class name where one fits, `line` the author's source line as
    `file:line`, `ranks` the ranks that were recorded together.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        finding: str = "",
        line: str = "",
        ranks: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message, hint)
        self.finding = finding
        self.line = line
        self.ranks = ranks


class TooManyTasksError(OrchestrationError):
    """An executor records without an end, or more than anything could run."""


MOST_NAMES = 20
"""Names that an error lists where none is near the given one."""


def did_you_mean(name: str, known: Iterable[str], *, listed_by: str = "") -> str:
    """Return a hint with the known names that contain one, or the nearest; where none is near, with
    all of them, or the nearest few of many. `listed_by` is the command that lists them all.
    """
    choices = sorted(known)
    near = _near(name, choices, 3, 0.5)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if len(choices) <= MOST_NAMES:
        return f"Known: {', '.join(choices) or 'none'}."
    few = ", ".join(_near(name, choices, 5, 0.0))
    more = f": {listed_by} shows all" if listed_by else ""
    return f"The nearest are {few}, of {len(choices)}{more}."


def _near(name: str, choices: list[str], most: int, cutoff: float) -> list[str]:
    """Return the names with one in them, or those most like it; if there are none, ignoring upper
    case.
    """
    inside = [choice for choice in choices if len(name) > 1 and name.lower() in choice.lower()]
    if inside:
        return inside[:most]
    near = difflib.get_close_matches(name, choices, n=most, cutoff=cutoff)
    if near:
        return near
    lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.lower(), list(lower), n=most, cutoff=cutoff)
    return [lower[key] for key in found]
