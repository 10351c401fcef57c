"""A program as steps of every rank, in the order of recording and the words of HCCL's programming
API.

Streams are threads, transports are channels to a peer, and all memory but the user's lies in the
one HCCL buffer of a rank.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_interop.cpp.export.channels import ChannelGroups
from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.folding import CppStep, Node, fold, joined, key_of
from hccl_interop.cpp.export.notifies import notifies_of_threads
from hccl_interop.cpp.export.points import Points
from hccl_interop.cpp.export.sizes import SizeFields, StepLayout
from hccl_py.enums import READS, REDUCES, WRITES, TaskKind
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.trace.pictures.pairings import ServerPlaces, clauses_of, ending_of, sentence
from hccl_py.values import IntArray, RankInt, values_of

_MOST_SECTIONS = 12
"""Most named sections of a program that is split by its labels."""


class StepShape(NamedTuple):
    """The part of a step that is the same in all turns.

    Memories are names of buffers; `layout` has the forms of source, destination and size, None for
    bytes of one size alone. A move that `may_be_empty` is left out where it has no bytes. A step
    that calls a `function` of the kernel has that name instead.
    """

    kind: TaskKind
    is_local: bool = False
    plane: str = ""
    src: str = ""
    dst: str = ""
    reduce: int = -1
    dtype: int = -1
    notify: int = -1
    layout: StepLayout | None = None
    function: str = ""
    may_be_empty: bool = False


class Branch(NamedTuple):
    """Some ranks, and their steps."""

    ranks: tuple[int, ...]
    nodes: list[Node]


class CppSection(NamedTuple):
    """The steps under one label ("" for none), by groups of ranks with the same steps; those that
    other sections call in several places are a function. `said` is what they do in a sentence.
    """

    label: str
    branches: list[Branch]
    is_function: bool = False
    said: str = ""


_Labelled: TypeAlias = tuple[str, list[CppStep]]
"""Steps of one batch under one label."""


def sections_of(program: Program, sizes: SizeFields, fitter: Fitter) -> list[CppSection]:
    """Return the sections of a program, with loops where steps repeat; functions come first."""
    reader = _StepReader(program, sizes)
    runs = [reader.labelled(number) for number in range(len(program.batches))]
    ranks = [tuple(batch.ranks.tolist()) for batch in program.batches]
    places = ServerPlaces.of(np.arange(fitter.ranks) // fitter.devices)
    said = sentences_of(program, places)
    found = []
    for label in _recurring(runs):
        once = [next(steps for name, steps in mine if name == label) for mine in runs]
        branches = branches_of(ranks, once, fitter)
        found.append(CppSection(label, branches, is_function=True, said=said[phase_of(label)]))
        runs = [[_called(run) if run[0] == label else run for run in mine] for mine in runs]
    labelled = [_by_phase(mine) for mine in runs]
    labels = {tuple(label for label, _ in mine) for mine in labelled}
    if len(labels) > 1 or sum(bool(label) for label in next(iter(labels))) > _MOST_SECTIONS:
        labelled = [[("", [step for _, steps in mine for step in steps])] for mine in labelled]
    return found + [
        CppSection(name, branches_of(ranks, [steps for _, steps in alike], fitter), said=said[name])
        for alike in zip(*labelled, strict=True)
        for name in [alike[0][0]]
    ]


def _recurring(runs: Sequence[Sequence[_Labelled]]) -> list[str]:
    """Return the labels of steps that recur as they are, as often at all ranks."""
    found = []
    for label in dict.fromkeys(label for label, _ in runs[0] if label):
        every = [[_content(steps) for name, steps in mine if name == label] for mine in runs]
        times = {len(mine) for mine in every}
        if len(times) == 1 and times != {1} and all(len(set(mine)) == 1 for mine in every):
            found.append(label)
    return found


def _content(steps: Sequence[CppStep]) -> Hashable:
    """Return a key that equal steps share."""
    return tuple(
        (step.shape, *((name, one.values.tobytes()) for name, one in step.fields.items()))
        for step in steps
    )


def _called(run: _Labelled) -> _Labelled:
    """Return the call of a function for its steps."""
    label, steps = run
    at = steps[0].fields["thread"]
    return "", [CppStep(StepShape(TaskKind.NOTIFY_WAIT, function=label), {"thread": at})]


def _by_phase(runs: Sequence[_Labelled]) -> list[_Labelled]:
    """Return the steps of the turns of a phase as one run, with those between its turns."""
    found: list[_Labelled] = []
    for label, steps in runs:
        name = phase_of(label)
        if found and found[-1][0] == name:
            found[-1][1].extend(steps)
        elif name and [one for one, _ in found[-2:]] == [name, ""]:
            _, between = found.pop()
            found[-1][1].extend([*between, *steps])
        else:
            found.append((name, [*steps]))
    return found


def branches_of(
    ranks: Sequence[tuple[int, ...]], by_batch: Sequence[list[CppStep]], fitter: Fitter
) -> list[Branch]:
    """Return the groups of ranks whose steps are the same once they are folded."""
    groups: dict[tuple[object, ...], list[Branch]] = {}
    for mine, steps in zip(ranks, by_batch, strict=True):
        nodes = fold(steps, fitter)
        groups.setdefault(tuple(key_of(node) for node in nodes), []).append(Branch(mine, nodes))
    found = []
    for group in groups.values():
        columns = zip(*(branch.nodes for branch in group), strict=True)
        nodes = [joined(column, as_turns=False) for column in columns]
        members = sorted(rank for branch in group for rank in branch.ranks)
        found.append(Branch(tuple(members), nodes))
    return sorted(found, key=lambda branch: (len(branch.ranks), branch.ranks))


class _StepReader:
    """The instructions of a program as steps."""

    def __init__(self, program: Program, sizes: SizeFields) -> None:
        self._program, self._sizes = program, sizes
        self._channels = ChannelGroups.of(program)
        self._notifies = np.array(notifies_of_threads(program))

    def labelled(self, number: int) -> list[_Labelled]:
        """Return a batch's steps by label."""
        batch = self._program.batches[number]
        labelled = (
            (self._label(one), self._step(number, k, one, batch.ranks))
            for k, one in enumerate(batch.instructions)
            if not (one.kind.moves_data and self._sizes.is_empty(number, k))
        )
        return [
            (label, [step for _, step in steps])
            for label, steps in groupby(labelled, key=lambda pair: pair[0])
        ]

    def _label(self, one: Instruction) -> str:
        return self._program.labels[one.label] if one.label >= 0 else ""

    def _step(self, batch: int, number: int, one: Instruction, ranks: IntArray) -> CppStep:
        numbers: dict[str, RankInt | IntArray] = {"thread": one.stream}
        if one.kind.moves_data:
            shape, more = self._moving(batch, number, one)
        elif one.end == -1:
            shape, more = StepShape(one.kind, is_local=True), self._local(one)
        else:
            shape, more = self._remote(one)
        numbers |= more
        fields = {
            name: Points.of_ranks(ranks, np.full(len(ranks), values_of(value)))
            for name, value in numbers.items()
        }
        return CppStep(shape, fields)

    def _moving(
        self, batch: int, number: int, one: Instruction
    ) -> tuple[StepShape, dict[str, RankInt | IntArray]]:
        names = self._program.buffers
        sized = self._sizes.fields(batch, number)
        reduction = (one.reduce, one.dtype) if one.kind.reduces else (-1, -1)
        shape = StepShape(
            one.kind,
            is_local=one.kind in (TaskKind.COPY, TaskKind.REDUCE),
            src=names[one.src_buffer],
            dst=names[one.dst_buffer],
            reduce=reduction[0],
            dtype=reduction[1],
            layout=sized.layout,
        )
        numbers: dict[str, RankInt | IntArray] = dict(sized.numbers)
        if not shape.is_local:
            shape = shape._replace(plane=self._plane(one))
            numbers["peer"] = one.peer
        return shape, numbers

    def _local(self, one: Instruction) -> dict[str, RankInt | IntArray]:
        """Return the notify of a post or wait between threads, and the owner for a post."""
        slots = self._notifies
        slot = (np.asarray(values_of(one.cell)) - self._program.transports.cells) % len(slots)
        found: dict[str, RankInt | IntArray] = {"notify": slots[slot, 1]}
        if one.kind == TaskKind.NOTIFY_POST:
            found["owner"] = slots[slot, 0]
        return found

    def _remote(self, one: Instruction) -> tuple[StepShape, dict[str, RankInt | IntArray]]:
        """Return shape, peer and notify of a post or wait over a channel; a notify with a name,
        such as Ack, is part of the shape.
        """
        transports = self._program.transports
        shape = StepShape(one.kind, plane=self._plane(one))
        notify = np.unique(np.asarray(values_of(one.cell)) % transports.stride)
        if len(notify) == 1 and notify[0] < len(transports.notify_names):
            shape = shape._replace(notify=int(notify[0]))
        return shape, {
            "peer": one.peer,
            "notify": np.asarray(values_of(one.cell)) % transports.stride,
        }

    def _plane(self, one: Instruction) -> str:
        end = int(np.atleast_1d(np.asarray(values_of(one.end)))[0])
        return self._channels.titles[int(self._channels.number[end])]


