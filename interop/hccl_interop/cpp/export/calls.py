"""One task in C++: the call and its arguments.

Peers, threads and slices of several tasks get a variable: `uses_of` yields those of a step, and the
writer of the block declares variables where they read better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.folding import CppStep
from hccl_interop.cpp.export.formulas import (
    FACTOR,
    SUMMAND,
    Formula,
    Number,
    Spelling,
    text_of,
    variables,
)
from hccl_interop.cpp.export.steps import StepShape
from hccl_py.enums import READS, WRITES, ReduceOp, TaskKind

_CALLS = {
    TaskKind.COPY: "HcommLocalCopyOnThread",
    TaskKind.REDUCE: "HcommLocalReduceOnThread",
    TaskKind.READ: "HcommReadOnThread",
    TaskKind.READ_REDUCE: "HcommReadReduceOnThread",
    TaskKind.WRITE: "HcommWriteOnThread",
    TaskKind.WRITE_REDUCE: "HcommWriteReduceOnThread",
    TaskKind.RDMA_WRITE: "HcommWriteOnThread",
    TaskKind.RDMA_WRITE_REDUCE: "HcommWriteReduceOnThread",
}

_SIDES = ("src", "dst")


class Home(NamedTuple):
    """The place of a buffer: in `input`, `output` or `ccl`, at the offset of a constant."""

    owner: str
    offset: str = ""


@dataclass(frozen=True)
class KernelWords:
    """Names in the kernel: of memories by buffer, channels by plane, notifies by number; and data
    type, reduction and threads of the call.
    """

    memories: Mapping[str, Home]
    planes: Mapping[str, str]
    notifies: Sequence[str]
    dtype: int
    reduce: int
    threads: int


class Use(NamedTuple):
    """A value that a variable may hold.

    `kind` is peer, thread, slot or slice; `where` the plane, or the layout and level of a slice.
    """

    kind: str
    where: str
    formulas: tuple[Formula, ...]

    @property
    def depth(self) -> int:
        """The number of loops that the value depends on, the outermost first."""
        names = {name for formula in self.formulas for name in variables(formula)}
        return max((int(n[4:]) + 1 for n in names if n.startswith("loop")), default=0)


NameOf: TypeAlias = Callable[[Use], str]
"""Gives the variable of a use, or its value."""

TaskCall: TypeAlias = tuple[str, list[str]]
"""A function and its arguments."""


@dataclass(frozen=True)
class Terms:
    """The formulas of a step's fields."""

    shape: StepShape
    fields: Mapping[str, Formula]

    @classmethod
    def of(cls, step: CppStep, fitter: Fitter) -> Terms:
        """Return the formulas of a step."""
        shape = step.shape
        assert isinstance(shape, StepShape)
        return cls(shape, {name: fitter.formula(points) for name, points in step.fields.items()})

    @property
    def peer(self) -> Use | None:
        """The peer of a task that has one."""
        if "peer" not in self.fields:
            return None
        return Use("peer", self.shape.plane, (self.fields["peer"],))

    def thread(self, field: str = "thread") -> Use:
        """The thread that a task is put on, or another one."""
        return Use("thread", "", (self.fields[field],))

    @property
    def has_slots(self) -> bool:
        """True if the size is a number of slots."""
        return self.shape.layouts[1:] == ("slots",)

    def slot(self, side: str) -> Use | None:
        """Return the begin of one side's slot, a multiple of the call's bytes; None for 0."""
        slot = self.fields.get(f"{side}_slot", Number(0))
        return None if slot == Number(0) else Use("slot", "", (slot,))

    def slice(self, side: str) -> Use | None:
        """Return the slice of one side; None where it begins with a slot."""
        layout = self.shape.layouts
        if not self.shape.kind.moves_data or layout == ("fixed",):
            return None
        chunk, part = self.fields[f"{side}_chunk"], self.fields[f"{side}_part"]
        if layout[1] not in ("slots", "own"):
            level, _, of = layout[1].partition("s of ")
            if of == side or (chunk, part) == self._place("dst" if side == "src" else "src"):
                return self._sliced(level, chunk, part, self.fields["size"])
        if (chunk, part) == (Number(0), Number(0)):
            return None
        return self._sliced("part", chunk, part, Number(1))

    def _place(self, side: str) -> tuple[Formula, Formula]:
        return self.fields[f"{side}_chunk"], self.fields[f"{side}_part"]

    def _sliced(self, level: str, chunk: Formula, part: Formula, count: Formula) -> Use:
        return Use("slice", f"{self.shape.layouts[0]}/{level}", (chunk, part, count))

    def stride(self, side: str) -> Use | None:
        """Return the chunk that is as long as a stride; None for offsets without strides."""
        if self.fields.get(f"{side}_stride", Number(0)) == Number(0):
            return None
        return self._sliced("chunk", Number(0), Number(0), Number(1))

    @property
    def sizing(self) -> Use | None:
        """The slice with the size."""
        if self.has_slots or self.shape.layouts == ("fixed",):
            return None
        if self.shape.layouts[1] == "own":
            return self._sliced("chunk", self.fields["size_chunk"], Number(0), Number(1))
        return self.slice(self.shape.layouts[1].partition("s of ")[2])


