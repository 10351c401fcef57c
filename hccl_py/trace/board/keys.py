"""Keys of a terminal, and the steps of a board that they lead to."""

from __future__ import annotations

import os
import re

from hccl_py.trace.board.cells import Board

_FORWARDS, _BACK = ("n", " ", "right", "down", "j"), ("p", "left", "up", "k", "\x7f")
_NAMES = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NAMES |= {"1~": "home", "7~": "home", "4~": "end", "8~": "end", "5~": "up", "6~": "down"}
_SEQUENCE = re.compile(r"[\[O]([0-9;]*[@-~])")


class Keys:
    """The keys that are pressed, read from a file descriptor: characters, or names of others."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._pending = descriptor, ""

    def __iter__(self) -> Keys:
        return self

    def __next__(self) -> str:
        """Return the next key; StopIteration at the end of the input."""
        if not self._pending:
            self._pending = os.read(self._descriptor, 1024).decode("utf-8", "replace")
        if not self._pending:
            raise StopIteration
        first, self._pending = self._pending[0], self._pending[1:]
        if first != "\x1b":
            return first
        if self._pending[:1] not in ("[", "O"):
            return "escape"
        sequence = _SEQUENCE.match(self._pending)
        self._pending = self._pending[sequence.end() if sequence else 1 :]
        return _NAMES.get(sequence[1], "unknown") if sequence else "unknown"


def next_step(board: Board, key: str, number: str) -> int:
    """Return the step that a key leads to."""
    if key in ("\r", "\n"):
        return int(number) if number else board.at + 1
    if key in _FORWARDS:
        return board.at + 1
    if key in _BACK:
        return board.at - 1
    return {"home": 0, "g": 0, "end": len(board.steps), "G": len(board.steps)}.get(key, board.at)
