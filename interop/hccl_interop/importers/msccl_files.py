"""MSCCL XML files as sources of commands; `FILE.xml#2` is the second algorithm of a file."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from hccl_interop.importers.algorithm_source import AlgorithmSource
from hccl_py.documents.disk import check_place, format_path, write_file
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.importers import (
    Imported,
    Importer,
    ImportOptions,
    Source,
    SourceCall,
    SourceEntry,
    WriterOptions,
)

if TYPE_CHECKING:
    from hccl_interop.common.meaning import Meaning
    from hccl_interop.msccl.algorithm import XmlAlgorithm
    from hccl_interop.msccl.repetition import RepeatedPasses
    from hccl_py.call.op_param import OpParam
    from hccl_py.clocks.cost import CostModel
    from hccl_py.communicator.communicator import Communicator
    from hccl_py.program.program import Program

_LARGEST = 1 << 60


class XmlSource(AlgorithmSource):
    """An algorithm of an MSCCL XML file, for calls of any size."""

    @staticmethod
    def usual(meaning: Meaning[XmlAlgorithm], dtype: DataType) -> int:
        from hccl_interop.common.meaning import usual_size

        algorithm = meaning.algorithm
        step = meaning.call(1, dtype).chunk * algorithm.chunks
        low, high = max(algorithm.min_bytes or 0, 0), max(algorithm.max_bytes or 0, 0)
        return usual_size(low, high or _LARGEST, step)

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters of the call, of whole chunks."""
        return self.meaning.call(size, *self.data).op

    def imported(self, call: SourceCall) -> Imported:
        """Import the algorithm."""
        from hccl_interop.msccl.imported import import_algorithm

        algorithm, slices = self.meaning.algorithm, self._slices(call.cost)
        return import_algorithm(
            *(algorithm, self.meaning, call.size, *self.data, *slices), repeats=call.repeats
        )

    def repetition(self, size: int, cost: CostModel | None = None) -> RepeatedPasses | None:
        """Return the repeated passes; an algorithm with defects has none."""
        from hccl_interop.msccl.checks import defects_of
        from hccl_interop.msccl.repetition import RepeatedPasses

        if any(defect.is_fatal for defect in defects_of(self.meaning.algorithm, self.meaning.op)):
            return None
        call = self.meaning.call(size, *self.data)
        slice_bytes, slices = self._slices(cost)
        call = call._replace(slice_bytes=slice_bytes, slices=slices)
        return RepeatedPasses.of(self.meaning, call)

    def _slices(self, cost: CostModel | None) -> tuple[int | None, int | None]:
        """Return the bytes of the slices in which messages stream, and the most of a message."""
        if cost is None:
            return None, None
        protocol = cost.protocols.of(self.meaning.algorithm.protocol)
        return protocol.slice_bytes, protocol.slices


class MscclImporter(Importer):
    """Claims `.xml` and `.xml#N`."""

    noun = "MSCCL algorithm"
    takes = frozenset({"cpp_op", "minbytes", "dtype", "reduce_op", "root"})
    writer_takes = frozenset({"proto"})

    def claims(self, path: str) -> bool:
        """Return True for the suffix of XML files, with or without a number."""
        return re.search(r"\.xml(#[0-9]+)?$", path, re.IGNORECASE) is not None

    def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
        """Read the file; raises ProgramFileError for text that is no algorithm, ParameterError for
        a number that the file does not have.
        """
        from hccl_interop.msccl.xml_text import read_algorithms

        match = re.fullmatch(r"(.*\.xml)#([0-9]{1,6})", path, re.IGNORECASE | re.DOTALL)
        file = path if match is None else match[1]
        algorithms = read_algorithms(file, options.max_bytes)
        numbers = range(1, len(algorithms) + 1) if match is None else [int(match[2])]
        if numbers[-1] > len(algorithms) or numbers[0] < 1:
            count = f"{len(algorithms)} algorithms" if len(algorithms) > 1 else "one algorithm"
            raise ParameterError(
                f"{format_path(file)} has {count}, and no number {numbers[0]}.", "Count from 1."
            )
        found = []
        for number in numbers:
            algorithm = algorithms[number - 1]
            title = path if len(numbers) == 1 else f"{path}#{number}"
            opened = partial(self._opened, path, title, algorithm, options)
            found.append(SourceEntry(title, opened, repr(algorithm.name)))
        return found

    def _opened(
        self, path: str, title: str, algorithm: XmlAlgorithm, options: ImportOptions
    ) -> Source:
        from hccl_interop.common.meaning import meaning_of

        meaning = meaning_of(algorithm, options.op)
        return XmlSource.of(self.noun, path, title, meaning, options)

    def writes(self, path: str) -> bool:
        """Return True for `.xml`."""
        return path.lower().endswith(".xml")

    def check_target(self, path: str) -> None:
        """Refuse a path in whose place another kind of file stands."""
        from hccl_interop.msccl.xml_text import MSCCL

        check_place(path, MSCCL)

    def write(self, program: Program, path: str, options: WriterOptions) -> None:
        """Write the program as an algorithm of a protocol, Simple by default."""
        from hccl_interop.msccl.export import to_xml
        from hccl_interop.msccl.xml_text import MSCCL

        text = to_xml(program, protocol=options.proto)
        write_file(path, text.encode("utf-8", "backslashreplace"), MSCCL)
