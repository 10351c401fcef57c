"""The parts that data is made of, found from how it travels.

A unit is a piece of a rank's input that nothing cuts (data_units.py). Neighbouring units that
always travel together, and are wanted at the same ranks, are one part: a chunk of a rank's input.
Where inputs are reduced, the chunks of all ranks are cut alike, and a chunk's parts are the ranks'
contributions to it. In all-to-all the chunks of a rank are numbered by receiver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hccl_py.program.describe import ByteRange
from hccl_py.program.program import Program
from hccl_py.trace.pictures.data_units import Units
from hccl_py.verifier.analysis.meaning import EVERYONE, Expected

Unit: TypeAlias = tuple[int, int]
"""A rank, and the number of a unit of its input."""

Content: TypeAlias = frozenset[Unit]
"""What one place holds: a unit, or those that were added up there."""

Place: TypeAlias = tuple[int, int, int]
"""A rank, a buffer, and the number of a unit there."""


class InputChunk(NamedTuple):
    """A chunk of a rank's input."""

    source: int
    chunk: int


@dataclass(frozen=True)
class UnitParts:
    """Every unit's part, and the parts that every rank must have in the end."""

    number: Mapping[Unit, InputChunk]
    wanted: tuple[frozenset[InputChunk], ...]
    reduces: bool

    @property
    def sources(self) -> tuple[int, ...]:
        """The ranks whose inputs matter."""
        return tuple(sorted({part.source for part in self.number.values()}))

    @property
    def chunks(self) -> int:
        """The largest number of chunks of a rank's input."""
        return 1 + max(part.chunk for part in self.number.values())

    def of(self, content: Content) -> frozenset[InputChunk]:
        """Return the parts that some units belong to."""
        return frozenset(self.number[unit] for unit in content if unit in self.number)

    def held(self, memory: Mapping[Place, Content]) -> tuple[frozenset[InputChunk], ...]:
        """Return the parts that every rank has whole."""
        have: list[set[Unit]] = [set() for _ in self.wanted]
        best: list[dict[int, list[Unit]]] = [{} for _ in self.wanted]
        for (rank, _, _), content in memory.items():
            if not self.reduces:
                have[rank] |= content
            elif content:
                result, number = sorted(content), min(content)[1]
                known = best[rank].get(number, [])
                best[rank][number] = max(known, result, key=lambda units: (len(units), units))
        for rank, results in enumerate(best):
            have[rank].update(unit for units in results.values() for unit in units)
        return tuple(self._whole(units) for units in have)

    def _whole(self, units: set[Unit]) -> frozenset[InputChunk]:
        missing = {part for unit, part in self.number.items() if unit not in units}
        return frozenset(self.number.values()) - missing


@dataclass(frozen=True)
class Inputs:
    """The units of inputs that matter, with the ranks that want them."""

    units: Mapping[Unit, tuple[int, ...]]
    ranks: int
    reduces: bool
    by_receiver: bool

    def cut(self, transfers: Sequence[Sequence[Content]]) -> UnitParts:
        """Cut where units part on their way; `transfers` has what each transfer carries."""
        carried: dict[Unit, list[int]] = defaultdict(list)
        for index, content in enumerate(c for band in transfers for c in band):
            for key in {self._key(unit) for unit in content}:
                carried[key].append(index)
        number: dict[Unit, InputChunk] = {}
        last: dict[int, tuple[int, object]] = {}  # by source: the chunk, and how it travels
        for (rank, unit), receivers in sorted(self.units.items()):
            way = carried[self._key((rank, unit))], receivers
            chunk, before = last.get(rank, (-1, None))
            if self.by_receiver:
                chunk = receivers[0]
            elif way != before:
                chunk += 1
            last[rank] = chunk, way
            number[rank, unit] = InputChunk(rank, chunk)
        wanted = tuple(
            frozenset(number[unit] for unit, ranks in self.units.items() if rank in ranks)
            for rank in range(self.ranks)
        )
        return UnitParts(number, wanted, self.reduces)

    def _key(self, unit: Unit) -> Unit:
        """Return a unit's key: the same for all ranks' units at a place if they are reduced."""
        return (EVERYONE, unit[1]) if self.reduces else unit


def parts_of(program: Program, meaning: Expected, units: Units) -> Inputs:
    """Return the units of all inputs that must arrive somewhere."""
    into = program.buffers.index("IN")
    wanted: dict[Unit, set[int]] = defaultdict(set)
    columns = meaning.rank, meaning.start, meaning.stop, meaning.source, meaning.offset
    for rank, start, stop, source, offset in zip(*(c.tolist() for c in columns), strict=True):
        for source_rank in range(program.ranks) if source == EVERYONE else (source,):
            memory = ByteRange(source_rank, into, offset, offset + stop - start)
            for number in units.within(memory):
                wanted[source_rank, number].add(rank)
    return Inputs(
        {key: tuple(sorted(ranks)) for key, ranks in wanted.items()},
        program.ranks,
        reduces=bool((meaning.source == EVERYONE).any()),
        by_receiver=program.op.name.startswith("all_to_all"),
    )
