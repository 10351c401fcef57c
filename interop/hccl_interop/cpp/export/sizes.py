"""Offsets and sizes in the words of an algorithm: slots of a memory, and parts of the data.

Every offset and size was recorded at many counts. It is written as a formula where one formula is
right at all of them: a place in slots (memory_slots.py) and a part of the data (data_cuts.py).
Where a step has none, offsets and sizes are those of the exported call, and `missing` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_interop.cpp.export.data_cuts import Indices, Path, Pieces, first_paths, longer_paths
from hccl_interop.cpp.export.memory import USER
from hccl_interop.cpp.export.memory_slots import (
    DataParts,
    Length,
    Lengths,
    PlaceInSlots,
    SlotRow,
    SlottedMemory,
)
from hccl_interop.cpp.export.sampling import Samples
from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.values import IntArray, RankInt, values_of

_LEAST_SAMPLES = 4
"""Samples that must agree before numbers are taken to hold for all sizes."""

_DEEPEST = 3
"""Most cuts into parts, one in the other."""

_MOST_SWITCHED = 1 << 11
"""Elements up to which the larger one of two lengths may be another one than for more elements."""

_SPARSE = 8
"""From so many counts one is recorded where that may be so."""

SIDES = ("src", "dst")


class SideForm(NamedTuple):
    """One side of a step: the slots, and the cuts of the part, counted from an origin. A fixed one
    is at the same bytes for all sizes.
    """

    slots: SlotRow = SlotRow()
    path: Path = ()
    origin: int = 0
    is_fixed: bool = False


class SizeForm(NamedTuple):
    """The size of a step: so many times the data where `path` is empty, else so many parts in a row
    of a path.
    """

    path: Path = ()


class StepLayout(NamedTuple):
    """The forms of a step's source, destination and size."""

    src: SideForm
    dst: SideForm
    size: SizeForm


Numbers: TypeAlias = dict[str, IntArray]
"""By name, a number for every rank: `src_many` slots, `src_0`, ... the part of every cut, the same
of `dst` and `size`, and `size` parts in a row.
"""


class Fields(NamedTuple):
    """The layout of a step, None for one size alone, and its numbers by rank."""

    layout: StepLayout | None
    numbers: Numbers


@dataclass(frozen=True)
class SizeFields:
    """Offsets and sizes of data tasks, by batch and instruction; `missing` says which step has no
    formula, "" where all have one.
    """

    samples: tuple[Program, ...]
    known: dict[tuple[int, int], Fields]
    missing: str = ""
    rivals: Mapping[Length, Sequence[Length]] = field(default_factory=dict)
    """Lengths that fit all samples as well as one that was chosen, by the chosen one."""

    @property
    def is_fixed(self) -> bool:
        """True if they are right for the exported size alone."""
        return bool(self.missing)

    def fields(self, batch: int, number: int) -> Fields:
        """Return the fields of an instruction."""
        if not self.is_fixed:
            return self.known[batch, number]
        columns = columns_of(self.samples[:1], batch, number)
        return Fields(None, {name: column[0] for name, column in columns.items()})

    def is_empty(self, batch: int, number: int) -> bool:
        """True for an instruction that moves no bytes, at any rank and any size."""
        if not self.is_fixed:
            return (batch, number) not in self.known
        return not columns_of(self.samples, batch, number)["size"].any()


def columns_of(samples: Sequence[Program], batch: int, number: int) -> Numbers:
    """Return source and destination offset and size in bytes, [samples, ranks] each."""
    ones = [sample.batches[batch].instructions[number] for sample in samples]
    ranks = len(samples[0].batches[batch].ranks)
    return {
        "src": _column([one.src_offset for one in ones], ranks),
        "dst": _column([one.dst_offset for one in ones], ranks),
        "size": _column([one.size for one in ones], ranks),
    }


def _column(values: Sequence[RankInt], ranks: int) -> IntArray:
    found = np.empty((len(values), ranks), np.int64)
    for row, value in zip(found, values, strict=True):
        row[:] = values_of(value)
    return found


