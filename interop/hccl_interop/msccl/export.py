"""A program as the text of an MSCCL XML file.

What threadblocks do is found by `export_steps.py`; here memory becomes chunks, connections get
channels, and what the runtime would refuse is refused. The text is read back and verified before
any of them gets it: an order that only its posts to peers have kept would be lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from hccl_interop.common.meaning import Meaning
from hccl_interop.msccl.algorithm import XmlAlgorithm
from hccl_interop.msccl.export_steps import (
    ExportStep,
    LocalRange,
    MadeBlock,
    MadeConnection,
    Stream,
    blocks_of,
    refusal,
)
from hccl_interop.msccl.imported import import_algorithm
from hccl_interop.msccl.layout import BUFFERS, FIFO
from hccl_interop.msccl.protocols import PROTOCOLS
from hccl_interop.msccl.xml_text import MAX_CHUNKS, algorithms_from
from hccl_py.errors import NotSupportedError, ParameterError, ProgramFileError, did_you_mean
from hccl_py.importers import Imported
from hccl_py.operators import make_operator
from hccl_py.program.program import Program
from hccl_py.values import IntArray

_TITLE = re.compile(
    r"MSCCL (?P<protocol>\w+), (?P<chunks>[0-9]{1,5}) chunks(?P<both>, also in place)?"
    r"(?:: (?P<name>.*))?",
    re.DOTALL,
)
_COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "all_to_all": "alltoall",
    **{name: name for name in ("broadcast", "reduce", "gather", "scatter")},
}
_AMOUNTS = ("counts", "displs", "matrix")
_CHANNEL = re.compile(r"channel ([0-9]{1,5})")
_MOST_BYTES = 1 << 40


def to_xml(program: Program, *, protocol: str | None = None, name: str | None = None) -> str:
    """Return a program as an MSCCL XML file.

    `protocol` is Simple, LL or LL128; by default that of the algorithm that the program was
    imported from, else Simple. `name` is what the algorithm is called.

    Raises NotSupportedError, with the task, for a program that no threadblocks can run: they send
    to one peer and receive from one, and read no memory of peers. ParameterError for an unknown
    protocol.
    """
    if program.counts_posts or program.alternating:
        what = "notifies count" if program.counts_posts else "buffers alternate"
        raise NotSupportedError(
            f"The program is no MSCCL algorithm: its {what}.",
            "MSCCL's runtime has slots and flags of its own for every message.",
        )
    title = _TITLE.fullmatch(program.executor)
    if protocol is not None and protocol not in PROTOCOLS:
        hint = did_you_mean(protocol, PROTOCOLS)
        raise ParameterError(f"Protocol {protocol!r} is unknown.", hint)
    naming = _Naming(
        protocol=protocol or (title["protocol"] if title else "Simple"),
        name=name if name is not None else ((title["name"] or "") if title else program.executor),
        is_for_both=bool(title and title["both"]),
        chunks=int(title["chunks"]) if title else 0,
    )
    if title and program.rounds > 1:  # every pass does the same on other bytes
        writer = _XmlWriter(program, naming, is_one_pass=True)
        if _is_same(program, writer):
            return writer.text
    writer = _XmlWriter(program, naming)
    if not _is_same(program, writer):
        _check(program, writer)
    return writer.text


@dataclass(frozen=True)
class _Naming:
    """Properties of the algorithm, from an imported program and from the caller."""

    protocol: str
    name: str
    is_for_both: bool
    chunks: int


class _XmlWriter:
    """Writes the elements. With `is_one_pass`, only the first of several passes: a message then
    stands for a chunk, of which it has the first bytes.
    """

    def __init__(self, program: Program, naming: _Naming, *, is_one_pass: bool = False) -> None:
        self._program, self._naming, self._is_one_pass = program, naming, is_one_pass
        self._blocks, self._copies = blocks_of(program, 1 if is_one_pass else -1)
        self._size = make_operator(program.op.name).data_size(program.op, program.ranks)
        self._others = [
            number
            for number, buffer in enumerate(program.buffers)
            if buffer not in ("IN", "OUT", FIFO)
        ]
        self.chunk = self._chunk(naming.chunks)
        self._scratch = self._scratch_chunks()
        self._channels = _channels(program, self._blocks)

    @cached_property
    def text(self) -> str:
        """The whole file."""
        return "\n".join([*self._lines(), ""])

    def _scratch_chunks(self) -> IntArray:
        """Return the chunks that every rank has of each buffer that is scratch, [ranks, buffers]:
        all of it in an imported program, as much as is used in others.
        """
        if self._naming.chunks:
            sizes = self._program.buffer_sizes[:, self._others]
        else:
            sizes = np.zeros((self._program.ranks, len(self._others)), np.int64)
            for (rank, _), block in self._blocks.items():
                for memory in (m for step in block.steps for m in (step.src, step.dst) if m):
                    if memory.buffer in self._others:
                        at = rank, self._others.index(memory.buffer)
                        sizes[at] = max(sizes[at], memory.start + memory.size)
        return -(-sizes // self.chunk)

    def _chunk(self, chunks: int) -> int:
        """Return the bytes of a chunk: as the algorithm had them, else as large as can be."""
        unit = self._common()
        if chunks and self._size % chunks == 0 and unit % (self._size // chunks) == 0:
            return self._size // chunks
        if not unit or self._size % unit or self._size // unit > MAX_CHUNKS:
            raise NotSupportedError(
                f"The program is no MSCCL algorithm: its offsets have {unit} bytes in common, and "
                f"its data has {self._size}: at most {MAX_CHUNKS} chunks make an algorithm.",
                "Record it at a size that its parts divide evenly.",
            )
        return unit

    def _common(self) -> int:
        """Return the greatest common divisor of all sizes and offsets."""
        unit = self._size
        for step in self._all_steps():
            unit = unit if self._is_one_pass else gcd(unit, step.size)
            for memory in (step.src, step.dst):
                unit = unit if memory is None else gcd(unit, memory.start)
        for number, buffer in enumerate(self._program.buffers):
            if buffer != FIFO:
                for size in self._program.buffer_sizes[:, number].tolist():
                    unit = gcd(unit, size) if buffer in ("IN", "OUT") else unit
        return unit

    def _all_steps(self) -> Iterator[ExportStep]:
        for block in self._blocks.values():
            yield from block.steps
        for copies in self._copies.values():
            yield from copies

    def _lines(self) -> Iterator[str]:
        program, op = self._program, self._program.op
        collective = _COLLECTIVES.get(op.name, "custom")
        inplace = bool(op.in_place)
        yield _element(
            "algo",
            0,
            name=self._naming.name,
            proto=self._naming.protocol,
            nchannels=max(self._channels.values(), default=0) + 1,
            nchunksperloop=self._size // self.chunk,
            ngpus=program.ranks,
            coll=collective,
            inplace=int(inplace or self._naming.is_for_both),
            outofplace=int(not inplace),
            minBytes=0,
            maxBytes=_MOST_BYTES,
        )
        for rank in range(program.ranks):
            yield from self._gpu(rank)
        yield "</algo>"

    def _gpu(self, rank: int) -> Iterator[str]:
        sizes = dict(zip(self._program.buffers, self._program.buffer_sizes[rank], strict=True))
        yield _element(
            "gpu",
            2,
            id=rank,
            i_chunks=int(sizes.get("IN", 0)) // self.chunk,
            o_chunks=int(sizes.get("OUT", 0)) // self.chunk,
            s_chunks=int(self._scratch[rank].sum()),
        )
        for made in self._copies.get(rank, ()):
            yield from self._copied(rank, made)
        streams = [stream for stream in self._blocks if stream[0] == rank]
        places = {stream: _places(self._blocks[stream]) for stream in streams}
        awaited = {
            (dep, places[dep][at])
            for stream in streams
            for step in self._blocks[stream].steps
            for dep, at in step.depends
        }
        for number, stream in enumerate(streams):
            block = self._blocks[stream]
            yield _element(
                "tb",
                4,
                id=number,
                send=-1 if block.send is None else block.send.receiver[0],
                recv=-1 if block.recv is None else block.recv.sender[0],
                chan=self._channels.get(stream, 0),
            )
            for position, attributes in enumerate(self._steps(rank, block, streams, places)):
                hasdep = int((stream, position) in awaited)
                yield _element("step", 6, s=position, **attributes, hasdep=hasdep, closed=True)
            yield "    </tb>"
        yield "  </gpu>"

    def _copied(self, rank: int, made: ExportStep) -> Iterator[str]:
        src, dst = (self._local(rank, made.row, memory) for memory in (made.src, made.dst))
        if (src[0], dst[0]) != ("i", "o"):
            raise refusal(self._program, made.row, "only copies from input to output come first")
        for number in range(made.size // self.chunk):
            yield _element("copy", 4, i_off=src[1] + number, o_off=dst[1] + number, closed=True)

    def _steps(
        self, rank: int, block: MadeBlock, streams: list[Stream], places: dict[Stream, list[int]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every step, waits for further dependencies in front of it."""
        ids = {stream: number for number, stream in enumerate(streams)}
        for step in block.steps:
            waits = [{"depid": ids[dep], "deps": places[dep][at]} for dep, at in step.depends]
            nothing = {"srcbuf": "i", "srcoff": -1, "dstbuf": "o", "dstoff": -1, "cnt": 0}
            yield from ({"type": "nop", **nothing, **wait} for wait in waits[:-1])
            src, dst = (
                (default, -1) if memory is None else self._local(rank, step.row, memory)
                for default, memory in (("i", step.src), ("o", step.dst))
            )
            yield {
                "type": step.type,
                "srcbuf": src[0],
                "srcoff": src[1],
                "dstbuf": dst[0],
                "dstoff": dst[1],
                "cnt": 1 if self._is_one_pass else step.size // self.chunk,
                **(waits[-1] if waits else {"depid": -1, "deps": -1}),
            }

    def _local(self, rank: int, row: int, memory: LocalRange | None) -> tuple[str, int]:
        """Return the buffer and chunk of memory."""
        assert memory is not None
        name = self._program.buffers[memory.buffer]
        letter = next((letter for letter in "io" if BUFFERS[letter] == name), "s")
        chunk = memory.start // self.chunk
        if letter == "s":
            chunk += int(self._scratch[rank, : self._others.index(memory.buffer)].sum())
        if chunk > MAX_CHUNKS:
            why = f"chunk {chunk} is beyond {MAX_CHUNKS}, the last that an algorithm has"
            raise refusal(self._program, row, why)
        return letter, chunk


