"""An MSCCL XML file where a command takes an op or a program: imported for the call that the
options describe. `FILE.xml#2` is the second algorithm of a file that has several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    from hccl_py.msccl import Imported, XmlAlgorithm
    from hccl_py.msccl.repetition import Repetition

__all__ = ["AlgorithmCalls", "AlgorithmRequest", "algorithm_named"]

NOUN = "MSCCL algorithm"

_NOT_OF_ALGORITHMS = ("ranks", *OF_SELECTION, "buffsize", "calls")
"""Options of a call that the file says itself, or that MSCCL does not have."""


class AlgorithmRequest(Request):
    """A call of an algorithm's op, imported at every size that is asked for.

    Its ranks are put where the options say, by default on as few servers as hold them.
    """

    is_fixed = False

    def __init__(self, options: ProgramOptions, schedule: Schedule | None = None) -> None:
        from hccl_py.msccl import meaning_of

        self.name = format_path(options.op)
        _refuse_options(options)
        self.algorithm = algorithm_named(options.op)
        self._meaning = meaning_of(self.algorithm, options.cpp_op)
        self._dtype = DataType.parse(options.dtype)
        self._reduce = None if options.reduce_op is None else ReduceOp.parse(options.reduce_op)
        self._root = options.root
        self._sizes: dict[OpParam, int] = {}
        self._known: dict[OpParam, Imported] = {}
        topology = placed(self.algorithm.ranks, options, NOUN)
        comm = communicator(options, topology, schedule)
        super().__init__(self._meaning.op, comm, options.platform)
        self.minbytes = first_size(options.minbytes)

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call, whose data has `size` bytes or some more."""
        op = self._meaning.call(size, self._dtype, self._reduce, self._root).op
        self._sizes.setdefault(op, size)
        return op

    def select(self, op: OpParam) -> Selection:
        """Return a selection of nothing but the algorithm."""
        return Selection(
            op=op.name,
            executor=self.algorithm.name or NOUN,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is the {NOUN} {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Import; ParameterError where no program can be made of the algorithm."""
        return Plan(op, self.select(op), self.recording(op).require())

    def recording(self, op: OpParam) -> Imported:
        """Import, once for every call."""
        from hccl_py.msccl import import_algorithm

        if op not in self._known:
            self._known[op] = import_algorithm(
                self.algorithm,
                self._meaning,
                self._sizes[op],
                self._dtype,
                self._reduce,
                self._root,
                self._slice_bytes(),
            )
        return self._known[op]

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return what the call repeats; defects of the algorithm are found where it is planned."""
        from hccl_py.msccl.checks import defects_of
        from hccl_py.msccl.repetition import Repetition

        if any(defect.is_fatal for defect in defects_of(self.algorithm, self._meaning.op)):
            return None
        call = self._meaning.call(self._sizes[op], self._dtype, self._reduce, self._root)
        return Repetition.of(self._meaning, call._replace(slice_bytes=self._slice_bytes()))

    def _slice_bytes(self) -> int | None:
        """Return the slices in which the cost model lets messages stream."""
        if self.cost is None:
            return None
        return self.cost.protocols.of(self.algorithm.protocol).slice_bytes

    def check_sizes(self, sizes: Sizes) -> None:
        """Take any range of sizes."""

    def describe_executor(self, selection: Selection) -> str:
        """Return where the algorithm is from."""
        return f"{NOUN} {self.name}"


@dataclass(frozen=True)
class AlgorithmCalls:
    """The call for which `check` imports algorithms."""

    op: str | None = None
    size: int = 1 << 20
    dtype: DataType = DataType.FP32
    reduce: ReduceOp | None = None
    root: int | None = None

    def imported(self, name: str, max_bytes: int | None) -> Iterator[tuple[str, Imported]]:
        """Yield every algorithm of a file, by the name of its report; calls that are too large to
        be written out repeat their passes.
        """
        found = _algorithms(name, max_bytes)
        for number, algorithm in found:
            title = name if len(found) == 1 else f"{name}#{number}"
            yield title, self.of(algorithm, repeats=True)

    def only(self, name: str, max_bytes: int | None) -> Imported:
        """Return the one algorithm that a name means."""
        return self.of(algorithm_named(name, max_bytes))

    def of(self, algorithm: XmlAlgorithm, *, repeats: bool = False) -> Imported:
        """Import an algorithm."""
        from hccl_py.msccl import import_algorithm, meaning_of

        meaning = meaning_of(algorithm, self.op)
        return import_algorithm(
            algorithm,
            meaning,
            self.size,
            self.dtype,
            self.reduce,
            self.root,
            repeats=repeats,
        )


def algorithm_named(name: str, max_bytes: int | None = None) -> XmlAlgorithm:
    """Return the algorithm of a file; ParameterError where it has several and none is named."""
    found = _algorithms(name, max_bytes)
    if len(found) > 1:
        names = ", ".join(repr(algorithm.name)[:40] for _, algorithm in found[:4])
        raise ParameterError(
            f"{format_path(name)} has {len(found)} algorithms: {names}.",
            f"Name one by its number: {format_path(name)}#1.",
        )
    return found[0][1]


def _algorithms(name: str, max_bytes: int | None) -> list[tuple[int, XmlAlgorithm]]:
    """Return the algorithms that a name means, with their numbers from 1."""
    from hccl_py.msccl import read_algorithms

    match = re.fullmatch(r"(.*\.xml)#([0-9]{1,6})", name, re.IGNORECASE | re.DOTALL)
    found = read_algorithms(match[1] if match else name, max_bytes)
    if match is None:
        return list(enumerate(found, 1))
    number = int(match[2])
    if not 1 <= number <= len(found):
        count = f"{len(found)} algorithms" if len(found) > 1 else "one algorithm"
        raise ParameterError(
            f"{format_path(match[1])} has {count}, and no number {number}.", "Count from 1."
        )
    return [(number, found[number - 1])]


def _refuse_options(options: CallOptions) -> None:
    for option in given(options, _NOT_OF_ALGORITHMS):
        raise ParameterError(
            f"{option} does not go with an {NOUN}, which says that itself.",
            f"Leave it out of what is said about {format_path(options.op)}.",
        )
