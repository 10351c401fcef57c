"""A board in text: the task in words, then a box per buffer and rank.

    step 9 of 20, 24.67 us, all-gather
    rank 1 sub 0: read rank 0 CCL_Out[0:256K] > user_out[0:256K]

           CCL_Out  user_out
             0        0   1   2   3
    rank 0 ( 0 )    | 0 |   |   |   |
    rank 1 | 1 |    [ 0 ] 1 |   |   |

Brackets stand around what has changed, parentheses around what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from hccl_py.language import translated
from hccl_py.language.wrapping import columns, padded
from hccl_py.printable import brief
from hccl_py.program.describe import BUFFER_WORDS
from hccl_py.trace.board.cells import NOTHING, Board, CellRange
from hccl_py.trace.steps import steps_of
from hccl_py.trace.units import format_run, format_time, runs_of_numbers
from hccl_py.trace.words import Words

WIDEST_LABEL = 8
MOST_RANKS = 16
"""Ranks that are drawn unless others are asked for."""

_NARROWEST = 3
_GAP = 2
_CHANGED, _READ, _DIM = "bold green", "bold cyan", "dim"


class BoardDrawing:
    """Draws the states of a board, some of its ranks."""

    def __init__(self, board: Board, words: Words, ranks: Sequence[int]) -> None:
        self.board, self._words, self._ranks = board, words, ranks
        self._labels = _Labels(board)

    def lines(self, width: int, height: int | None = None) -> Iterator[Text]:
        """Yield the lines of the board's state. Where there are too many, buffers are left out that
        never change, or that the step does not touch.
        """
        headings = [*_headings(self.board, self._words), Text()]
        lines = self._boxes(self.board.buffers, width)
        for buffers in (self.board.written, self.board.touched()):
            if height is not None and len(headings) + len(lines) > height and buffers:
                lines = self._boxes(buffers, width)
        yield from headings
        yield from lines

    def _boxes(self, buffers: Sequence[int], width: int) -> list[Text]:
        names = [f"rank {rank}" for rank in self._ranks]
        left = max(map(len, names), default=0) + 1
        boxes = [_Box.of(self.board, b, self._labels, width - left) for b in buffers]
        lines = []
        for row in _rows(boxes, width - left):
            for style, texts in (
                ("bold", [box.title() for box in row]),
                (_DIM, [box.numbers() for box in row]),
            ):
                lines.append(Text((" " * left + "".join(texts)).rstrip(), style=style))
            for name, rank in zip(names, self._ranks, strict=True):
                line = Text(f"{name:<{left}}")
                for box in row:
                    line.append_text(box.cells(rank))
                line.rstrip()
                lines.append(line)
        return lines


def format_origins(origins: Sequence[int]) -> str:
    """Return the ranks of a sum of inputs: `0`, `0+1`, `+0-7` for the sum of 0 to 7."""
    plain = "+".join(map(str, origins))
    if len(origins) < 3 or len(plain) < WIDEST_LABEL - 2:
        return plain
    short = "+" + ",".join(format_run(*run) for run in runs_of_numbers(origins))
    return short if len(short) <= WIDEST_LABEL else f"+{len(origins)}"


def _headings(board: Board, words: Words) -> Iterator[Text]:
    """Yield the number of the step, and its task in words."""
    if board.bar < 0:
        first = translated(f"step 0 of {len(board.steps)}: before the first task")
        yield Text(first, style="bold")
        block = "" if board.blocks_stay else "0.1: block 1 of rank 0's input; "
        said = f"0: rank 0's input; {block}0+1, +0-3: sums; [written] (read)"
        said = said.removeprefix("0: rank 0's input; " if block else "")
        yield Text(translated(said), style=_DIM)
        return
    (step,) = steps_of(board.scene, [board.bar])
    parts = [f"step {board.at} of {len(board.steps)}", f"{format_time(step.effect_us)} us"]
    parts += [f"round {step.round + 1}"] if step.round else []
    parts += [step.label] if step.label else []
    yield Text(translated(", ".join(parts)), style="bold")
    place = f"rank {step.place.rank} {words.stream(step.place.stream)}"
    yield Text(f"{place}: {' '.join(words.line(step)).rstrip()}")


class _Labels:
    """The texts of cells, and the width of the longest."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._origins = [format_origins(origins) for origins in board.origins]
        longest = max(map(len, self._origins), default=1)
        longest += 0 if board.blocks_stay else 1 + len(str(board.most_block))
        self.width = max(longest, _NARROWEST)

    def of(self, content: int, block: int) -> str:
        """Return `0.1` for block 1 of rank 0's input, `0` where blocks stay in their places."""
        if content < 0:
            return "" if content == NOTHING else "?"
        origins = self._origins[content]
        return origins if self._board.blocks_stay else f"{origins}.{block}"