def _places(block: MadeBlock) -> list[int]:
    """Return the position of every step, with a nop for each dependency beyond its first."""
    places, position = [], -1
    for step in block.steps:
        position += max(1, len(step.depends))
        places.append(position)
    return places


def _element(tag: str, indent: int, /, *, closed: bool = False, **attributes: object) -> str:
    text = " ".join(f"{key}={quoteattr(str(value))}" for key, value in attributes.items())
    return f"{' ' * indent}<{tag} {text}{'/' if closed else ''}>"


def _channels(program: Program, blocks: dict[Stream, MadeBlock]) -> dict[Stream, int]:
    """Return the channel of every threadblock that has a connection.

    Both ends of a connection have the same; a GPU has one connection to a peer, and one from it, on
    a channel. Where planes are channels, as those of imported programs, they stay as they are.
    """
    links = {block.send for block in blocks.values()} | {block.recv for block in blocks.values()}
    known = sorted(link for link in links if link is not None)
    groups = _groups(known)
    found: dict[Stream, int] = {}
    taken: dict[tuple[int, int], set[int]] = defaultdict(set)
    for group in groups:
        named = {_number(program, link) for link in group}
        used = {n for link in group for n in taken[link.sender[0], link.receiver[0]]}
        own = named.pop() if len(named) == 1 else None
        if own is None or own in used:
            own = next(number for number in range(len(known) + 1) if number not in used)
        for link in group:
            found[link.sender] = found[link.receiver] = own
            taken[link.sender[0], link.receiver[0]].add(own)
    return found


