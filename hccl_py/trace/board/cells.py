"""Memory as cells that no task cuts, and what each holds after every step.

Blocks are the pieces into which the tasks cut the inputs; a cell holds one block of one rank's
input, or of the sum of several. Where a buffer is cut, inputs are cut that pass through it, and the
other way round, until nothing is cut any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.trace.scene import MemoryStates, Scene
from hccl_py.values import IntArray

NOTHING, UNDEFINED = -2, -1
"""Contents of unwritten memory, and of memory without a meaning."""

_ORDER = ("IN", "CCL_IN", "CCL_OUT", "SCRATCH", "OUT")
_MOST_CELLS = 4096


class CellRange(NamedTuple):
    """Cells first .. stop - 1 of a buffer of a rank; `rank` is the rank's number, `buffer` too."""

    rank: int
    buffer: int
    first: int
    stop: int


class BoardStep(NamedTuple):
    """The changes first .. stop - 1, which a bar makes."""

    bar: int
    first: int
    stop: int


class _Change(NamedTuple):
    """The former contents of cells."""

    at: CellRange
    content: IntArray
    block: IntArray


class Board:
    """The memory of all ranks after some steps; it begins before the first one.

    `content[buffer]` and `block[buffer]` are [ranks, cells]: numbers in `origins`, and which block
    of the input. `cuts[buffer]` are the bytes at which cells begin, and the last one ends. Raises
    ParameterError where the contents of memory are unknown, or cut too finely. `buffers` are those
    with contents, in the order in which data passes them; `written` those that tasks change.
    """

    def __init__(self, scene: Scene) -> None:
        if scene.memory is None:
            raise ParameterError(scene.memory_left_out, "Give fewer ranks, or less data.")
        self.scene, self._memory = scene, scene.memory
        self.origins = scene.memory.origins
        self.cuts, self._inputs = _cuts_of(scene.memory)
        ranks = len(scene.memory.sizes)
        self.content = {b: np.full((ranks, len(c) - 1), NOTHING) for b, c in self.cuts.items()}
        self.block = {b: np.zeros((ranks, len(c) - 1), np.int64) for b, c in self.cuts.items()}
        names = scene.buffers
        self.buffers = sorted(
            self.cuts, key=lambda b: (_ORDER.index(names[b]) if names[b] in _ORDER else 3, b)
        )
        self.steps = _steps_of(scene.memory)
        changing = set(scene.memory.buffer[scene.memory.begin :].tolist())
        self.written = [buffer for buffer in self.buffers if buffer in changing]
        self.blocks_stay = len(self._inputs) <= 2 or self._blocks_stay()
        self.at = 0
        self._before: list[list[_Change]] = []
        for change in range(scene.memory.begin):
            self._apply(change)

    @property
    def bar(self) -> int:
        """The bar of the step that was made last, -1 before the first one."""
        return self.steps[self.at - 1].bar if self.at else -1

    @property
    def most_block(self) -> int:
        """The highest number of a block."""
        return max(len(self._inputs) - 2, 0)

    def block_of(self, byte: int) -> int:
        """Return the number of the block in which a byte of the inputs is."""
        return int(np.searchsorted(self._inputs, byte, "right")) - 1

    def go(self, step: int) -> None:
        """Go forwards or back until so many steps are made, at most all."""
        step = min(max(step, 0), len(self.steps))
        while self.at < step:
            made = self.steps[self.at]
            self._before.append([self._apply(k) for k in range(made.first, made.stop)])
            self.at += 1
        while self.at > step:
            for change in reversed(self._before.pop()):
                self._put(*change)
            self.at -= 1

    def has(self, rank: int, buffer: int, cell: int) -> bool:
        """Return True if a cell lies within the buffer of a rank."""
        return int(self.cuts[buffer][cell]) < int(self._memory.sizes[rank, buffer])

    def touched(self) -> list[int]:
        """Return the buffers that the last step has written or read."""
        some = {cells.buffer for cells in (*self.changed(), *self.read())}
        return [buffer for buffer in self.buffers if buffer in some]

    def changed(self) -> list[CellRange]:
        """Return the cells that the last step has written."""
        if not self.at:
            return []
        made = self.steps[self.at - 1]
        return [self._cells(k) for k in range(made.first, made.stop)]

    def read(self) -> list[CellRange]:
        """Return the cells that the last step has read."""
        bar, bars = self.bar, self.scene.bars
        if bar < 0 or bars.src_buffer[bar] < 0 or int(bars.src_buffer[bar]) not in self.cuts:
            return []
        buffer, start = int(bars.src_buffer[bar]), int(bars.src_offset[bar])
        first, stop = np.searchsorted(self.cuts[buffer], [start, start + int(bars.size[bar])])
        return [CellRange(int(bars.src_rank[bar]), buffer, int(first), int(stop))]

    def _cells(self, change: int) -> CellRange:
        memory = self._memory
        buffer = int(memory.buffer[change])
        ends = [memory.start[change], memory.stop[change]]
        first, stop = np.searchsorted(self.cuts[buffer], ends).tolist()
        return CellRange(int(memory.rank[change]), buffer, first, stop)

    def _blocks(self, change: int, cells: CellRange) -> IntArray:
        at = self.cuts[cells.buffer][cells.first : cells.stop] - self._memory.start[change]
        found: IntArray = np.searchsorted(self._inputs, self._memory.offset[change] + at, "right")
        return found - 1

    def _apply(self, change: int) -> _Change:
        cells = self._cells(change)
        part = slice(cells.first, cells.stop)
        before = _Change(
            cells,
            self.content[cells.buffer][cells.rank, part].copy(),
            self.block[cells.buffer][cells.rank, part].copy(),
        )
        content = np.full(len(before.content), self._memory.content[change])
        self._put(cells, content, self._blocks(change, cells))
        return before

    def _put(self, cells: CellRange, content: IntArray, block: IntArray) -> None:
        part = slice(cells.first, cells.stop)
        self.content[cells.buffer][cells.rank, part] = content
        self.block[cells.buffer][cells.rank, part] = block

    def _blocks_stay(self) -> bool:
        """Return True if every block is always in the cell of its own number."""
        for change in np.flatnonzero(self._memory.content >= 0).tolist():
            cells = self._cells(change)
            if (self._blocks(change, cells) != np.arange(cells.first, cells.stop)).any():
                return False
        return True


