"""What every byte of memory holds after one run of a program, exactly, without looking at bytes.

Memory is kept as pieces. A piece says: the byte at address x holds content c at x + delta. Content
r below the number of ranks is rank r's input, at the address where it lay; the others are sums of
two contents, each with a delta of its own, made by one task. A copy passes pieces on, cut where its
source is cut; pieces that continue each other become one again. In the end the content of an output
unfolds into the input bytes that it is made of, each with how often it counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.kernels import kernel, kernel_calling
from hccl_py.values import IntArray
from hccl_py.verify.analysis.memory import Memory

__all__ = ["GARBAGE", "UNDEFINED", "Contents", "Made", "Pieces", "contents_of"]

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

UNDEFINED, GARBAGE = -1, -2
"""Contents of memory that nobody wrote, and of what a finding has been made of already."""

READ, REDUCED_INTO, CLOBBERED = 0, 1, 2


@dataclass(frozen=True)
class Made:
    """What a content is made of: how often each (rank, address of its input) counts, and the moves
    that reduced.
    """

    counts: dict[tuple[int, int], int]
    moves: frozenset[int]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of memory in the order of their addresses: bytes start .. stop hold a content, shifted
    by delta; `writer` is the move that wrote them last (-1: none).
    """

    start: IntArray
    stop: IntArray
    content: IntArray
    delta: IntArray
    writer: IntArray


@dataclass(frozen=True, eq=False)
class Contents:
    """What the outputs hold, and what was noted on the way.

    `undefined` has rows (move, first address, last + 1) of reads of memory that nobody wrote,
    `into_undefined` of reductions into such, `clobbered` of reads of an input that the op itself
    has overwritten. `is_used` says of every move whether anything that it wrote was read or is
    output.
    """

    pieces: Pieces
    undefined: IntArray
    into_undefined: IntArray
    clobbered: IntArray
    is_used: Bools
    ranks: int
    _sums: Sums

    def are_sums(
        self,
        roots: IntArray,
        shift: IntArray,
        base: IntArray,
        right_moves: Bools,
        *,
        again: bool = False,
    ) -> Bools:
        """Whether content roots[k] is the reduction of all ranks' inputs, each once and at
        base[rank] + shift[k]; `again` says that more than once is as good (max, min).

        `right_moves` says whether a move reduces as the call says.
        """
        is_right = right_moves[self._sums.move]
        run = _are_sums.sized(len(roots) * (2 * self.ranks + 1))
        answers = run(roots, shift, base, self._sums, is_right, again)
        for k in np.flatnonzero(answers < 0).tolist():  # one sum stands there at two places
            made = self.made_of(int(roots[k]), 0)
            wanted = {(r, int(base[r] + shift[k])): 1 for r in range(self.ranks)}
            counts = dict.fromkeys(made.counts, 1) if again else made.counts
            answers[k] = counts == wanted and all(right_moves[m] for m in made.moves)
        return answers > 0

    def made_of(self, content: int, delta: int) -> Made:
        """Unfold a content at the address delta."""
        sums, counts = self._sums, Counter({(content, delta): 1})
        moves, order = set(), [(-content, delta)]
        while order:
            number, at = heappop(order)
            k = -number - self.ranks
            if k >= 0:
                moves.add(int(sums.move[k]))
                for side, shift in (
                    (int(sums.left[k]), int(sums.left_delta[k])),
                    (int(sums.right[k]), int(sums.right_delta[k])),
                ):
                    key = side, at + shift
                    if key not in counts:
                        heappush(order, (-side, at + shift))
                    counts[key] += counts[-number, at]
        inputs = {key: count for key, count in sorted(counts.items()) if key[0] < self.ranks}
        return Made(inputs, frozenset(moves))


class Sums(NamedTuple):
    """Sum k at x adds left at x + left_delta to right at x + right_delta; `move` made it."""

    left: Int32s
    left_delta: IntArray
    right: Int32s
    right_delta: IntArray
    move: Int32s


class Steps(NamedTuple):
    """The moves in order, and by move: addresses and atoms of both sides, and what it does."""

    sequence: Int32s
    src: IntArray
    src_stop: IntArray
    dst: IntArray
    dst_stop: IntArray
    src_atom: IntArray
    src_last: IntArray
    dst_atom: IntArray
    dst_last: IntArray
    reduces: Bools
    garbage: Bools
    clobberable: Int32s
    bounds: IntArray
    ranks: int


