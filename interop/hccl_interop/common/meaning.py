"""The op that an algorithm carries out, and the parameters of a call of it at a data size.

Runtimes know collectives by name. One that is `custom` gets its meaning from the caller:
an op's name, a JSON file with an op's object, or else from a word in the algorithm's own name.
Where none of these says it, the meaning is open: the program has no op, and its results are not
judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, InPlace, ReduceOp
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.formats.op import op_from
from hccl_py.formats.op_file import AMOUNTS, op_members

_NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "alltonext": "send_recv",
    "sendrecv": "send_recv",
}
"""Ops by the names of MSCCL and mscclpp, signs left out; one before another that it contains."""

_USUAL = 1 << 20

_NOTHING = "send_recv"
"""The op in whose parameters programs without a known op keep their data type and their size."""

_STATE = "--op OP states it, or --op FILE.json with the op's object, amounts in chunks"


class Described(Protocol):
    """An algorithm of another tool: an MSCCL XML file, or a plan of mscclpp. `chunks` is the number
    of parts into which the larger one of input and output is cut.
    """

    @property
    def name(self) -> str:
        """Its own name."""

    @property
    def collective(self) -> str:
        """The collective, in the tool's words."""

    @property
    def ranks(self) -> int:
        """The number of GPUs."""

    @property
    def chunks(self) -> int:
        """The number of parts."""

    @property
    def inplace(self) -> bool:
        """True if it is for calls in place."""

    @property
    def outofplace(self) -> bool:
        """True if it is for other calls."""

    @property
    def line(self) -> int:
        """The line at which it begins."""

    def source(self, line: int) -> str:
        """Return a line of the file as findings name it."""


A = TypeVar("A", bound=Described)


class MscclCall(NamedTuple):
    """A call of an algorithm's op, and the bytes of its chunks. Without `has_op` the op is not
    known and stands for a data type and a size. Messages come in slices of `slice_bytes`, whole
    ones where it is None, and in at most so many `slices`.
    """

    op: OpParam
    chunk: int
    slice_bytes: int | None = None
    slices: int | None = None
    has_op: bool = True