def _steps_of(memory: MemoryStates) -> list[BoardStep]:
    """Return the runs of changes that one bar makes."""
    bars = memory.bar[memory.begin :]
    first = np.flatnonzero(np.diff(bars, prepend=-1)) + memory.begin
    stop = np.append(first, len(memory))[1:]
    columns = (memory.bar[first].tolist(), first.tolist(), stop.tolist())
    return [BoardStep(*step) for step in zip(*columns, strict=True)]


def _cuts_of(memory: MemoryStates) -> tuple[dict[int, IntArray], IntArray]:
    """Return the bytes at which the buffers are cut, by their numbers, and those of the inputs."""
    columns = (memory.buffer, memory.start, memory.stop, memory.offset, memory.content >= 0)
    moves = np.unique(np.stack(columns).astype(np.int64), axis=1).T.tolist() if len(memory) else []
    cuts: dict[int, set[int]] = {}
    inputs: set[int] = set()
    for buffer, start, stop, offset, is_known in moves:
        cuts.setdefault(buffer, set()).update((start, stop))
        if is_known:
            inputs.update((offset, offset + stop - start))
    known = [move[:4] for move in moves if move[4]]
    while _cut_further(known, cuts, inputs):
        most = max(map(len, (*cuts.values(), inputs)))
        if most > _MOST_CELLS:
            raise ParameterError(
                f"The tasks cut memory into more than {_MOST_CELLS} pieces, too many to draw.",
                "Give fewer ranks, or less data.",
            )
    return {b: np.array(sorted(at)) for b, at in cuts.items()}, np.array(sorted(inputs))


def _cut_further(
    moves: Sequence[Sequence[int]], cuts: dict[int, set[int]], inputs: set[int]
) -> bool:
    """Cut inputs where what holds them is cut, and the other way round; return whether any was."""
    before = len(inputs) + sum(map(len, cuts.values()))
    for buffer, start, stop, offset in moves:
        here = cuts[buffer]
        inputs |= {offset + at - start for at in here if start < at < stop}
        here |= {start + at - offset for at in inputs if offset < at < offset + stop - start}
    return len(inputs) + sum(map(len, cuts.values())) > before