class Heap(NamedTuple):
    """Pieces in lists by atom, two scratch lists, sums, notes, and counters."""

    head: Int32s
    start: IntArray
    content: Int32s
    delta: IntArray
    writer: Int32s
    following: Int32s
    scratch: IntArray
    sums: Sums
    notes: IntArray
    is_used: Bools
    counters: IntArray


FREE, SUMS, NOTES, FULL = 0, 1, 2, 3
"""Places in Heap.counters: the head of the free pieces, sums, notes, whether the room is full."""


def contents_of(memory: Memory, order: Int32s) -> Contents:
    """Follow the contents of memory through one copy of a program; `order` has its task rows."""
    steps = _steps(memory, order)
    accesses = int((steps.src_last - steps.src_atom + steps.dst_last - steps.dst_atom).sum())
    room = 4 * len(memory.atoms) + accesses + 256
    while True:
        heap = _heap(memory, steps, room)
        _follow.sized(accesses + len(steps.sequence))(steps, heap)
        if not heap.counters[FULL]:
            break
        room *= 4
    notes = heap.notes[: heap.counters[NOTES]]
    pieces = _outputs(memory, heap)
    heap.is_used[pieces.writer[pieces.writer >= 0]] = True
    found = {what: notes[notes[:, 0] == what][:, 1:] for what in (READ, REDUCED_INTO, CLOBBERED)}
    made = int(heap.counters[SUMS])
    left, left_delta, right, right_delta, move = heap.sums
    return Contents(
        pieces,
        found[READ],
        found[REDUCED_INTO],
        found[CLOBBERED],
        heap.is_used,
        memory.program.ranks,
        Sums(left[:made], left_delta[:made], right[:made], right_delta[:made], move[:made]),
    )


def _steps(memory: Memory, order: Int32s) -> Steps:
    transfers, atoms, program = memory.transfers, memory.atoms, memory.program
    move_of_row = np.full(len(program.tasks), -1, np.int32)
    move_of_row[transfers.row] = np.arange(len(transfers))
    sequence = move_of_row[order]
    kind = program.tasks.kind[transfers.row]
    clobberable = np.full(len(transfers), -1, np.int32)
    if memory.is_shared and "IN" in program.buffers:
        number = program.buffers.index("IN")
        at = program.tasks.instruction[transfers.row]
        reads = np.flatnonzero(program.tasks.table.src_buffer[at] == number)
        base = memory.spaces.base[:, number]
        clobberable[reads] = np.searchsorted(base, transfers.src[reads], side="right") - 1
    return Steps(
        sequence=sequence[sequence >= 0],
        src=transfers.src,
        src_stop=transfers.src + transfers.src_size,
        dst=transfers.dst,
        dst_stop=transfers.dst + transfers.dst_size,
        src_atom=atoms.src,
        src_last=atoms.src_stop,
        dst_atom=atoms.dst,
        dst_last=atoms.dst_stop,
        reduces=np.isin(kind, [k for k in TaskKind if k.reduces]),
        garbage=transfers.garbage,
        clobberable=clobberable,
        bounds=atoms.start,
        ranks=program.ranks,
    )


def _heap(memory: Memory, steps: Steps, room: int) -> Heap:
    atoms = max(len(memory.atoms), 1)
    following = np.arange(1, room + 1, dtype=np.int32)
    following[-1] = -1
    empty = [np.empty(room, np.int32) for _ in range(3)]
    deltas = [np.empty(room, np.int64) for _ in range(2)]
    heap = Heap(
        head=np.full(atoms, -1, np.int32),
        start=np.empty(room, np.int64),
        content=np.empty(room, np.int32),
        delta=np.empty(room, np.int64),
        writer=np.empty(room, np.int32),
        following=following,
        scratch=np.empty((8, room + atoms + 2), np.int64),
        sums=Sums(empty[0], deltas[0], empty[1], deltas[1], empty[2]),
        notes=np.empty((room, 4), np.int64),
        is_used=np.zeros(len(memory.transfers), bool),
        counters=np.zeros(4, np.int64),
    )
    first, stop = memory.owned("IN")
    inputs = np.concatenate([np.arange(a, b) for a, b in zip(first, stop, strict=True)])
    heap.head[inputs] = np.arange(len(inputs))
    heap.start[: len(inputs)] = memory.atoms.start[inputs]
    heap.content[: len(inputs)] = np.repeat(np.arange(len(first)), stop - first)
    heap.delta[: len(inputs)] = 0
    heap.writer[: len(inputs)] = -1
    heap.following[: len(inputs)] = -1
    heap.counters[FREE] = len(inputs)
    return heap