def steps_in(nodes: Sequence[Node]) -> Iterator[CppStep]:
    """Yield all steps of nodes, those in loops included."""
    for node in nodes:
        if isinstance(node, CppStep):
            yield node
        else:
            yield from steps_in(node.body)


_COUNTED = re.compile(r"[\s\d\[\](),/]+$")
"""What distinguishes the turns of a phase in its labels: the 2/3, 4 or [0, 1] at their ends."""

_WAITS = "Ranks wait for one another; nothing is sent."


def phase_of(label: str) -> str:
    """Return a label without the number of the turn."""
    return _COUNTED.sub("", label)


def sentences_of(program: Program, places: ServerPlaces) -> dict[str, str]:
    """Return a sentence for every phase by its name; "" where it has no task between ranks."""
    names = np.array([phase_of(label) for label in program.labels] + [""])
    tasks = program.tasks
    phase = names[tasks.table.label[tasks.instruction]]  # without a label: the last name
    return {name: _said(program, phase == name, places) for name in np.unique(phase).tolist()}


def _said(program: Program, own: IntArray, places: ServerPlaces) -> str:
    """Return the sentence of the tasks of a mask."""
    tasks = program.tasks
    kind, rank, peer = tasks.kind[own], tasks.rank[own], tasks.peer[own]
    reads, writes = np.isin(kind, READS), np.isin(kind, WRITES)
    sends = reads | writes
    if not sends.any():
        is_remote = (kind == TaskKind.NOTIFY_POST) & (tasks.end[own] >= 0)
        return _WAITS if is_remote.any() else ""
    sender, receiver = np.where(reads, peer, rank)[sends], np.where(reads, rank, peer)[sends]
    pairs = np.unique(sender * program.ranks + receiver)
    ending = ending_of(
        reads=bool(reads[sends].all()),
        reduces=bool(np.isin(kind[sends], REDUCES).all()),
        adds=bool((kind == TaskKind.REDUCE).any()),
    )
    return sentence(clauses_of(*np.divmod(pairs, program.ranks), places), ending)