def sizes_of(samples: Samples, numbers: Sequence[int]) -> SizeFields:
    """Return offsets and sizes that hold for all samples, or else for the exported size; `numbers`
    are numbers of parts to try.
    """
    if len(samples.every) < _LEAST_SAMPLES:
        return SizeFields((samples.exported,), {}, "the program is another one at other sizes")
    return _LayoutSearch(samples.every, sorted({n for n in numbers if n > 1})).fields()


def wrong_ones(sizes: SizeFields, programs: Sequence[Program]) -> list[Program]:
    """Return the programs of which the formulas give other bytes."""
    if sizes.is_fixed or not programs:
        return []
    op = programs[0].op
    data = DataParts([program.op.size for program in programs], op.unit)
    right = np.ones(len(programs), bool)
    for (batch, number), fields in sizes.known.items():
        columns = columns_of(programs, batch, number)
        size = _predicted_size(fields, data)
        right &= (size == columns["size"]).all(axis=1)
        for side in SIDES:
            is_there = _predicted(fields, side, data) == columns[side]
            right &= (is_there | (size == 0)).all(axis=1)
    return [programs[k] for k in np.flatnonzero(~right).tolist()]


def counts_at_switches(sizes: SizeFields) -> set[int]:
    """Return counts that tell whether the larger one of two lengths is the right one: some up to
    the last at which the second one is larger, and for each length that fits all samples as well
    the first at which it is another one.
    """
    unit = sizes.samples[0].op.unit
    data = DataParts([count * unit for count in range(1, _MOST_SWITCHED + 1)], unit)
    found: set[int] = set()
    for length in {one for fields in sizes.known.values() for one in _lengths_of(fields)}:
        if length.others:
            second = sum(data.bytes_of(one) for one in length.others) + length.more
            own = data.bytes_of(length._replace(is_aligned=False, others=()))
            last = int(np.flatnonzero(second > own).max(initial=-1)) + 1
            found |= {*range(1, last + 1, _SPARSE), last} - {0}
            for rival in sizes.rivals.get(length, ()):
                differs = np.flatnonzero(data.bytes_of(rival) != data.bytes_of(length))
                found |= {int(at) + 1 for at in differs[:1]}
    return found


def _lengths_of(fields: Fields) -> Iterator[Length]:
    assert fields.layout is not None
    for side in (fields.layout.src, fields.layout.dst):
        yield from (length for _, length in side.slots.base)
        if side.slots.stride is not None:
            yield side.slots.stride


def _predicted(fields: Fields, side: str, data: DataParts) -> IntArray:
    """Return the offsets of one side by its formulas, [sizes, ranks]."""
    assert fields.layout is not None
    form = fields.layout.src if side == "src" else fields.layout.dst
    many = fields.numbers[f"{side}_many"]
    shape = len(data.sizes), len(many)
    if form.is_fixed:
        return np.broadcast_to(many, shape)
    found = np.zeros(shape, np.int64)
    for times, length in form.slots.base:
        found += times * data.bytes_of(length)[:, None]
    if form.slots.stride is not None:
        found += many * data.bytes_of(form.slots.stride)[:, None]
    part = tuple(np.array(_rows(side, fields.numbers)).T)
    begins = data.pieces(form.path).begins(form.origin)[(slice(None), *part)]
    return found + begins.reshape(len(begins), -1)


def _predicted_size(fields: Fields, data: DataParts) -> IntArray:
    """Return the sizes by their formulas, [sizes, ranks]."""
    assert fields.layout is not None
    path, count = fields.layout.size.path, fields.numbers["size"]
    if not path:
        return count * data.sizes[:, None]
    pieces = data.pieces(path)
    if not any(cut.has_index for cut in path):
        return np.broadcast_to(pieces.size[:, None], (len(data.sizes), len(count)))
    sizes = [
        pieces.column(pieces.size, part[:-1])[:, part[-1] : part[-1] + many].sum(axis=1)
        for part, many in zip(_rows("size", fields.numbers), count.tolist(), strict=True)
    ]
    return np.stack(sizes, axis=1)


@dataclass
class _MovingStep:
    """An instruction that moves data, of one batch or of several whose moves correspond: its
    memories, its columns, and the ranks of each batch.
    """

    at: list[tuple[int, int]]
    ranks: list[int]
    label: str
    kind: TaskKind
    memories: dict[str, str]
    columns: Numbers


