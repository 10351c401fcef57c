"""A whole project with kernels of the CCU: its files, or the limit that a program exceeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from hccl_interop.cpp.export.calls import KernelWords
from hccl_interop.cpp.export.ccu.die_channels import NETWORKS, DieChannels
from hccl_interop.cpp.export.ccu.instruction_order import InstructionOrder, order_of
from hccl_interop.cpp.export.ccu.kernel_phases import (
    BITS,
    IssuedNode,
    KernelAt,
    Sequenced,
    kernels_of,
)
from hccl_interop.cpp.export.ccu.kernel_steps import GroupSteps, KernelSteps, StepMaker
from hccl_interop.cpp.export.ccu.kernel_text import EngineWriter
from hccl_interop.cpp.export.ccu.lengths import LengthWriter
from hccl_interop.cpp.export.channels import JoinedPlane
from hccl_interop.cpp.export.entries import write_entries
from hccl_interop.cpp.export.host import shown_to_peers
from hccl_interop.cpp.export.memory import USER, Home
from hccl_interop.cpp.export.project import (
    HELPERS,
    Analysis,
    Exported,
    ProjectWriter,
    analysed,
    tables_in,
)
from hccl_interop.cpp.export.steps import Branch, branches_of
from hccl_interop.cpp.export.text import filled, project_files
from hccl_py.enums import READS, WRITES, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import values_of

MOST_MOVED = 256 << 20
"""Bytes of one move over a channel."""

BUDGETS = {"variables": 400, "addresses": 400, "events": 48, "instructions": 32768}
"""Registers of an instance for one round of registration, on each die."""

_MOST_NOTIFIES = 8
"""Notifies of a channel."""

_FEWER = (
    "Export it for fewer ranks, or for the AI CPU, which has no such limit: leave out --engine."
)

_TYPES = ("uint8", "int16", "int32", "fp16", "fp32", "bf16")
_REDUCTIONS = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN)

_SECOND = "    CHK_RET(HcclThreadAcquire(comm, COMM_ENGINE_CCU, 1, 1, &res.second));\n"

_MEMORY_NAMES = {"input": "kInput", "output": "kOutput", "ccl": "kCcl"}
_ON_HOST = {"kInput": "param.input", "kOutput": "param.output", "kCcl": "res.ccl"}


@dataclass(frozen=True)
class _DieEnds:
    """The kernels in which each die begins and ends, and arrays of peers that must be told so."""

    first: dict[int, KernelAt]
    last: dict[int, KernelAt]
    needs_signal: frozenset[str]


def export_engine_project(
    record: Callable[[int], Program],
    count: int,
    topology: Topology,
    hccl_bytes: int,
    options: str,
    name: str = "",
) -> Exported:
    """Return the project of a call with kernels of the CCU; arguments are those of
    `export_project`.

    Raises NotSupportedError where the CCU does not have what the program needs.
    """
    found = analysed(record, count, topology, hccl_bytes)
    found = _within_moves(found, record, count)
    return EngineProjectWriter(found, options, name).exported_for(topology)


def _within_moves(found: Analysis, record: Callable[[int], Program], count: int) -> Analysis:
    """Return an analysis for sizes at which no move over a channel is too large."""
    inside = min(count, found.samples.most)
    if _largest_move(record(inside)) > MOST_MOVED:
        raise NotSupportedError(
            f"The program moves {_largest_move(record(inside))} bytes over a channel at once, and "
            f"the CCU at most {MOST_MOVED}.",
            "Export a smaller size: -b.",
        )
    if _largest_move(record(found.samples.most)) <= MOST_MOVED:
        return found
    outside = found.samples.most
    while outside - inside > 1:
        middle = (inside + outside) // 2
        is_inside = _largest_move(record(middle)) <= MOST_MOVED
        inside, outside = (middle, outside) if is_inside else (inside, middle)
    return replace(found, most=inside, samples=replace(found.samples, most=inside))


def _largest_move(program: Program) -> int:
    """Return the bytes of the largest move over a channel."""
    tasks = program.tasks
    return int(tasks.size[tasks.end >= 0].max(initial=0))


class EngineProjectWriter(ProjectWriter):
    """The texts of a project for the CCU."""

    def exported_for(self, topology: Topology) -> Exported:
        """Return all files; NotSupportedError with the limit that the program exceeds."""
        _check_reductions(self._program)
        self._dies = DieChannels.of(self._program, topology)
        order = order_of(self._program, self._sizes, self._dies.die)
        zones = {zone.buffer: zone for zone in self._zones}
        maker = StepMaker(self._program, order, self._dies, self._sizes, zones)
        sequences = kernels_of(order)
        self._kernels = [
            maker.kernel(at, _name(at, sequences), sequence) for at, sequence in sequences.items()
        ]
        self._ends = _ends(self._program, order, sequences, self._dies)
        self._memories = self._memory_names()
        self._check_budgets()
        op = self._op.name
        files = project_files(self._name or op, op, self._header(), self._host(), "", self._options)
        del files["op_kernel_aicpu/exec_op.cc"]
        files["CMakeLists.txt"] = filled("ccu/CMakeLists.txt", target=self._name or op)
        reductions = filled("ccu/export/reductions") if self._op.reduce is not None else ""
        files["include/engine.h"] = filled("ccu/export/engine.h", reductions=reductions)
        files["op_kernel_ccu/ccu_kernel.cc"] = self._kernel()
        tables = tables_in("".join(files.values()))
        missing, whole = self._sizes.missing, self._whole
        return Exported(files, whole, tuple(self._zones), *self._range, missing, tables, "ccu")

    # Memories and limits.

    def _memory_names(self) -> dict[str, str]:
        """Return the memories by buffer, those that peers use first."""
        program = self._program
        far = set(shown_to_peers(program))
        owners: dict[str, str] = {}
        used = set()
        for batch in program.batches:
            for one in batch.instructions:
                if one.kind.moves_data:
                    used |= {program.buffers[one.src_buffer], program.buffers[one.dst_buffer]}
                if one.kind in READS and program.buffers[one.src_buffer] not in USER:
                    far.add("ccl")
                if one.kind in WRITES and program.buffers[one.dst_buffer] not in USER:
                    far.add("ccl")
        for buffer in used:
            owners[buffer] = _MEMORY_NAMES[USER.get(buffer, "ccl")]
        self._far = [name for owner, name in _MEMORY_NAMES.items() if owner in far]
        own = [name for name in _MEMORY_NAMES.values() if name in owners.values()]
        self._every = [*self._far, *(name for name in own if name not in self._far)]
        return owners

    @property
    def _notify_count(self) -> int:
        """The notifies of 16 bits that a channel needs."""
        used = max((plane.notifies for _, plane in self._dies.arrays), default=0)
        return -(-(len(self._far) + 2 + used) // BITS)

    def _check_budgets(self) -> None:
        """Raise NotSupportedError for the first limit that the project exceeds."""
        if self._notify_count > _MOST_NOTIFIES:
            most = max(plane.notifies for _, plane in self._dies.arrays)
            free = _MOST_NOTIFIES * BITS - len(self._far) - 2
            raise NotSupportedError(
                f"A channel of the program has {most} notifies, and one of the CCU has "
                f"{_MOST_NOTIFIES} of {BITS} bits each, {free} beside those of the exchange.",
                "Ask for fewer notifies of a channel: a notify can be used again after its wait.",
            )
        for kernel in self._kernels:
            for group in kernel.groups:
                for sort, number in self._needs(group, kernel).items():
                    if number > BUDGETS[sort]:
                        raise NotSupportedError(
                            f"Kernel {kernel.name} needs {number} {sort} of die {kernel.at.die}, "
                            f"and a kernel has {BUDGETS[sort]}.",
                            _FEWER,
                        )

    def _needs(self, group: GroupSteps, kernel: KernelSteps) -> dict[str, int]:
        """Return the registers and instructions that a group's ranks need in a kernel."""
        places = len(group.places)
        own = 1 + len(self._every) + kernel.lengths
        planes = self._dies.on(kernel.at.die)
        joined = sum(int(plane.joins.sum(axis=1).max()) for plane in planes)
        exchanged = (len(self._far) + 4) * joined
        return {
            "variables": own + places + 1,
            "addresses": places,
            "events": kernel.events,
            "instructions": own + 3 * places + group.lines + exchanged,
        }

    # Texts.

    def _branches(self, kernel: KernelSteps, *, lengths: bool) -> list[Branch]:
        ranks = [tuple(one.group.ranks.tolist()) for one in kernel.groups]
        steps = [one.lengths.steps if lengths else one.steps for one in kernel.groups]
        return branches_of(ranks, steps, self._fitter)

    def _engine_words(self) -> KernelWords:
        memories = {buffer: Home(name) for buffer, name in self._memories.items()}
        planes = {plane.title: plane.name for _, plane in self._dies.arrays}
        return KernelWords(memories, planes, {}, 0, 0, 0)

    def _kernel(self) -> str:
        writer = EngineWriter(self._fitter, self._engine_words())
        texts = []
        for kernel in self._kernels:
            body = str(writer.body(self._branches(kernel, lengths=False)))
            body = self._exchange(kernel.at) + body + self._signals(kernel.at)
            texts.append(
                filled(
                    "ccu/export/kernel",
                    name=kernel.name,
                    lengths=f"k{kernel.name}Lengths",
                    events=kernel.events,
                    body=writer.with_variables(body),
                )
            )
        tables = writer.tables()
        return filled(
            "ccu/export/kernels.cc",
            op=self._op.name,
            title=self._title,
            tables=f"{tables}\n" if tables else "",
            kernels="".join(texts).rstrip("\n") + "\n",
        )

    def _exchange(self, at: KernelAt) -> str:
        """Return the exchange of addresses, in the first kernel of a die."""
        if self._ends.first[at.die] != at:
            return ""
        return self._at_each(at.die, "Show") + self._at_each(at.die, "AwaitShown")

    def _signals(self, at: KernelAt) -> str:
        """Return the signals at the end of the last kernel of a die, so that no rank shows another
        address to a peer that still uses the last one.
        """
        if self._ends.last[at.die] != at:
            return ""
        found = []
        for plane in self._dies.on(at.die):
            if plane.title in self._ends.needs_signal:
                found += [
                    self._each(plane, f"{call}({{}}, kEnd - kFirstNotify)")
                    for call in ("Record", "Await")
                ]
        return "".join(found)

    def _at_each(self, die: int, call: str) -> str:
        return "".join(self._each(plane, f"{call}({{}})") for plane in self._dies.on(die))

    @staticmethod
    def _each(plane: JoinedPlane, call: str) -> str:
        return filled(
            "ccu/export/each_peer",
            condition=f"{plane.function}(rank, peer)",
            call=call.format(f"param.{plane.name}[peer]"),
        )

    def _header(self) -> str:
        names = [kernel.name for kernel in self._kernels]
        lengths = [
            f"constexpr uint32_t k{kernel.name}Lengths = {kernel.lengths};"
            for kernel in self._kernels
        ]
        predicates = [plane.predicate(self._fitter) + "\n" for _, plane in self._dies.arrays]
        return filled(
            "ccu/export/custom.h",
            title=self._title,
            call=self._call(),
            memories=", ".join(self._every),
            memory_count=len(self._every),
            shown_count=len(self._far),
            notifies=max(self._notify_count, 1),
            lengths="\n".join(lengths),
            most_lengths=max(kernel.lengths for kernel in self._kernels) if names else 0,
            zones=self._zone_constants(),
            peers="".join(f"    Peer {plane.name}[kRanks];\n" for _, plane in self._dies.arrays),
            second="    ThreadHandle second;\n" if self._has_two else "",
            kernel_count=len(names),
            predicates="".join(predicates).replace("\nbool ", "\ninline bool "),
            kernels="".join(f"CcuResult {name}(CcuKernelArg argument);\n" for name in names),
        )

    @property
    def _has_two(self) -> bool:
        """True if kernels of both dies run side by side in some phase."""
        return len({kernel.at.phase for kernel in self._kernels}) < len(self._kernels)

    def _host(self) -> str:
        words = KernelWords(
            {zone.buffer: zone.memory for zone in self._zones}
            | {name: Home(owner) for name, owner in USER.items()},
            {},
            {},
            0,
            0,
            0,
        )
        writer = LengthWriter(self._fitter, words)
        listed = "".join(
            writer.listing(f"{kernel.name}Lengths", self._branches(kernel, lengths=True))
            for kernel in self._kernels
        )
        tables = writer.tables()
        helpers = [name for name in HELPERS if re.search(rf"\b{name}\b", tables + listed)]
        name = self._name or self._op.name
        return filled(
            "ccu/export/op.cc",
            op=self._op.name,
            title=self._title,
            includes="#include <algorithm>\n" if "std::max" in listed else "",
            tables=f"{tables}\n" if tables else "",
            helpers="".join(filled(HELPERS[helper]) for helper in helpers),
            lengths=listed,
            connect=filled("host/describe") if self._dies.arrays else "",
            connecting="".join(
                filled(
                    "ccu/export/connecting",
                    condition=f"{plane.function}(param.rank, peer)",
                    layer=plane.first_layer,
                    peers=plane.name,
                )
                for _, plane in self._dies.arrays
            ),
            acquire_second=_SECOND if self._has_two else "",
            registered="".join(self._registered()),
            tag=f"hccl_py.ccu.{name}",
            main_notifies=int(self._has_two),
            memories=", ".join(_ON_HOST[memory] for memory in self._every),
            launches="".join(self._launches()),
            whole="Round" if self._in_rounds else "ExecOp",
            rounds=filled("rounds") if self._in_rounds else "",
            call=filled("host/call"),
            entries=write_entries(self._op.name, "Custom" if self._name else ""),
        )

    def _phases(self) -> Iterator[list[tuple[int, KernelSteps]]]:
        """Yield the kernels of every phase, each with its number."""
        phases = sorted({kernel.at.phase for kernel in self._kernels})
        for phase in phases:
            yield [(k, one) for k, one in enumerate(self._kernels) if one.at.phase == phase]

    def _registered(self) -> Iterator[str]:
        """Yield the rounds of registration: one for each phase, which has all registers of the
        instance.
        """
        for kernels in self._phases():
            yield "    CHK_RET(HcommCcuKernelRegisterStart(instance));\n"
            for number, kernel in kernels:
                name = kernel.name
                yield (
                    f'    CHK_RET(Register(instance, {kernel.at.die}, "{name}", {name}, kernel, '
                    f"res.kernels[{number}]));\n"
                )
            yield "    CHK_RET(HcommCcuKernelRegisterEnd(instance));\n"

    def _launches(self) -> Iterator[str]:
        """Yield the launches; of two kernels in a phase one is on the second thread."""
        for kernels in self._phases():
            if len(kernels) > 1:
                yield "    CHK_RET(HcommThreadNotifyRecordOnThread(res.main, res.second, 0));\n"
                yield "    CHK_RET(HcommThreadNotifyWaitOnThread(res.second, 0, kTimeout));\n"
            for thread, (number, kernel) in zip(("main", "second"), kernels, strict=False):
                yield (
                    f"    CHK_RET(Launch(res.{thread}, res.kernels[{number}], param, res, "
                    f"{kernel.name}Lengths, k{kernel.name}Lengths));\n"
                )
            if len(kernels) > 1:
                yield "    CHK_RET(HcommThreadNotifyRecordOnThread(res.second, res.main, 0));\n"
                yield "    CHK_RET(HcommThreadNotifyWaitOnThread(res.main, 0, kTimeout));\n"


