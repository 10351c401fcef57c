"""Algorithms of other tools: MSCCL XML files and execution plans of mscclpp. Both are imported for
a call, and both know their ranks, their op and how they are imported; so commands ask one of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from hccl_py.cli.sizes import first_size
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam

if TYPE_CHECKING:
    from hccl_py.msccl import Imported, Meaning, XmlAlgorithm
    from hccl_py.msccl.repetition import Repetition
    from hccl_py.mscclpp import ExecutionPlan, ImportedPlan

__all__ = ["Notation", "NotedCall", "notations"]


@dataclass(frozen=True)
class NotedCall:
    """What options say about the call: an op where the file says none, a data type, a reduction, a
    root.
    """

    op: str | None = None
    dtype: DataType = DataType.FP32
    reduce: ReduceOp | None = None
    root: int | None = None


class Notation(Protocol):
    """An algorithm of a file, and a call of it at any size."""

    @property
    def noun(self) -> str:
        """What it is, for sentences."""

    @property
    def name(self) -> str:
        """Its own name; may be empty."""

    @property
    def protocol(self) -> str:
        """The protocol that its threadblocks run."""

    @property
    def ranks(self) -> int:
        """How many GPUs it is for."""

    @property
    def op_name(self) -> str:
        """The op that it carries out; ParameterError where nobody says it."""

    @property
    def usual_size(self) -> int:
        """The data size of a call for which options give none."""

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call, whose data has `size` bytes or some more."""

    def imported(
        self, size: int, slice_bytes: int | None = None, *, repeats: bool = False
    ) -> Imported | ImportedPlan:
        """Import; what would be too large to be written out may repeat its passes."""

    def repetition(self, size: int, slice_bytes: int | None) -> Repetition | None:
        """Return what the call repeats, where it does."""


@dataclass(frozen=True)
class _Xml:
    """An MSCCL algorithm."""

    algorithm: XmlAlgorithm
    call: NotedCall
    noun = "MSCCL algorithm"

    @property
    def name(self) -> str:
        return self.algorithm.name

    @property
    def protocol(self) -> str:
        return self.algorithm.protocol

    @property
    def ranks(self) -> int:
        return self.algorithm.ranks

    @property
    def op_name(self) -> str:
        return self._meaning.op

    @property
    def usual_size(self) -> int:
        return first_size(None)

    @cached_property
    def _meaning(self) -> Meaning[XmlAlgorithm]:
        from hccl_py.msccl import meaning_of

        return meaning_of(self.algorithm, self.call.op)

    def op(self, size: int) -> OpParam:
        call = self.call
        return self._meaning.call(size, call.dtype, call.reduce, call.root).op

    def imported(
        self, size: int, slice_bytes: int | None = None, *, repeats: bool = False
    ) -> Imported:
        from hccl_py.msccl import import_algorithm

        call = (self.call.dtype, self.call.reduce, self.call.root)
        return import_algorithm(
            self.algorithm, self._meaning, size, *call, slice_bytes, repeats=repeats
        )

    def repetition(self, size: int, slice_bytes: int | None) -> Repetition | None:
        """Return it; defects of the algorithm are found where it is planned."""
        from hccl_py.msccl.checks import defects_of
        from hccl_py.msccl.repetition import Repetition

        if any(defect.is_fatal for defect in defects_of(self.algorithm, self.op_name)):
            return None
        call = self._meaning.call(size, self.call.dtype, self.call.reduce, self.call.root)
        return Repetition.of(self._meaning, call._replace(slice_bytes=slice_bytes))


@dataclass(frozen=True)
class _Plan:
    """An execution plan of mscclpp, whose pipelines are written out."""

    plan: ExecutionPlan
    call: NotedCall
    noun = "execution plan of mscclpp"

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def protocol(self) -> str:
        return self.plan.protocol

    @property
    def ranks(self) -> int:
        return self.plan.ranks

    @property
    def op_name(self) -> str:
        return self._meaning.op

    @property
    def usual_size(self) -> int:
        from hccl_py.mscclpp import usual_size

        return usual_size(self.plan, self.call.dtype)

    @cached_property
    def _meaning(self) -> Meaning[ExecutionPlan]:
        from hccl_py.mscclpp import meaning_of

        return meaning_of(self.plan, self.call.op)

    def op(self, size: int) -> OpParam:
        from hccl_py.mscclpp import call_of

        call = self.call
        return call_of(self.plan, self._meaning, size, call.dtype, call.reduce, call.root).op

    def imported(
        self, size: int, slice_bytes: int | None = None, *, repeats: bool = False
    ) -> ImportedPlan:
        from hccl_py.mscclpp import import_plan

        call = (self.call.dtype, self.call.reduce, self.call.root)
        return import_plan(self.plan, self._meaning, size, *call)

    def repetition(self, size: int, slice_bytes: int | None) -> Repetition | None:
        return None


def notations(
    name: str, call: NotedCall, max_bytes: int | None = None
) -> list[tuple[int, Notation]]:
    """Return the algorithms that an argument means, with their numbers from 1."""
    from hccl_py.msccl import read_algorithms
    from hccl_py.mscclpp import read_plan

    if name.lower().endswith(".json"):
        return [(1, _Plan(read_plan(name, max_bytes), call))]
    match = re.fullmatch(r"(.*\.xml)#([0-9]{1,6})", name, re.IGNORECASE | re.DOTALL)
    found = read_algorithms(match[1] if match else name, max_bytes)
    if match is None:
        return [(number, _Xml(algorithm, call)) for number, algorithm in enumerate(found, 1)]
    number = int(match[2])
    if not 1 <= number <= len(found):
        count = f"{len(found)} algorithms" if len(found) > 1 else "one algorithm"
        raise ParameterError(
            f"{format_path(match[1])} has {count}, and no number {number}.", "Count from 1."
        )
    return [(number, _Xml(found[number - 1], call))]