def _joined_steps(steps: Sequence[_MovingStep]) -> _MovingStep:
    """Return the steps of several batches as one."""
    first = steps[0]
    if len(steps) == 1:
        return first
    columns = {
        name: np.concatenate([step.columns[name] for step in steps], axis=1)
        for name in first.columns
    }
    at = [place for step in steps for place in step.at]
    return replace(first, at=at, ranks=[n for step in steps for n in step.ranks], columns=columns)


def _single_steps(step: _MovingStep) -> list[_MovingStep]:
    """Return a joined step as those of its batches."""
    ends = np.cumsum(step.ranks)[:-1]
    split = {name: np.split(column, ends, axis=1) for name, column in step.columns.items()}
    return [
        replace(step, at=[at], ranks=[n], columns={name: mine[k] for name, mine in split.items()})
        for k, (at, n) in enumerate(zip(step.at, step.ranks, strict=True))
    ]


_Side: TypeAlias = tuple[SideForm, Numbers]


class _LayoutSearch:
    """The search for layouts, with the cuts and slots that steps have shown so far."""

    def __init__(self, samples: tuple[Program, ...], numbers: Sequence[int]) -> None:
        self._samples, self._numbers = samples, numbers
        self._ordered = tuple(sorted(samples, key=lambda sample: sample.op.count))
        self._sizes = [one.op.count * one.op.unit for one in self._ordered]
        self._unit = samples[0].op.unit
        self._steps = list(self._read())
        self._pieces = list(self._found_cuts())
        usual = [Pieces(path, self._sizes, self._unit) for path in first_paths(numbers)]
        self._lengths = Lengths([*self._pieces, *usual], self._unit)
        self._memories = self._found_slots()

    def _read(self) -> Iterator[_MovingStep]:
        """Yield the moves of batches that correspond as one: only their numbers differ."""
        groups: dict[tuple[object, ...], list[list[_MovingStep]]] = {}
        for number in range(len(self._ordered[0].batches)):
            steps = list(self._moves(number))
            key = tuple((one.label, *one.memories.values(), one.kind) for one in steps)
            groups.setdefault(key, []).append(steps)
        for alike in groups.values():
            yield from (_joined_steps(steps) for steps in zip(*alike, strict=True))

    def _moves(self, number: int) -> Iterator[_MovingStep]:
        program = self._ordered[0]
        batch = program.batches[number]
        for k, one in enumerate(batch.instructions):
            columns = columns_of(self._ordered, number, k) if one.kind.moves_data else {}
            if columns and columns["size"].any():
                names = (program.buffers[one.src_buffer], program.buffers[one.dst_buffer])
                memories = dict(zip(SIDES, names, strict=True))
                label = program.labels[one.label] if one.label >= 0 else ""
                ranks = [len(batch.ranks)]
                yield _MovingStep([(number, k)], ranks, label, one.kind, memories, columns)

    def _found_cuts(self) -> Iterator[Pieces]:
        """Yield the paths that sizes and the user's offsets show, the plainest first."""
        sizes = [step.columns["size"] for step in self._steps]
        user = [
            step.columns[side]
            for step in self._steps
            for side, memory in step.memories.items()
            if memory in USER
        ]
        every = _distinct(sizes)
        wanted = every | _distinct(user)
        tried = [Pieces(path, self._sizes, self._unit) for path in first_paths(self._numbers)]
        yield tried[0]
        for _ in range(_DEEPEST):
            kept = [one for one in tried if _explains(one, wanted, every)]
            yield from (one for one in kept if one.path)
            tried = [
                Pieces(path, self._sizes, self._unit)
                for one in kept
                if any(cut.has_index for cut in one.path)
                for path in longer_paths(one.path, self._numbers)
            ]

    def _found_slots(self) -> dict[str, SlottedMemory]:
        offsets: dict[str, set[bytes]] = {}
        for step in self._steps:
            for side, memory in step.memories.items():
                offsets.setdefault(memory, set()).update(_distinct([step.columns[side]]))
        found = {memory: SlottedMemory(self._pieces, self._lengths) for memory in offsets}
        for memory, keys in offsets.items():
            if memory not in USER:
                found[memory].learn([np.frombuffer(key, np.int64) for key in keys])
        return found

    def fields(self) -> SizeFields:
        """Return the fields of all steps; those of one size where some step has no layout."""
        known: dict[tuple[int, int], Fields] = {}
        for step in self._steps:
            for one, found in self._by_batch(step):
                if found is None:
                    return SizeFields(self._samples, {}, self._described(one))
                known[one.at[0]] = found
        return SizeFields(self._samples, known, rivals=self._lengths.rivals)

    def _by_batch(self, step: _MovingStep) -> Iterator[tuple[_MovingStep, Fields | None]]:
        """Yield the step of every batch with its fields, of one layout where there is one."""
        single = _single_steps(step)
        found = self._fields(step)
        if found is None:
            yield from ((one, self._fields(one) if len(single) > 1 else None) for one in single)
            return
        numbers = {
            name: np.split(np.broadcast_to(column, sum(step.ranks)), np.cumsum(step.ranks)[:-1])
            for name, column in found.numbers.items()
        }
        for k, one in enumerate(single):
            yield one, Fields(found.layout, {name: mine[k] for name, mine in numbers.items()})

    def _described(self, step: _MovingStep) -> str:
        batch, number = step.at[0]
        one = self._samples[0].batches[batch].instructions[number]
        where = f" of {step.label}" if step.label else ""
        size, count = int(step.columns["size"][-1, 0]), self._ordered[-1].op.count
        sides = " to ".join(step.memories.values())
        kind = one.kind.spelling
        return f"task {number}{where}, {kind} from {sides}, {size} bytes at {count} elements"

    def _fields(self, step: _MovingStep) -> Fields | None:
        """Return the fields by the plainest cuts that give the size, those by which both sides are
        at the part that is moved before others.
        """
        whole = self._whole(step.columns["size"])
        if whole is not None:
            return self._joined(step, self._pieces[0], whole, [])
        best: Fields | None = None
        for lead in self._pieces:
            for rows in self._parts(step, lead):
                counts = [
                    lead.run(part, size)
                    for part, size in zip(rows, step.columns["size"].T, strict=True)
                ]
                if all(count is not None for count in counts):
                    numbers = {"size": np.array(counts, np.int64)} | _indexed("size", rows)
                    found = self._joined(step, lead, (SizeForm(lead.path), numbers), rows)
                    if found is not None and _agrees(found):
                        return found
                    best = best or found
        return best

    def _parts(self, step: _MovingStep, pieces: Pieces) -> Iterator[list[Indices]]:
        """Yield the parts, by rank, that a step may move: those at a side, those of its size."""
        if not pieces.path:
            return
        for side in SIDES:
            for _, numbers in self._sides(step, side, pieces):
                yield _rows(side, numbers)
        keys = [np.ascontiguousarray(size).tobytes() for size in step.columns["size"].T]
        if all(key in pieces.sized for key in keys):
            yield [pieces.sized[key] for key in keys]

    def _joined(
        self, step: _MovingStep, lead: Pieces, size: tuple[SizeForm, Numbers], rows: list[Indices]
    ) -> Fields | None:
        """Return the fields with a size; None where a side has no place."""
        found = []
        for side in SIDES:
            same = self._same(step, side, lead, rows) if rows else None
            one = same or next(self._sides(step, side, lead), None) or self._any(step, side)
            if one is None:
                return None
            memory = self._memories[step.memories[side]]
            found.append(_usual(one if same else _without_cuts(one, side), memory))
        src, dst = found
        return Fields(StepLayout(src[0], dst[0], size[0]), src[1] | dst[1] | size[1])

    def _same(
        self, step: _MovingStep, side: str, pieces: Pieces, rows: list[Indices]
    ) -> _Side | None:
        """Return a side that is at given parts, from some slots and origin."""
        memory, column = self._memories[step.memories[side]], step.columns[side]
        parts = (slice(None), *np.array(rows).T)
        every = (pieces.begins(origin)[parts] for origin in range(pieces.origins))
        begins = [begin.reshape(len(begin), -1) for begin in every]
        for slots in memory.slots:
            for origin, begin in enumerate(begins):
                many = memory.many(slots, column - begin)
                if many is not None:
                    numbers = {f"{side}_many": many} | _indexed(side, rows)
                    return SideForm(slots, pieces.path, origin), numbers
        return None

    def _sides(self, step: _MovingStep, side: str, pieces: Pieces) -> Iterator[_Side]:
        """Yield the ways in which all ranks' offsets are in slots, at parts of a path."""
        memory, column = self._memories[step.memories[side]], step.columns[side]
        for slots in memory.slots:
            for origin in range(pieces.origins):
                places: list[PlaceInSlots] = []
                for offset in column.T:
                    place = memory.found(slots, pieces, origin, offset)
                    if place is None:
                        break
                    places.append(place)
                else:
                    numbers = {f"{side}_many": np.array([one.many for one in places])}
                    numbers |= _indexed(side, [one.indices for one in places])
                    yield SideForm(slots, pieces.path, origin), numbers

    def _any(self, step: _MovingStep, side: str) -> _Side | None:
        """Return a side by the plainest cuts, or at the same bytes for all sizes."""
        for pieces in self._pieces:
            for found in self._sides(step, side, pieces):
                return found
        column = step.columns[side]
        if (column == column[0]).all():
            return SideForm(is_fixed=True), {f"{side}_many": column[0]}
        return None

    def _whole(self, column: IntArray) -> tuple[SizeForm, Numbers] | None:
        """Return sizes that are a number of times the data."""
        data = np.array(self._sizes)[:, None]
        many = column[-1] // data[-1]
        return (SizeForm(), {"size": many}) if (column == many * data).all() else None