def _outputs(memory: Memory, heap: Heap) -> Pieces:
    """Return the pieces of all outputs; what nobody wrote is a piece without content."""
    first, stop = memory.owned("OUT")
    steps = int((stop - first).sum())
    count, columns = _listed.sized(steps)(first, stop, memory.atoms.start, heap)
    return Pieces(*(column[:count] for column in columns))


@kernel
def _listed(first: IntArray, stop: IntArray, bounds: IntArray, heap: Heap) -> tuple[int, Any]:
    """List the pieces of ranges of atoms; neighbours that continue each other become one."""
    room = len(heap.start) + len(heap.head)
    columns = np.empty((5, room), np.int64)
    n = 0
    for r in range(len(first)):
        begin = n
        for atom in range(first[r], stop[r]):
            entry = heap.head[atom]
            if entry < 0:
                columns[0, n], columns[1, n] = bounds[atom], bounds[atom + 1]
                columns[2, n], columns[3, n], columns[4, n] = -1, 0, -1
                n += 1
            while entry >= 0:
                behind = heap.following[entry]
                end = heap.start[behind] if behind >= 0 else bounds[atom + 1]
                same = n > begin and columns[2, n - 1] == heap.content[entry]
                if (
                    same
                    and columns[3, n - 1] == heap.delta[entry]
                    and columns[4, n - 1] == heap.writer[entry]
                ):
                    columns[1, n - 1] = end
                else:
                    columns[0, n], columns[1, n] = heap.start[entry], end
                    columns[2, n], columns[3, n] = heap.content[entry], heap.delta[entry]
                    columns[4, n] = heap.writer[entry]
                    n += 1
                entry = behind
    return n, columns


def _note(h: Heap, what: int, move: int, start: int, stop: int) -> None:
    n = h.counters[NOTES]
    if n == len(h.notes):
        h.counters[FULL] = 1
        return
    h.notes[n, 0], h.notes[n, 1], h.notes[n, 2], h.notes[n, 3] = what, move, start, stop
    h.counters[NOTES] = n + 1


def _gather(s: Steps, h: Heap, move: int, into: bool) -> int:
    """Put the pieces of one side of a move into a scratch list: offset, content, delta; return how
    many. The delta is that of the destination.
    """
    base = 4 if into else 0
    begin, end = (s.dst[move], s.dst_stop[move]) if into else (s.src[move], s.src_stop[move])
    low, high = (
        (s.dst_atom[move], s.dst_last[move])
        if into
        else (
            s.src_atom[move],
            s.src_last[move],
        )
    )
    shift = 0 if into else s.src[move] - s.dst[move]
    n = 0
    for atom in range(low, high):
        entry = h.head[atom]
        if entry < 0:
            _note(h, REDUCED_INTO if into else READ, move, s.bounds[atom], s.bounds[atom + 1])
            h.scratch[base, n], h.scratch[base + 1, n] = s.bounds[atom] - begin, -2
            h.scratch[base + 2, n] = 0
            n += 1
        while entry >= 0:
            behind = h.following[entry]
            stop = h.start[behind] if behind >= 0 else s.bounds[atom + 1]
            content = h.content[entry]
            if h.writer[entry] >= 0:
                h.is_used[h.writer[entry]] = True
            if content == -1:
                _note(h, REDUCED_INTO if into else READ, move, h.start[entry], stop)
                content = -2
            elif (
                not into
                and s.clobberable[move] >= 0
                and (content != s.clobberable[move] or h.delta[entry] != 0)
            ):
                _note(h, CLOBBERED, move, h.start[entry], stop)
            h.scratch[base, n], h.scratch[base + 1, n] = h.start[entry] - begin, content
            h.scratch[base + 2, n] = h.delta[entry] + shift
            n += 1
            entry = behind
    if n + 1 < h.scratch.shape[1]:
        h.scratch[base, n] = end - begin
    else:
        h.counters[FULL] = 1
    return n


def _add(s: Steps, h: Heap, move: int, n: int) -> int:
    """Replace the scratch list of the source by sums with that of the destination."""
    _gather(s, h, move, True)
    i, j, k, at = 0, 0, 0, 0
    end = s.dst_stop[move] - s.dst[move]
    while at < end:
        stop = min(h.scratch[0, i + 1], h.scratch[4, j + 1])
        left, right = h.scratch[5, j], h.scratch[1, i]
        content = -2
        if left >= 0 and right >= 0:
            made = h.counters[SUMS]
            if made == len(h.sums.left) or k + 1 >= h.scratch.shape[1]:
                h.counters[FULL] = 1
                return 0
            h.sums.left[made], h.sums.left_delta[made] = left, h.scratch[6, j]
            h.sums.right[made], h.sums.right_delta[made] = right, h.scratch[2, i]
            h.sums.move[made] = move
            h.counters[SUMS] = made + 1
            content = s.ranks + made
        h.scratch[3, k], h.scratch[7, k] = at, content
        k += 1
        at = stop
        if at == h.scratch[0, i + 1]:
            i += 1
        if at == h.scratch[4, j + 1]:
            j += 1
    for x in range(k):
        h.scratch[0, x], h.scratch[1, x], h.scratch[2, x] = h.scratch[3, x], h.scratch[7, x], 0
    h.scratch[0, k] = end
    return k