@dataclass(frozen=True)
class Meaning(Generic[A]):
    """The op, with amounts in chunks: `members` are those of an op's object in program files; none
    where the op is not known, and `unknown` says why.
    """

    algorithm: A
    members: Mapping[str, Any] = field(default_factory=dict)
    place: str = "op"
    unknown: str = ""

    @property
    def op(self) -> str:
        """The name of the op; that which stands in place of one that is not known."""
        return str(self.members.get("name", _NOTHING))

    def describe(self) -> str | None:
        """Return a phrase for calls of an op that is not known; None for others."""
        return f"an op that is not known: {self.unknown}" if self.unknown else None

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on the op that is not known."""
        if not self.unknown:
            return ()
        apart = ", and IN and OUT are taken for memories of their own"
        return (f"The op is open: {self.unknown}{apart * self.algorithm.inplace}; {_STATE}.",)

    def call(
        self, size: int, dtype: DataType, reduce: ReduceOp | None = None, root: int | None = None
    ) -> MscclCall:
        """Return a call whose data has `size` bytes or, where these are no whole chunks, as many
        more as it takes: all chunks are alike.

        ParameterError for a reduce op or a root where the op has none, and for a root that is no
        rank.
        """
        if self.unknown:
            return self._open_call(size, dtype, reduce, root)
        facts, ranks = OPS[self.op], self.algorithm.ranks
        if reduce is not None and not facts.reduces:
            raise ParameterError(f"{self.op} has no reduce op to choose.", "Leave it out.")
        if root is not None and not facts.rooted:
            raise ParameterError(f"{self.op} has no root.", "Leave -r/--root out.")
        if root is not None and not 0 <= root < ranks:
            hint = f"The algorithm has ranks 0 to {ranks - 1}."
            raise ParameterError(f"Root {root} is out of range.", hint)
        chunk = self._chunk(size, dtype)
        document = self._sized(chunk)
        document |= {"dtype": dtype.value, "in_place": self.in_place}
        if facts.reduces:
            document["reduce"] = (reduce or ReduceOp.SUM).spelling
        if facts.rooted:
            document["root"] = self._root(document) if root is None else root
        return MscclCall(op_from(document, ranks, self.place), chunk * dtype.itemsize)

    def _open_call(
        self, size: int, dtype: DataType, reduce: ReduceOp | None, root: int | None
    ) -> MscclCall:
        """Return a call of an op that is not known: a data type, and elements for its size."""
        for option, given in (("-o/--reduce-op", reduce), ("-r/--root", root)):
            if given is not None:
                raise ParameterError(
                    f"{option} is about an op, and the op is open: {self.unknown}.",
                    "Name it with --op, or leave the option out.",
                )
        chunk = self._chunk(size, dtype)
        op = OpParam(_NOTHING, self.algorithm.chunks * chunk, dtype)
        return MscclCall(op, chunk * dtype.itemsize, has_op=False)

    def _root(self, document: Mapping[str, Any]) -> int:
        """Return the root that an op's object or the algorithm's name says, else 0."""
        stated = re.search(r"root[^a-z0-9]*([0-9]{1,9})", self.algorithm.name.lower())
        if "root" in document or stated is None:
            return int(document.get("root", 0))
        root, ranks = int(stated[1]), self.algorithm.ranks
        if root >= ranks:
            raise ParameterError(
                f"{self.algorithm.source(self.algorithm.line)}: the name says root {root}, and the "
                f"algorithm has ranks 0 to {ranks - 1}.",
                "Say the root: -r.",
            )
        return root

    @property
    def in_place(self) -> bool | str:
        """The placement of the algorithm where it runs in place only; False where it need not."""
        if not self.algorithm.inplace or self.algorithm.outofplace or self.unknown:
            return False
        return self.placement.value

    @property
    def placement(self) -> InPlace:
        """The memory that IN and OUT share in NCCL's calls in place."""
        return InPlace.SLOT if OPS[self.op].own_slot else InPlace.START

    def _chunk(self, size: int, dtype: DataType) -> int:
        """Return the elements of a chunk."""
        chunks, ranks = self.algorithm.chunks, self.algorithm.ranks
        whole = ranks // gcd(ranks, chunks) if OPS[self.op].has_slots else 1
        wanted = max(1, -(-size // (chunks * dtype.itemsize)))
        return -(-wanted // whole) * whole

    def _sized(self, chunk: int) -> dict[str, Any]:
        """Return the members with amounts in elements."""
        found = {
            name: _scaled(value, chunk) if name in AMOUNTS else value
            for name, value in self.members.items()
        }
        if "pairs" in found and isinstance(found["pairs"], list):
            found["pairs"] = [_pair(pair, chunk) for pair in found["pairs"]]
        if "count" not in found:
            slots = self.algorithm.ranks if OPS[self.op].has_slots else 1
            found["count"] = self.algorithm.chunks * chunk // slots
        return found


def usual_size(low: int, high: int, step: int) -> int:
    """Return the data size of a call that states none, in whole steps: 1 MiB, or the nearest of the
    sizes from `low` to `high` for which an algorithm is.
    """
    size = max(low, min(_USUAL, high))
    rounded = max(step, -(-size // step) * step)
    return rounded - step if high < rounded and step < rounded else rounded


def _scaled(value: object, chunk: int) -> object:
    if isinstance(value, list):
        return [_scaled(item, chunk) for item in value]
    return value * chunk if type(value) is int else value


def _pair(pair: object, chunk: int) -> object:
    if isinstance(pair, list) and len(pair) == 3:
        return [*pair[:2], _scaled(pair[2], chunk)]
    return pair


def meaning_of(algorithm: A, op: str | None = None) -> Meaning[A]:
    """Return the meaning of an algorithm: that of `op`, the name of an op or of a JSON file; else
    that of the algorithm's own collective; an open one where neither is known.

    ParameterError for a name that is no op's, FileError for a JSON file that holds no op.
    """
    if op is not None and op.lower().endswith(".json"):
        return Meaning(algorithm, op_members(op, algorithm.ranks), f"{format_path(op):.200}: op")
    if op is not None:
        if op not in OPS:
            hint = did_you_mean(op, OPS)
            raise ParameterError(f"--op {op!r} is no op, and no JSON file of one.", hint)
        return _named(algorithm, op)
    known = _plain(algorithm.collective)
    if known in _NAMES:
        return _named(algorithm, _NAMES[known])
    inside = _plain(algorithm.name)
    found = next((name for name in _NAMES if name in inside), None)
    if known == "custom" and found is not None:
        return _named(algorithm, _NAMES[found], is_next=found == "alltonext")
    return Meaning(algorithm, unknown=f"the collective is {algorithm.collective!r:.60}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _named(algorithm: A, op: str, *, is_next: bool = False) -> Meaning[A]:
    members: dict[str, Any] = {"name": op}
    if is_next:  # every rank to the next one, the last one to none
        members["pairs"] = [[rank, rank + 1] for rank in range(algorithm.ranks - 1)]
    return Meaning(algorithm, members)
