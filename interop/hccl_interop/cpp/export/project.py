"""A whole project: the files of a custom op in C++ that does what an executor does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hccl_interop.cpp.export.alike_rounds import most_in_rounds
from hccl_interop.cpp.export.calls import KernelWords
from hccl_interop.cpp.export.channels import planes_of
from hccl_interop.cpp.export.entries import CAN_EXPORT
from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.host import shown_to_peers, write_host
from hccl_interop.cpp.export.kernel import write_kernel
from hccl_interop.cpp.export.memory import USER, Home, Zone, check_room, uses_of_memory, zones_of
from hccl_interop.cpp.export.notifies import named_notifies, notifies_of_threads
from hccl_interop.cpp.export.sampling import Samples, sample_sizes
from hccl_interop.cpp.export.sizes import SizeFields, counts_at_switches, sizes_of, wrong_ones
from hccl_interop.cpp.export.steps import sections_of
from hccl_interop.cpp.export.text import camel_case, comment, filled, project_files, size_text
from hccl_py.enums import TaskKind
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology

HELPERS = {
    "Aligned": "aligned",
    "Slice": "slice",
    "Part": "part",
    "EvenPart": "even_part",
    "Front": "front",
    "Back": "back",
    "FromZero": "from_zero",
    "Fork": "fork",
    "Join": "join",
}
"""Functions and types of the kernel that are written where they are used, in this order."""

_OF_TABLES = "// Numbers of these kRanks ranks: no formula of the rank was found that gives them.\n"

_HCCL_TYPES = {"bf16": "BFP16"}


@dataclass(frozen=True)
class Exported:
    """A project: its files by path, the exported program, and the least and most elements."""

    files: dict[str, str]
    program: Program
    zones: tuple[Zone, ...]
    least: int
    most: int
    missing: str = ""
    """The task that has no formula, where the project is for one size alone."""
    tables: tuple[str, ...] = ()
    """The tables of the kernel: numbers of every rank for which there is no formula."""

    engine: str = "aicpu"
    """The engine of its kernels: "aicpu" or "ccu"."""


def tables_in(kernel: str) -> tuple[str, ...]:
    """Return the names of the tables in the text of a kernel."""
    return tuple(re.findall(r"^constexpr \w+ (\w+)\[.*= \{", kernel, re.MULTILINE))


@dataclass(frozen=True)
class Analysis:
    """A program, its samples, the most elements that they or rounds of them stand for, and the
    formulas and memories of all of them.
    """

    program: Program
    samples: Samples
    most: int
    sizes: SizeFields
    fitter: Fitter
    zones: Sequence[Zone]


def export_project(
    record: Callable[[int], Program],
    count: int,
    topology: Topology,
    hccl_bytes: int,
    options: str,
    name: str = "",
) -> Exported:
    """Return the project of a call; `record` records it at a number of elements.

    A project with a `name` is one of several in a process: its kernel, its resources and its
    functions have names of their own. `hccl_bytes` are those of the HCCL buffer; `options`
    are those of `hccl-py check` for the call.
    Raises NotSupportedError for programs that HCCL's programming API cannot express,
    ParameterError for a call without data.
    """
    return ProjectWriter(analysed(record, count, topology, hccl_bytes), options, name).exported()


def analysed(
    record: Callable[[int], Program], count: int, topology: Topology, hccl_bytes: int
) -> Analysis:
    """Return the part that all sizes of a call have in common; raises as `export_project` does."""
    if count < 1:
        raise ParameterError(
            "There is nothing to export in a call without data.", "Give a size: -b."
        )
    program = record(count)
    _check(program, topology)
    zones = zones_of(program, hccl_bytes)

    def fitting(number: int) -> Program:
        found = record(number)
        check_room(uses_of_memory(found), zones)
        return found

    fitter = Fitter(topology.size, _devices(topology))
    room = hccl_bytes * topology.size // program.op.unit
    chunks = sorted({fitter.ranks, fitter.devices, fitter.ranks // fitter.devices})
    samples = sample_sizes(fitting, count // program.rounds, room, chunks)
    samples, sizes = _formulas(samples, fitting, _dimensions(fitter))
    most = samples.most
    if not sizes.is_fixed and not shown_to_peers(program):
        most = most_in_rounds(fitting, sizes, most, (count, *_TELLING))
    if sizes.is_fixed or count > most:
        why = sizes.missing or f"rounds of {samples.most} elements are not alike"
        samples, most = Samples((program,), count, count), count
        sizes = SizeFields((program,), {}, why)
    return Analysis(program, samples, most, sizes, fitter, zones)


def _formulas(
    samples: Samples, record: Callable[[int], Program], dimensions: Sequence[int]
) -> tuple[Samples, SizeFields]:
    """Return formulas that are right for counts that they were not made from, too. A count for
    which they are not is one more sample, and the formulas are made anew, a few times.
    """
    others = {sample.op.count: sample for sample in samples.others}
    for _ in range(_ATTEMPTS):
        sizes = sizes_of(samples, dimensions)
        wrong = wrong_ones(sizes, list(others.values()))
        if not wrong:  # where one of two lengths is the larger one, a rest may hide the other
            telling = counts_at_switches(sizes) - others.keys()
            inside = sorted(n for n in telling if samples.least <= n <= samples.most)
            others |= {count: record(count) for count in inside}
            wrong = wrong_ones(sizes, list(others.values()))
        if not wrong:
            return samples, sizes
        samples = replace(samples, every=(*samples.every, *wrong[:_MOST_WRONG]))
    missing = f"no formula holds at {samples.every[-1].op.count} elements as it does at others"
    return samples, SizeFields(samples.every, {}, missing)


_ATTEMPTS = 8
"""Times that formulas are made."""

_MOST_WRONG = 3
"""Counts at which formulas are wrong that become samples at once."""

_TELLING = (1 << 17, (100 << 20) + 1, 1 << 27)
"""Counts of fp32 in 512 KiB, in 400 MiB and one element, and in 512 MiB."""


def _check(program: Program, topology: Topology) -> None:
    """Raise NotSupportedError for a program that the API cannot express."""
    if program.op.name not in CAN_EXPORT:
        raise NotSupportedError(
            f"{program.op.name} cannot be exported: no custom op can stand for it.",
            f"These can: {', '.join(CAN_EXPORT)}.",
        )
    kinds = {one.kind for batch in program.batches for one in batch.instructions}
    if TaskKind.COMPUTE in kinds:
        raise NotSupportedError(
            "HCCL's programming API has no computing task.", "Export a program without any."
        )
    t = program.transports
    other = t.kind != topology.link_kinds(t.rank, t.peer)
    for end in np.flatnonzero(other)[:1].tolist():
        raise NotSupportedError(
            f"The program has RDMA where rank {t.rank[end]} and rank {t.peer[end]} are joined by "
            "SDMA, and HCCL's programming API takes what joins them.",
            "Export it for ranks of one superpod, or an executor without rdma=True.",
        )
    near = topology.server[:, None] == topology.server
    for plane in planes_of(program) if topology.product.bus.ubx else ():
        if plane.first_layer and (plane.joins & near).any():
            raise NotSupportedError(
                f"Plane {plane.title} goes over the Clos network inside a UBX server, which HCCL's "
                "rank graph has in layer 0 beside the mesh; exported code asks for links by layer.",
                "Export it for servers without UBX, or an executor that takes the mesh alone.",
            )


def _devices(topology: Topology) -> int:
    """Return the devices of each server; all ranks where servers differ or are not in order."""
    servers = topology.server
    count = int(np.count_nonzero(servers == servers[0]))
    is_regular = topology.size % count == 0
    same = is_regular and (servers == np.arange(topology.size) // count).all()
    return count if same else topology.size


def _dimensions(fitter: Fitter) -> list[int]:
    """Return numbers of chunks to try."""
    ranks, devices = fitter.ranks, fitter.devices
    power = 1 << (ranks.bit_length() - 1)
    return [ranks, devices, ranks // devices, power, ranks - 1, devices - 1, 2 * ranks, 2, 4]


class ProjectWriter:
    """The texts of a project."""

    def __init__(self, found: Analysis, options: str, title: str) -> None:
        self._samples, self._sizes, self._fitter = found.samples, found.sizes, found.fitter
        self._program, fitter = found.samples.exported, found.fitter
        self._op = self._program.op
        self._zones, self._options = found.zones, options
        self._planes = planes_of(self._program)
        self._notifies = named_notifies(self._program)
        name = self._program.executor or "a program"
        what = f"{comment(name)}, {self._op.name} on {fitter.ranks} ranks"
        self._title = f"Written by `hccl-py export`: {what}."
        self._name = title
        self._kernel_name = f"{camel_case((title or self._op.name).replace('_', ' '))}Kernel"
        self._threads = self._program.streams
        self._shown = shown_to_peers(self._program)
        self._whole, self._in_rounds = found.program, found.most > found.samples.most
        self._range = found.samples.least, found.most

    def exported(self) -> Exported:
        """Return all files."""
        op = self._op.name
        texts = (self._header(), self._host(), self._kernel())
        files = project_files(self._name or op, op, *texts, self._options)
        tables = tables_in(texts[2])
        missing = self._sizes.missing
        return Exported(files, self._whole, tuple(self._zones), *self._range, missing, tables)

    def _kernel(self) -> str:
        memories = {zone.buffer: zone.memory for zone in self._zones}
        memories |= {name: Home(owner) for name, owner in USER.items()}
        words = KernelWords(
            memories,
            {plane.title: plane.name for plane in self._planes},
            self._notifies,
            self._op.dtype.number,
            -1 if self._op.reduce is None else int(self._op.reduce),
            self._threads,
        )
        sections = sections_of(self._program, self._sizes, self._fitter)
        whole = "Round" if self._in_rounds else "ExecOp"
        tables, functions = write_kernel(sections, self._fitter, words, whole)
        code = tables + functions
        helpers = [name for name in HELPERS if re.search(rf"\b{name}\b", code)]
        return filled(
            "exec_op.cc",
            op=self._op.name,
            title=self._title,
            tables=f"{_OF_TABLES}{tables}\n" if tables else "",
            includes="#include <algorithm>\n\n" if "std::max" in code else "",
            helpers="".join(filled(HELPERS[name]) for name in helpers),
            functions=functions + (filled("rounds") if self._in_rounds else ""),
            kernel=self._kernel_name,
        )

    def _header(self) -> str:
        owners = np.array(notifies_of_threads(self._program), np.int64).reshape(-1, 2)
        main = int((owners[owners[:, 0] == 0, 1] + 1).max(initial=0))
        workers = int((owners[owners[:, 0] > 0, 1] + 1).max(initial=0))
        return filled(
            "custom.h",
            title=self._title,
            call=self._call(),
            threads=self._threads,
            main_notifies=main,
            worker_notifies=workers,
            channels=self._channels(),
            zones=self._zone_constants(),
            peer_memories="".join(f"    char* {owner};\n" for owner in self._shown),
            peers="".join(f"    Peer {plane.name}[kRanks];\n" for plane in self._planes),
        )

    def _call(self) -> str:
        op, fitter = self._op, self._fitter
        lines = [f"constexpr uint32_t kRanks = {fitter.ranks};"]
        if fitter.has_servers:
            lines.append(f"constexpr uint32_t kDevices = {fitter.devices};  // of each server")
            lines.append("constexpr uint32_t kServers = kRanks / kDevices;")
        name = _HCCL_TYPES.get(op.dtype.value, op.dtype.value.upper())
        lines.append(f"constexpr HcclDataType kDataType = HCCL_DATA_TYPE_{name};")
        lines.append(f"constexpr uint64_t kUnit = {op.unit};  // bytes of an element")
        if op.reduce is not None:
            lines.append(f"constexpr HcclReduceOp kReduceOp = HCCL_REDUCE_{op.reduce.name};")
        if op.root is not None:
            lines.append(f"constexpr uint32_t kRoot = {op.root};")
        least, most = self._range
        if self._sizes.is_fixed:
            lines.append(
                f"// Offsets and sizes are those of one size: {comment(self._sizes.missing)}."
            )
        else:
            lines.append("// Elements: the algorithm is another one for fewer or more.")
        lines.append(f"constexpr uint64_t kLeastCount = {least};")
        if self._in_rounds:
            lines.append(f"constexpr uint64_t kRoundCount = {self._samples.most};")
        lines.append(f"constexpr uint64_t kMostCount = {most};")
        return "\n".join(lines) + "\n"

    def _channels(self) -> str:
        lines = []
        if self._notifies and self._planes:
            lines.append("// Notifies of a channel.")
            lines.append("enum Notify : uint32_t {")
            lines += [f"    {name} = {number}," for number, name in self._notifies.items()]
            lines.append("};")
        lines += [
            f"constexpr uint32_t {plane.constant} = {plane.notifies};" for plane in self._planes
        ]
        return "\n".join(lines)

    def _zone_constants(self) -> str:
        lines = [
            f"constexpr uint64_t {zone.constant} = {size_text(zone.offset)};"
            for zone in self._zones
            if zone.offset
        ]
        end = max((zone.offset + zone.size for zone in self._zones), default=0)
        return "\n".join([*lines, f"constexpr uint64_t kCclBytes = {size_text(end)};", ""])

    def _host(self) -> str:
        return write_host(
            self._op,
            self._name,
            self._title,
            self._kernel_name,
            self._planes,
            self._shown,
            self._fitter,
            has_workers=self._threads > 1,
        )