def _name(at: KernelAt, every: Iterable[KernelAt]) -> str:
    phases = {one.phase for one in every}
    phase = f"Phase{at.phase + 1}" if len(phases) > 1 else ""
    return f"{phase}{NETWORKS[at.die]}Kernel"


def _check_reductions(program: Program) -> None:
    """Raise NotSupportedError for a reduction that the CCU does not have."""
    op = program.op
    for batch in program.batches:
        for one in batch.instructions:
            if not one.kind.reduces:
                continue
            reduce = ReduceOp(one.reduce)
            is_own = one.dtype == op.dtype.number and op.dtype.value in _TYPES
            if not is_own or reduce not in _REDUCTIONS:
                raise NotSupportedError(
                    f"The program reduces {op.dtype.value} by {reduce.spelling}; the CCU reduces "
                    f"{', '.join(_TYPES)} by sum, max and min, all moves in one data type.",
                    "Export it for another data type or reduction.",
                )


def _ends(
    program: Program,
    order: InstructionOrder,
    sequences: dict[KernelAt, list[list[Sequenced]]],
    dies: DieChannels,
) -> _DieEnds:
    """Return the begin and the end of each die, and the arrays of channels on which peers must say
    that they have ended: those where no post of a rank follows its last move.
    """
    first: dict[int, KernelAt] = {}
    last: dict[int, KernelAt] = {}
    moves = np.full(len(program.transports), -1, np.int64)
    posts = np.full(len(program.transports), -2, np.int64)
    turn = 0
    for at, sequence in sequences.items():
        first.setdefault(at.die, at)
        last[at.die] = at
        for group, steps in zip(order.groups, sequence, strict=True):
            for step in steps:
                turn += 1
                if not isinstance(step, IssuedNode):
                    continue
                one = order.instruction(step.node)
                width = len(program.batches[group.batch].ranks)
                ends = np.full(width, values_of(one.end))[group.places]
                if one.kind.moves_data:
                    moves[ends[ends >= 0]] = turn
                elif one.kind == TaskKind.NOTIFY_POST:
                    posts[ends] = turn
    late = posts < moves
    late |= posts < 0
    late &= dies.array >= 0
    titles = {dies.arrays[int(k)][1].title for k in np.unique(dies.array[late])}
    return _DieEnds(first, last, frozenset(titles))