def uses_of(terms: Terms) -> Iterator[Use]:
    """Yield the values in a step's call, each as often as the call has it."""
    yield terms.thread()
    if "owner" in terms.fields:
        yield terms.thread("owner")
    shape = terms.shape
    if terms.peer is not None:
        yield terms.peer
    if not shape.kind.moves_data:
        return
    if terms.peer is not None:
        yield terms.peer  # its memory, beside its channel
    for side in _SIDES:
        for found in (terms.slot(side), terms.slice(side), terms.stride(side)):
            if found is not None:
                yield found
    if terms.sizing is not None:
        yield terms.sizing


def call_of(terms: Terms, words: KernelWords, spelling: Spelling, name_of: NameOf) -> TaskCall:
    """Return the call of a step."""
    shape = terms.shape
    thread = name_of(terms.thread())
    notify = terms.fields.get("notify")
    if shape.kind.moves_data:
        return _moving(terms, words, spelling, name_of)
    assert notify is not None
    is_wait = shape.kind == TaskKind.NOTIFY_WAIT
    if shape.is_local:
        index = text_of(notify, spelling)
        if is_wait:
            return "HcommThreadNotifyWaitOnThread", [thread, index, "kTimeout"]
        owner = name_of(terms.thread("owner"))
        return "HcommThreadNotifyRecordOnThread", [thread, owner, index]
    assert terms.peer is not None
    channel = f"{name_of(terms.peer)}.channel"
    index = _notify(notify, words, spelling)
    if is_wait:
        return "HcommChannelNotifyWaitOnThread", [thread, channel, index, "kTimeout"]
    return "HcommChannelNotifyRecordOnThread", [thread, channel, index]


def _notify(notify: Formula, words: KernelWords, spelling: Spelling) -> str:
    if isinstance(notify, Number) and notify.value < len(words.notifies):
        return words.notifies[notify.value]
    return text_of(notify, spelling)


def _moving(terms: Terms, words: KernelWords, spelling: Spelling, name_of: NameOf) -> TaskCall:
    shape = terms.shape
    places = {side: _address(terms, side, words, spelling, name_of) for side in _SIDES}
    arguments = [name_of(terms.thread())]
    if terms.peer is not None:
        arguments.append(f"{name_of(terms.peer)}.channel")
    arguments += [places["dst"], places["src"]]
    if shape.kind.reduces:
        arguments += [_count(terms, spelling, name_of), *_reduction(shape, words)]
    else:
        arguments.append(_size(terms, spelling, name_of))
    return _CALLS[shape.kind], arguments


def _address(
    terms: Terms,
    side: str,
    words: KernelWords,
    spelling: Spelling,
    name_of: NameOf,
) -> str:
    shape = terms.shape
    memory = words.memories[shape.src if side == "src" else shape.dst]
    is_remote = shape.kind in (READS if side == "src" else WRITES)
    if is_remote:
        assert terms.peer is not None
        base = f"{name_of(terms.peer)}.{memory.owner}"
    else:
        base = "res.ccl" if memory.owner == "ccl" else f"param.{memory.owner}"
    summands = [base, memory.offset]
    if shape.layouts == ("fixed",):
        summands.append(_unless_zero(terms.fields[side], spelling))
    else:
        slot = terms.slot(side)
        if slot is not None:
            summands.append(name_of(slot))
        stride = terms.stride(side)
        if stride is not None:
            count = terms.fields[f"{side}_stride"]
            summands.append(multiple_text(count, f"{name_of(stride)}.size", spelling))
        summands.append(_unless_zero(terms.fields[f"{side}_base"], spelling))
        sliced = terms.slice(side)
        if sliced is not None and sliced.formulas[:2] != (Number(0), Number(0)):
            summands.append(f"{name_of(sliced)}.offset")
    return " + ".join(part for part in summands if part)


def _unless_zero(formula: Formula, spelling: Spelling) -> str:
    return "" if formula == Number(0) else text_of(formula, spelling, SUMMAND)


def multiple_text(count: Formula, unit: str, spelling: Spelling) -> str:
    """Return so many times something in C++."""
    return unit if count == Number(1) else f"{text_of(count, spelling, FACTOR)} * {unit}"


def _size(terms: Terms, spelling: Spelling, name_of: NameOf) -> str:
    if terms.sizing is not None:
        return f"{name_of(terms.sizing)}.size"
    if terms.has_slots:
        return multiple_text(terms.fields["size"], "param.bytes", spelling)
    return text_of(terms.fields["size"], spelling)


def _count(terms: Terms, spelling: Spelling, name_of: NameOf) -> str:
    if terms.has_slots:
        return multiple_text(terms.fields["size"], "param.count", spelling)
    if terms.sizing is not None:
        return f"{name_of(terms.sizing)}.size / param.unit"
    return f"{text_of(terms.fields['size'], spelling, FACTOR)} / param.unit"


def _reduction(shape: StepShape, words: KernelWords) -> list[str]:
    dtype = "param.dataType" if shape.dtype == words.dtype else f"HcommDataType({shape.dtype})"
    reduce = "param.reduceOp"
    if shape.reduce != words.reduce:
        reduce = f"HCOMM_REDUCE_{ReduceOp(shape.reduce).name}"
    return [dtype, reduce]
