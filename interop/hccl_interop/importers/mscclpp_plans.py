"""Execution plans of mscclpp as sources of commands."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType
from hccl_py.importers import Imported, Importer, ImportOptions, Source, SourceEntry

if TYPE_CHECKING:
    from hccl_interop.common.meaning import Meaning
    from hccl_interop.mscclpp.plan import ExecutionPlan
    from hccl_py.call.op_param import OpParam
    from hccl_py.clocks.cost import CostModel
    from hccl_py.communicator.communicator import Communicator


@dataclass(kw_only=True)
class PlanSource(Source):
    """An execution plan, for calls of any size."""

    plan: ExecutionPlan
    meaning: Meaning[ExecutionPlan]
    options: ImportOptions
    is_fixed = False

    def describe(self) -> str | None:
        """Return a phrase for a call whose op is not known."""
        return self.meaning.describe()

    @cached_property
    def _dtype(self) -> DataType:
        return self.options.dtype or DataType.FP32

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters of the call, of whole aligned chunks."""
        from hccl_interop.mscclpp.call import call_of

        options = self.options
        call = call_of(self.plan, self.meaning, size, self._dtype, options.reduce, options.root)
        return call.op

    def imported(
        self,
        size: int,
        comm: Communicator | None = None,
        cost: CostModel | None = None,
        *,
        repeats: bool = False,
    ) -> Imported:
        """Import the plan at a size; its pipelines are written out."""
        from hccl_interop.mscclpp.imported import import_plan

        options = self.options
        return import_plan(self.plan, self.meaning, size, self._dtype, options.reduce, options.root)


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
        from hccl_interop.mscclpp.call import usual_size_of
        from hccl_interop.mscclpp.json_text import read_plan

        plan = read_plan(path, options.max_bytes)
        meaning = meaning_of(plan, options.op)
        size = usual_size_of(plan, options.dtype or DataType.FP32)
        return PlanSource(
            noun=self.noun,
            name=format_path(path),
            title=path,
            ranks=plan.ranks,
            op_name=meaning.op,
            has_op=not meaning.unknown,
            usual_size=size if options.size is None else options.size,
            executor=plan.name or self.noun,
            plan=plan,
            meaning=meaning,
            options=options,
        )