class _Box(NamedTuple):
    """The cells first .. stop - 1 of a buffer, of all ranks."""

    board: Board
    buffer: int
    labels: _Labels
    first: int
    stop: int

    @staticmethod
    def of(board: Board, buffer: int, labels: _Labels, room: int) -> _Box:
        """Return the box of a buffer; where it is too wide, of what is around the change."""
        count = len(board.cuts[buffer]) - 1
        fit = max((room - 1) // (labels.width + 1), 1)
        if count <= fit:
            return _Box(board, buffer, labels, 0, count)
        touched = [c.first for c in (*board.changed(), *board.read()) if c.buffer == buffer]
        first = min(max((touched or [0])[0] - fit // 3, 0), count - fit)
        return _Box(board, buffer, labels, first, first + fit)

    @property
    def width(self) -> int:
        """Columns, with the gap behind."""
        cells = (self.labels.width + 1) * (self.stop - self.first) + 1
        return max(cells, columns(self._name)) + _GAP

    @property
    def _name(self) -> str:
        name = self.board.scene.buffers[self.buffer]
        name, count = brief(BUFFER_WORDS.get(name, name)), len(self.board.cuts[self.buffer]) - 1
        shown = self.stop - self.first
        return name if shown == count else translated(f"{name}, {shown} of {count}")

    def title(self) -> str:
        """Return the buffer's name."""
        return padded(self._name, self.width)

    def numbers(self) -> str:
        """Return the cells' numbers, each above its cell."""
        cells = "".join(f" {k:^{self.labels.width}}" for k in range(self.first, self.stop))
        return f"{cells:<{self.width}}"

    def cells(self, rank: int) -> Text:
        """Return the cells of a rank."""
        text, size, board = Text(), self.labels.width, self.board
        changed, read = (
            _numbers(cells, rank, self.buffer) for cells in (board.changed(), board.read())
        )
        edge = style = ""
        for k in range(self.first, self.stop):
            if not board.has(rank, self.buffer, k):
                break
            label = self.labels.of(
                int(board.content[self.buffer][rank, k]), int(board.block[self.buffer][rank, k])
            )
            opens, closes, style = "|", "|", ""
            if k in read:
                opens, closes, style = "(", ")", _READ
            if k in changed:
                opens, closes, style = "[", "]", _CHANGED
            stays = k > self.first and (
                (k in read, k in changed) == (k - 1 in read, k - 1 in changed)
            )
            mark = "|" if stays else opens if edge in ("", "|") else edge
            text.append(mark, style=_DIM if mark == "|" else _CHANGED if mark in "[]" else _READ)
            text.append(f"{label:^{size}}", style=style)
            edge = closes
        text.append(edge, style=_DIM if edge == "|" else style)
        text.append(" " * (self.width - text.cell_len))
        return text


def _numbers(cells: Iterable[CellRange], rank: int, buffer: int) -> set[int]:
    mine = (c for c in cells if (c.rank, c.buffer) == (rank, buffer))
    return {k for some in mine for k in range(some.first, some.stop)}


def _rows(boxes: Sequence[_Box], width: int) -> Iterator[list[_Box]]:
    """Put boxes side by side while they fit."""
    row: list[_Box] = []
    for box in boxes:
        if row and sum(b.width for b in row) + box.width - _GAP > width:
            yield row
            row = []
        row.append(box)
    if row:
        yield row
