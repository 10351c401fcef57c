"""Tuning tables: the fastest executor by size, found once and used by selection.

An entry is one op on one topology; its ranges of sizes name the fastest executor of the sampled
sizes in them. Between two samples with different winners the boundary is their geometric mean;
the winners of the first and the last sample extend to all smaller and larger sizes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from hccl_py.clocks.cost import CostModel
from hccl_py.documents.disk import PathLike, format_path, read_file, write_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.models import Strict, checked
from hccl_py.documents.parse import parse_document
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import FileError, ParameterError, did_you_mean
from hccl_py.topology.topology import Topology
from hccl_py.tuning.points import keyed_cost

SCHEMA = "hccl-py.tuning/1"
MAX_BYTES = 64 << 20

TABLE = FileKind(
    noun="tuning table",
    parts="entries",
    larger="A tuning table has at most 64 MB.",
    depth="A tuning table has entries with ranges with samples.",
    digits="Sizes are below 2**63.",
    mark=re.compile(rb"hccl-py\.tuning/"),
)

_WORDS = {
    "dtype": ("a data type", [dtype.value for dtype in DataType]),
    "reduce_op": ("a reduce op", [op.spelling for op in ReduceOp]),
}

T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Field(strict=False)]
Size = Annotated[int, Field(ge=0, lt=1 << 63)]
Count = Annotated[int, Field(ge=1, le=1 << 20)]
Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Shape(Strict):
    """The topology of an entry: product and numbers, or the name of a network.

    `servers` are those of each superpod. Where servers are uneven or ranks are not numbered server
    by server, it is all servers, and `devices` has the number of each. `rdma` says whether some
    pair of ranks is linked by RDMA.
    """

    product: str
    superpods: Count
    servers: Count
    devices: Count | Listed[Count]
    rdma: bool
    network: str = ""

    @staticmethod
    def of(topology: Topology) -> Shape:
        """Return the shape of a topology."""
        servers, is_even = topology.servers, topology.is_even
        pods = len(topology.superpods)
        return Shape(
            product=topology.product.name,
            superpods=pods,
            servers=len(servers) // pods if is_even else len(servers),
            devices=servers[0] if is_even else servers,
            rdma=topology.has_rdma,
            network="" if topology.network is None else topology.network.name,
        )

    def __str__(self) -> str:
        if self.network:
            return self.network
        if isinstance(self.devices, tuple):
            shown = ", ".join(map(str, self.devices[:8]))
            more = ", ..." if len(self.devices) > 8 else ""
            return f"{self.product}, servers of {shown}{more} devices"
        pods = f"{self.superpods} x " if self.superpods > 1 else ""
        return f"{self.product}, {pods}{self.servers} x {self.devices}"


class Sample(Strict):
    """One size that was timed: the time of the winner, the choice of HCCL's rules and its time, or
    null where it was not timed.
    """

    bytes: Size
    simulated_us: Time
    hccl_executor: str
    hccl_levels: dict[str, str] = Field(default_factory=dict)
    hccl_us: Time | None

    @property
    def gain(self) -> float | None:
        """The time of HCCL's choice over that of the winner; None where it was not timed."""
        if self.hccl_us is None:
            return None
        return self.hccl_us / self.simulated_us if self.simulated_us else 1.0


class SizeRange(Strict):
    """Sizes from `from_bytes` up to the next range's, their winner, and the samples for it."""

    from_bytes: Size
    executor: str
    levels: dict[str, str] = Field(default_factory=dict)
    samples: Annotated[Listed[Sample], Field(min_length=1)]

    def is_hccl(self, sample: Sample) -> bool:
        """True if HCCL's rules choose the same at a sample."""
        return (self.executor, self.levels) == (sample.hccl_executor, sample.hccl_levels)

    @property
    def differs(self) -> bool:
        """True if HCCL's rules choose another executor at some sample."""
        return not all(self.is_hccl(sample) for sample in self.samples)


class Winner(Strict):
    """A sample and its winner."""

    executor: str
    levels: dict[str, str]
    sample: Sample