def _store(s: Steps, h: Heap, move: int, n: int) -> None:
    """Write the scratch list over the destination, cut at the bounds of atoms."""
    begin, i = s.dst[move], 0
    for atom in range(s.dst_atom[move], s.dst_last[move]):
        entry = h.head[atom]
        while entry >= 0:
            behind = h.following[entry]
            h.following[entry] = h.counters[FREE]
            h.counters[FREE] = entry
            entry = behind
        h.head[atom] = -1
        low, high, last = s.bounds[atom] - begin, s.bounds[atom + 1] - begin, -1
        while i + 1 < n and h.scratch[0, i + 1] <= low:
            i += 1
        k = i
        while k < n and h.scratch[0, k] < high:
            content, delta = h.scratch[1, k], h.scratch[2, k]
            if last < 0 or h.content[last] != content or h.delta[last] != delta:
                entry = h.counters[FREE]
                if entry < 0:
                    h.counters[FULL] = 1
                    return
                h.counters[FREE] = h.following[entry]
                h.start[entry] = begin + max(h.scratch[0, k], low)
                h.content[entry], h.delta[entry] = content, delta
                h.writer[entry], h.following[entry] = move, -1
                if last < 0:
                    h.head[atom] = entry
                else:
                    h.following[last] = entry
                last = entry
            k += 1


@kernel_calling(lambda: (_note, _gather, _add, _store), allocates=False)
def _follow(s: Steps, h: Heap) -> None:
    """Run the moves on pieces, until the end or until the room is full."""
    for move in s.sequence:
        n = _gather(s, h, move, False)
        if s.garbage[move]:
            h.scratch[0, 0], h.scratch[1, 0], h.scratch[2, 0] = 0, -2, 0
            h.scratch[0, 1] = s.dst_stop[move] - s.dst[move]
            n = 1
        elif s.reduces[move] and h.counters[FULL] == 0:
            n = _add(s, h, move, n)
        if h.counters[FULL] == 0:
            _store(s, h, move, n)
        if h.counters[FULL] != 0:
            break


@kernel
def _are_sums(
    roots: IntArray, shift: IntArray, base: IntArray, sums: Sums, is_right: Bools, again: bool
) -> npt.NDArray[np.int8]:
    """Whether each root adds up the inputs at base + shift, once each, in right steps; -1 where a
    sum is reached at two places, which this loop does not count.

    Sides are older than their sum, so going down by number counts a side only when all sums above
    it are counted.
    """
    ranks = len(base)
    total = ranks + len(sums.left)
    seen = np.full(total, -1, np.int32)
    delta = np.zeros(total, np.int64)
    counts = np.zeros(total, np.int64)
    below = np.empty(total, np.int64)
    result = np.zeros(len(roots), np.int8)
    for r in range(len(roots)):
        below[0], found, at, good = roots[r], 1, 0, 1
        seen[roots[r]] = r
        delta[roots[r]] = 0
        while at < found and good > 0:
            number = below[at]
            at += 1
            k = number - ranks
            if k < 0:
                continue
            for side, moved in (
                (sums.left[k], sums.left_delta[k]),
                (sums.right[k], sums.right_delta[k]),
            ):
                if seen[side] != r:
                    seen[side] = r
                    delta[side] = delta[number] + moved
                    below[found] = side
                    found += 1
                elif delta[side] != delta[number] + moved:
                    good = -1
        if good > 0:
            numbers = np.sort(below[:found])
            counts[numbers] = 0
            counts[roots[r]] = 1
            inputs = 0
            for x in range(found - 1, -1, -1):
                number = numbers[x]
                k = number - ranks
                if k >= 0:
                    counts[sums.left[k]] += counts[number]
                    counts[sums.right[k]] += counts[number]
                    if not is_right[k]:
                        good = 0
                else:
                    inputs += 1
                    once = counts[number] == 1 or again
                    if not once or delta[number] != base[number] + shift[r]:
                        good = 0
            if inputs != ranks:
                good = 0
        result[r] = good
    return result
