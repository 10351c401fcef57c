"""Execution plans of mscclpp as sources of commands."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from hccl_interop.importers.algorithm_source import AlgorithmSource
from hccl_py.enums import DataType
from hccl_py.importers import Imported, Importer, ImportOptions, Source, SourceCall, SourceEntry

if TYPE_CHECKING:
    from hccl_interop.common.meaning import Meaning
    from hccl_interop.mscclpp.plan import ExecutionPlan
    from hccl_py.call.op_param import OpParam
    from hccl_py.communicator.communicator import Communicator


class PlanSource(AlgorithmSource):
    """An execution plan, for calls of any size."""

    @staticmethod
    def usual(meaning: Meaning[ExecutionPlan], dtype: DataType) -> int:
        from hccl_interop.mscclpp.call import usual_size_of

        return usual_size_of(meaning.algorithm, dtype)

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters of the call, of whole aligned chunks."""
        from hccl_interop.mscclpp.call import call_of

        return call_of(self.meaning.algorithm, self.meaning, size, *self.data).op

    def imported(self, call: SourceCall) -> Imported:
        """Import the plan; its pipelines are written out."""
        from hccl_interop.mscclpp.imported import import_plan

        return import_plan(self.meaning.algorithm, self.meaning, call.size, *self.data)


class MscclppImporter(Importer):
    """Claims JSON files that begin as execution plans do."""

    noun = "execution plan of mscclpp"
    takes = frozenset({"cpp_op", "minbytes", "dtype", "reduce_op", "root"})
    order = 10

    def claims(self, path: str) -> bool:
        """Return True for a .json file with the keys of a plan."""
        if not (path.lower().endswith(".json") and os.path.isfile(path)):
            return False
        from hccl_interop.mscclpp.json_text import is_plan_file

        return is_plan_file(path)

    def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
        """Return the one plan of the file."""
        return [SourceEntry(path, partial(self._opened, path, options))]

    def _opened(self, path: str, options: ImportOptions) -> Source:
        from hccl_interop.common.meaning import meaning_of
        from hccl_interop.mscclpp.json_text import read_plan

        meaning = meaning_of(read_plan(path, options.max_bytes), options.op)
        return PlanSource.of(self.noun, path, path, meaning, options)