def _number(program: Program, link: MadeConnection) -> int | None:
    match = _CHANNEL.fullmatch(program.transports.planes[link.plane])
    return int(match[1]) if match else None


def _groups(links: list[MadeConnection]) -> list[list[MadeConnection]]:
    """Return the connections whose threadblocks hang together, group by group."""
    of_stream: dict[Stream, list[MadeConnection]] = defaultdict(list)
    for link in links:
        of_stream[link.sender].append(link)
        of_stream[link.receiver].append(link)
    groups, seen = [], set()
    for first in links:
        waiting, group = [first], []
        while waiting:
            link = waiting.pop()
            if link in seen:
                continue
            seen.add(link)
            group.append(link)
            waiting += [*of_stream[link.sender], *of_stream[link.receiver]]
        if group:
            groups.append(sorted(group))
    return groups


def _read_back(program: Program, writer: _XmlWriter) -> Imported:
    try:
        (algorithm,) = algorithms_from(writer.text.encode(), "it")
    except ProgramFileError as error:  # a number beyond what the format has
        message = f"The program is no MSCCL algorithm: {error.message}"
        raise NotSupportedError(message, error.hint) from None
    members, op = _members(program, algorithm, writer.chunk), program.op
    size = algorithm.chunks * writer.chunk
    return import_algorithm(algorithm, members, size, op.dtype, op.reduce, op.root)


def _is_same(program: Program, writer: _XmlWriter) -> bool:
    """Return True if the text, read back, is the same program, and one that the runtime takes."""
    imported = _read_back(program, writer)
    is_same = imported.program is not None and imported.program.digest == program.digest
    return is_same and imported.recorded().ok


def _check(program: Program, writer: _XmlWriter) -> None:
    """Read the text back; raise NotSupportedError where it is not right as it is."""
    wrong = _read_back(program, writer).report().errors
    if wrong:
        raise NotSupportedError(
            f"The program cannot be kept as an MSCCL algorithm: {wrong[0].message.splitlines()[0]}",
            "Its runtime knows no other order between GPUs than that of messages, and has limits.",
        )


def _members(program: Program, algorithm: XmlAlgorithm, chunk: int) -> Meaning[XmlAlgorithm]:
    """Return the op that the program carries out, amounts in chunks."""
    op, elements = program.op, chunk // program.op.unit
    found: dict[str, Any] = {"name": op.name}
    for name in _AMOUNTS:
        if getattr(op, name):
            found[name] = _divided(getattr(op, name), elements)
    if op.pairs:
        found["pairs"] = [
            [*pair[:2], *(_divided(count, elements) for count in pair[2:])] for pair in op.pairs
        ]
    if elements * op.unit != chunk:
        raise _uneven(op.unit)
    return Meaning(algorithm, found)


def _divided(value: Any, elements: int) -> Any:
    if isinstance(value, tuple):
        return [_divided(item, elements) for item in value]
    if not elements or value % elements:
        raise _uneven(value)
    return value // elements


def _uneven(value: int) -> NotSupportedError:
    return NotSupportedError(
        f"The program is no MSCCL algorithm: an amount of {value} is no whole number of chunks.",
        "Record it at a size that its parts divide evenly.",
    )
