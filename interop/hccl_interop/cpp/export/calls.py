"""One task in C++: the call and its arguments.

Peers, threads and slices of several tasks get a variable: `uses_of` yields those of a step, and the
writer of the block declares variables where they read better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hccl_interop.cpp.export.data_cuts import Path
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
from hccl_interop.cpp.export.memory import USER, Home
from hccl_interop.cpp.export.memory_slots import DATA, SlotRow
from hccl_interop.cpp.export.sizes import SideForm
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


@dataclass(frozen=True)
class KernelWords:
    """Names in the kernel: of memories by buffer, channels by plane, notifies by number; and data
    type, reduction and threads of the call.
    """

    memories: Mapping[str, Home]
    planes: Mapping[str, str]
    notifies: Mapping[int, str]
    dtype: int
    reduce: int
    threads: int


def depth_of(formula: Formula) -> int:
    """Return the number of loops that a formula depends on, the outermost first."""
    loops = (name for name in variables(formula) if name.startswith("loop"))
    return max((int(name[4:]) + 1 for name in loops), default=0)


class Use(NamedTuple):
    """A value that a variable may hold.

    `kind` is peer, thread, slot, place or slice; `where` the plane, the slots of a place, the cuts
    and the origin of a slice.
    """

    kind: str
    where: Hashable
    formulas: tuple[Formula, ...]

    @property
    def depth(self) -> int:
        """The number of loops that the value depends on, the outermost first."""
        return max((depth_of(formula) for formula in self.formulas), default=0)


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
        """True if the size is a number of times the data."""
        layout = self.shape.layout
        return layout is not None and not layout.size.path

    def form(self, side: str) -> SideForm | None:
        """The form of one side; None for bytes of one size alone."""
        layout = self.shape.layout
        if layout is None:
            return None
        return layout.src if side == "src" else layout.dst

    def place(self, side: str) -> Use | None:
        """Return the place of one side's slots; None for the begin of the memory."""
        form = self.form(side)
        many = self.fields[f"{side}_many"] if form is not None else Number(0)
        if form is None or form.is_fixed or (not form.slots.base and many == Number(0)):
            return None
        memory = self.shape.src if side == "src" else self.shape.dst
        if form.slots == SlotRow((), DATA):
            return Use("slot", memory in USER, (many,))
        return Use("place", form.slots, (many,))

    def slice(self, side: str) -> Use | None:
        """Return the part of the data on one side; None where it begins with a slot."""
        form = self.form(side)
        if form is None or form.is_fixed or not form.path:
            return None
        indices = self._indices(side)
        is_moved = form.path == self._size_path() and indices == self._indices("size")
        count = self.fields["size"] if is_moved else Number(1)
        return Use("slice", (form.path, form.origin), (*indices, count))

    def _size_path(self) -> Path:
        layout = self.shape.layout
        return () if layout is None else layout.size.path

    def _indices(self, name: str) -> tuple[Formula, ...]:
        """Return the parts of all cuts of a side or of the size."""
        numbered = (f"{name}_{k}" for k in range(len(self.fields)))
        return tuple(self.fields[one] for one in numbered if one in self.fields)

    @property
    def sizing(self) -> Use | None:
        """The slice with the size: that of a side where one is at the part that is moved."""
        path = self._size_path()
        if not path:
            return None
        wanted = (*self._indices("size"), self.fields["size"])
        for side in _SIDES:
            found = self.slice(side)
            if found is not None and found.formulas == wanted and self._path(side) == path:
                return found
        return Use("slice", (path, 0), wanted)

    def _path(self, side: str) -> Path:
        form = self.form(side)
        return () if form is None else form.path


def uses_of(terms: Terms) -> Iterator[Use]:
    """Yield the values in a step's call, each as often as the call has it."""
    if terms.shape.function:
        return
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
        for found in (terms.place(side), terms.slice(side)):
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
    if isinstance(notify, Number) and notify.value in words.notifies:
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
        arguments.append(bytes_of(terms, spelling, name_of))
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
    return " + ".join([base, *offset_of(terms, side, memory, spelling, name_of)])


def offset_of(
    terms: Terms, side: str, memory: Home, spelling: Spelling, name_of: NameOf
) -> list[str]:
    """Return the summands of the offset of one side in its memory."""
    summands = [memory.offset]
    form = terms.form(side)
    if form is None or form.is_fixed:
        summands.append(
            _unless_zero(terms.fields[side if form is None else f"{side}_many"], spelling)
        )
    for use in offset_uses(terms, side):
        summands.append(name_of(use) + (".offset" if use.kind == "slice" else ""))
    return [part for part in summands if part]


def offset_uses(terms: Terms, side: str) -> Iterator[Use]:
    """Yield the values that the offset of a side takes."""
    form, place, sliced = terms.form(side), terms.place(side), terms.slice(side)
    if place is not None:
        yield place
    if sliced is not None and form is not None and _has_offset(form, sliced):
        yield sliced


def _has_offset(form: SideForm, sliced: Use) -> bool:
    """Return False for a part that begins where its origin does, at every rank and size."""
    before = 0
    for cut in form.path:
        if before >= form.origin and cut.kind == "back":
            return True
        before += cut.has_index
    return any(index != Number(0) for index in sliced.formulas[form.origin : -1])


def _unless_zero(formula: Formula, spelling: Spelling) -> str:
    return "" if formula == Number(0) else text_of(formula, spelling, SUMMAND)


def multiple_text(count: Formula, unit: str, spelling: Spelling) -> str:
    """Return so many times something in C++."""
    return unit if count == Number(1) else f"{text_of(count, spelling, FACTOR)} * {unit}"


def bytes_of(terms: Terms, spelling: Spelling, name_of: NameOf) -> str:
    """Return the bytes that a step moves."""
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