def _without_cuts(found: _Side, side: str) -> _Side:
    """Return a side without cuts where its part begins with its slot."""
    form, numbers = found
    names = [name for name in numbers if re.fullmatch(rf"{side}_\d", name)]
    is_back = form.origin == 0 and any(cut.kind == "back" for cut in form.path)
    if form.is_fixed or is_back or any(numbers[name].any() for name in names[form.origin :]):
        return found
    return form._replace(path=(), origin=0), {f"{side}_many": numbers[f"{side}_many"]}


def _usual(found: _Side, memory: SlottedMemory) -> _Side:
    """Return a side at the begin of a memory as in the first of its slots, as at other turns."""
    form, numbers = found
    if form.is_fixed or form.slots != SlotRow():
        return found
    if memory.has_fixed and not form.path:
        return SideForm(is_fixed=True), numbers
    return form._replace(slots=memory.usual), numbers


def _explains(one: Pieces, wanted: set[bytes], sizes: set[bytes]) -> bool:
    """Take away what a path explains; return False where that is nothing, and where some part of it
    has no size of a task.
    """
    found = wanted & (one.sized.keys() | one.at(0).keys())
    wanted -= found
    return bool(found) or one.sized.keys() <= sizes


def _agrees(fields: Fields) -> bool:
    """Return True if both sides are at the part of the size, or begin with their slots."""
    layout, numbers = fields
    assert layout is not None
    return all(
        not side.path
        or (side.path == layout.size.path and _rows(name, numbers) == _rows("size", numbers))
        for name, side in (("src", layout.src), ("dst", layout.dst))
    )


def _indexed(name: str, rows: Sequence[Indices]) -> Numbers:
    """Return the indices of all ranks as columns."""
    columns = zip(*rows, strict=True)
    return {f"{name}_{k}": np.array(column, np.int64) for k, column in enumerate(columns)}


def _rows(side: str, numbers: Numbers) -> list[Indices]:
    """Return the indices of every rank."""
    names = [name for name in numbers if re.fullmatch(rf"{side}_\d", name)]
    columns = [numbers[name] for name in names]
    ranks = len(numbers["size" if side == "size" else f"{side}_many"])
    return [tuple(int(column[rank]) for column in columns) for rank in range(ranks)]


def _distinct(columns: Sequence[IntArray]) -> set[bytes]:
    """Return the different offsets or sizes, at all samples each, but for 0."""
    rows = {np.ascontiguousarray(row).tobytes() for column in columns for row in column.T}
    return {row for row in rows if any(row)}
