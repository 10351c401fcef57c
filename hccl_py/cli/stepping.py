"""`hccl-py trace --step`: memory task by task; by keys on a terminal, else one below the other."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from hccl_py.cli.output import Screen
from hccl_py.cli.streams import raw, results
from hccl_py.trace.board import Board, BoardDrawing

_FORWARDS, _BACK = ("n", " ", "right", "down", "j"), ("p", "left", "up", "k", "\x7f")
_ENDS = ("q", "escape", "\x03", "\x04", "")
_NAMES = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NAMES |= {"1~": "home", "7~": "home", "4~": "end", "8~": "end", "5~": "up", "6~": "down"}
_SEQUENCE = re.compile(r"[\[O]([0-9;]*[@-~])")
_HELP = "n, space, right: on   p, left: back   home, end   NUMBER enter   q: quit"


def step_through(drawing: BoardDrawing, screen: Screen, most: int) -> None:
    """Show the states of a board: by keys where there is a terminal at both ends, otherwise the
    first `most` below each other; 0: all.
    """
    has_keys = sys.stdin is not None and sys.stdin.isatty()
    if has_keys and results().isatty() and not screen.console.is_dumb_terminal:
        with _keyboard() as keys:
            _walk(drawing, screen, keys)
        return
    board = drawing.board
    for step in range(min(len(board.steps), most or len(board.steps)) + 1):
        board.go(step)
        if step:
            screen.show()
        for line in drawing.lines(screen.console.width):
            screen.show(line)
    if board.at < len(board.steps):
        screen.show()
        shown = "this was the first step" if most == 1 else f"these were the first {most} steps"
        rest = f"... {shown} of {len(board.steps)}; --limit 0 shows all."
        screen.show(rest, style="yellow")


def _walk(drawing: BoardDrawing, screen: Screen, keys: Iterator[str]) -> None:
    out, number, board = raw(results()), "", drawing.board
    while True:
        out.write("\x1b[H\x1b[2J")
        room = max(screen.console.height - 2, 1)
        for line in [*drawing.lines(screen.console.width, room)][:room]:
            screen.show(line)
        screen.show(f"{number}_ enter: go to that step" if number else _HELP, style="dim")
        out.flush()
        key = next(keys, "")
        if key in _ENDS:
            return
        if key.isdigit():
            number = (number + key)[:9]
            continue
        board.go(_next(board, key, number))
        number = ""


def _next(board: Board, key: str, number: str) -> int:
    """Return the step that a key leads to."""
    if key in ("\r", "\n"):
        return int(number) if number else board.at + 1
    if key in _FORWARDS:
        return board.at + 1
    if key in _BACK:
        return board.at - 1
    return {"home": 0, "g": 0, "end": len(board.steps), "G": len(board.steps)}.get(key, board.at)


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


@contextmanager
def _keyboard() -> Iterator[Keys]:
    """Read keys as they are pressed, on a screen of our own; everything is put back at the end."""
    import termios
    import tty

    descriptor, out = sys.stdin.fileno(), raw(results())
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        _write(out, "\x1b[?1049h\x1b[?25l")
        yield Keys(descriptor)
    finally:
        _write(out, "\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _write(out: TextIO, text: str) -> None:
    out.write(text)
    out.flush()
