"""An algorithm of another tool where a command takes an op or a program: an MSCCL XML file or an
execution plan of mscclpp, imported for the call that the options describe. `FILE.xml#2` is the
second algorithm of a file that has several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hccl_py.cli.notations import Notation, NotedCall, notations
from hccl_py.cli.options import OF_SELECTION, CallOptions, ProgramOptions, given
from hccl_py.cli.placing import placed
from hccl_py.cli.request import Request, communicator
from hccl_py.cli.sizes import first_size
from hccl_py.communicator import Plan
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.platforms import Schedule
from hccl_py.selection import Selection

if TYPE_CHECKING:
    from hccl_py.cli.options import Sizes
    from hccl_py.msccl import Imported
    from hccl_py.msccl.repetition import Repetition
    from hccl_py.mscclpp import ImportedPlan

__all__ = ["AlgorithmCalls", "AlgorithmRequest"]

_NOT_OF_ALGORITHMS = ("ranks", *OF_SELECTION, "buffsize", "calls")
"""Options of a call that the file says itself, or that other tools do not have."""


class AlgorithmRequest(Request):
    """A call of an algorithm's op, imported at every size that is asked for.

    Its ranks are put where the options say, by default on as few servers as hold them.
    """

    is_fixed = False

    def __init__(self, options: ProgramOptions, schedule: Schedule | None = None) -> None:
        self.name = format_path(options.op)
        call = NotedCall(
            op=options.cpp_op,
            dtype=DataType.parse(options.dtype),
            reduce=None if options.reduce_op is None else ReduceOp.parse(options.reduce_op),
            root=options.root,
        )
        self._algorithm = _only(options.op, call)
        _refuse_options(options, self._algorithm.noun)
        self._sizes: dict[OpParam, int] = {}
        self._known: dict[OpParam, Imported | ImportedPlan] = {}
        op_name = self._algorithm.op_name
        topology = placed(self._algorithm.ranks, options, self._algorithm.noun)
        comm = communicator(options, topology, schedule)
        super().__init__(op_name, comm, options.platform)
        given_size = options.minbytes is not None
        self.minbytes = first_size(options.minbytes) if given_size else self._algorithm.usual_size

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call, whose data has `size` bytes or some more."""
        op = self._algorithm.op(size)
        self._sizes.setdefault(op, size)
        return op

    def select(self, op: OpParam) -> Selection:
        """Return a selection of nothing but the algorithm."""
        noun = self._algorithm.noun
        return Selection(
            op=op.name,
            executor=self._algorithm.name or noun,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is the {noun} {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Import; ParameterError where no program can be made of the algorithm."""
        return Plan(op, self.select(op), self.recording(op).require())

    def recording(self, op: OpParam) -> Imported | ImportedPlan:
        """Import, once for every call."""
        if op not in self._known:
            self._known[op] = self._algorithm.imported(self._sizes[op], self._slice_bytes())
        return self._known[op]

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return what the call repeats."""
        return self._algorithm.repetition(self._sizes[op], self._slice_bytes())

    def _slice_bytes(self) -> int | None:
        """Return the slices in which the cost model lets messages stream."""
        if self.cost is None:
            return None
        return self.cost.protocols.of(self._algorithm.protocol).slice_bytes

    def check_sizes(self, sizes: Sizes) -> None:
        """Take any range of sizes."""

    def describe_executor(self, selection: Selection) -> str:
        """Return where the algorithm is from."""
        return f"{self._algorithm.noun} {self.name}"


@dataclass(frozen=True)
class AlgorithmCalls:
    """The call for which `check` imports algorithms; without a size, the usual one of each."""

    call: NotedCall = field(default_factory=NotedCall)
    size: int | None = None

    def imported(
        self, name: str, max_bytes: int | None
    ) -> Iterator[tuple[str, Imported | ImportedPlan]]:
        """Yield every algorithm of a file, by the name of its report; calls that are too large to
        be written out repeat their passes.
        """
        found = notations(name, self.call, max_bytes)
        for number, algorithm in found:
            title = name if len(found) == 1 else f"{name}#{number}"
            yield title, algorithm.imported(self._size(algorithm), repeats=True)

    def only(self, name: str, max_bytes: int | None) -> Imported | ImportedPlan:
        """Return the one algorithm that a name means."""
        algorithm = _only(name, self.call, max_bytes)
        return algorithm.imported(self._size(algorithm))

    def _size(self, algorithm: Notation) -> int:
        return algorithm.usual_size if self.size is None else self.size


def _only(name: str, call: NotedCall, max_bytes: int | None = None) -> Notation:
    """Return the algorithm of a file; ParameterError where it has several and none is named."""
    found = notations(name, call, max_bytes)
    if len(found) > 1:
        names = ", ".join(repr(algorithm.name)[:40] for _, algorithm in found[:4])
        raise ParameterError(
            f"{format_path(name)} has {len(found)} algorithms: {names}.",
            f"Name one by its number: {format_path(name)}#1.",
        )
    return found[0][1]


def _refuse_options(options: CallOptions, noun: str) -> None:
    for option in given(options, _NOT_OF_ALGORITHMS):
        raise ParameterError(
            f"{option} does not go with an {noun}, which says that itself.",
            f"Leave it out of what is said about {format_path(options.op)}.",
        )