class TuningEntry(Strict):
    """One op on one topology, and its ranges of sizes, from 0 upwards.

    `cost` names one of the table's models, `network` says whether links were shared. `ruleset` is
    the release whose rules the samples say; empty in files from before there were several.
    """

    op: str
    dtype: str
    reduce_op: str | None
    mode: Literal["op_base", "graph"]
    deterministic: Literal["false", "true", "strict"]
    buffsize_mb: Count
    topology: Shape
    cost: str
    network: Literal["uncontended", "contended"]
    ruleset: str = ""
    ranges: Annotated[Listed[SizeRange], Field(min_length=1)]

    @model_serializer(mode="wrap")
    def _shortened(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out members that older files do not have."""
        found: dict[str, Any] = write(self)
        return {name: value for name, value in found.items() if name != "ruleset" or value}

    @field_validator("dtype", "reduce_op")
    @classmethod
    def _known(cls, name: str | None, info: ValidationInfo) -> str | None:
        """Refuse an unknown data type or reduce op."""
        what, known = _WORDS[str(info.field_name)]
        if name is not None and name not in known:
            context = {"what": what, "hint": did_you_mean(name, known)}
            raise PydanticCustomError("word", "{what}", context)
        return name

    @field_validator("ranges")
    @classmethod
    def _ascending(cls, ranges: tuple[SizeRange, ...]) -> tuple[SizeRange, ...]:
        """Refuse ranges that leave sizes out or overlap."""
        starts = [found.from_bytes for found in ranges]
        sizes = [sample.bytes for found in ranges for sample in found.samples]
        if starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
            raise PydanticCustomError(
                "ranges",
                "ranges that begin at 0 and ascend",
                {"hint": "from_bytes of the first is 0, every other one's is larger."},
            )
        if any(b <= a for a, b in pairwise(sizes)):
            raise PydanticCustomError(
                "samples", "samples in ascending order", {"hint": "Sort them by bytes."}
            )
        return ranges

    @property
    def key(self) -> tuple[str | int, ...]:
        """The values that calls with the same entry have in common."""
        shape = self.topology.model_dump_json()
        about = (self.op, self.reduce_op or "", self.dtype, self.mode, self.deterministic)
        return (*about, self.buffsize_mb, shape, self.ruleset)

    @property
    def winners(self) -> Iterator[Winner]:
        """The samples in ascending order, each with its winner."""
        for found in self.ranges:
            for sample in found.samples:
                yield Winner(executor=found.executor, levels=found.levels, sample=sample)

    def at(self, size: int) -> SizeRange:
        """Return the range of a size in bytes."""
        return next(found for found in reversed(self.ranges) if found.from_bytes <= size)

    def with_winners(self, winners: Iterable[Winner]) -> TuningEntry:
        """Return the entry with the ranges of these samples; of two of one size the later stays."""
        by_size = {winner.sample.bytes: winner for winner in winners}
        return self.model_copy(update={"ranges": tuple(ranges_of(by_size.values()))})

    def merged(self, new: TuningEntry) -> TuningEntry:
        """Return the samples of both, those of `new` where both have a size; only those of `new`
        where times are not of one model.
        """
        if (self.cost, self.network) != (new.cost, new.network):
            return new
        return new.with_winners([*self.winners, *new.winners])


def ranges_of(winners: Iterable[Winner]) -> Iterator[SizeRange]:
    """Yield the ranges of samples, neighbours with the same winner in one."""
    ordered = sorted(winners, key=lambda winner: winner.sample.bytes)
    last = -1
    for _, group in groupby(ordered, key=lambda winner: (winner.executor, winner.levels)):
        found = [*group]
        first = found[0].sample.bytes
        yield SizeRange(
            from_bytes=0 if last < 0 else math.isqrt(last * first) + 1,
            executor=found[0].executor,
            levels=found[0].levels,
            samples=tuple(winner.sample for winner in found),
        )
        last = found[-1].sample.bytes


class TuningTable(Strict):
    """Entries, and the cost models that they were timed with.

    The same entries give the same file, byte for byte.
    """

    costs: Listed[CostModel]
    entries: Listed[TuningEntry]

    @field_validator("entries")
    @classmethod
    def _known_costs(
        cls, entries: tuple[TuningEntry, ...], info: ValidationInfo
    ) -> tuple[TuningEntry, ...]:
        known = {cost.name for cost in info.data.get("costs", ())}
        missing = sorted({entry.cost for entry in entries} - known)
        if "costs" in info.data and missing:
            raise PydanticCustomError(
                "costs",
                "entries of the table's cost models",
                {"hint": f"Add the model {missing[0]} to costs."},
            )
        return entries

    @staticmethod
    def read(path: PathLike) -> TuningTable:
        """Read a file; FileError says in one sentence what is wrong with it."""
        data = read_file(path, MAX_BYTES, TABLE)
        return named(f"{format_path(path):.200}", TABLE, lambda: _parsed(data))

    def write(self, path: PathLike) -> None:
        """Write a file; FileError where that cannot be."""
        write_file(path, self.text().encode(), TABLE)

    def text(self) -> str:
        """Return the JSON document."""
        document = {"schema": SCHEMA, **self.model_dump(mode="json")}
        document["costs"] = [keyed_cost(cost) for cost in document["costs"]]
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def merged(self, new: TuningTable) -> TuningTable:
        """Return this table with the entries of another one, whose times win; as `joined`."""
        return TuningTable.joined([*self.costs, *new.costs], [*self.entries, *new.entries])

    @staticmethod
    def joined(costs: Iterable[CostModel], entries: Iterable[TuningEntry]) -> TuningTable:
        """Return the table of these entries; what comes later wins.

        Raises ParameterError where two cost models of one name are not the same.
        """
        models: dict[str, CostModel] = {}
        for cost in costs:
            if models.setdefault(cost.name, cost) != cost:
                raise ParameterError(
                    f"There are two different cost models named {cost.name}.",
                    "Give one of them another name, or save to another file.",
                )
        found: dict[tuple[str | int, ...], TuningEntry] = {}
        for entry in entries:
            mine = found.get(entry.key)
            found[entry.key] = entry if mine is None else mine.merged(entry)
        used = {entry.cost for entry in found.values()}
        return TuningTable(
            costs=tuple(models[name] for name in sorted(used)),
            entries=tuple(found[key] for key in sorted(found)),
        )


def _parsed(data: bytes) -> TuningTable:
    document = parse_document(data, TABLE)
    found = document.pop("schema", None) if isinstance(document, dict) else SCHEMA
    if found != SCHEMA:
        raise FileError(
            f"schema: expected {SCHEMA}, found {json.dumps(found)[:60]}.",
            "`hccl-py compare --table FILE` writes tuning tables.",
        )
    return checked(TuningTable, document)
