"""The importer of custom ops in C++: a folder is built once and recorded at every size."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from hccl_py.call.call_spec import CallSpec
from hccl_py.call.config import Config
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType
from hccl_py.importers import Imported, Importer, ImportOptions, Source, SourceCall, SourceEntry

if TYPE_CHECKING:
    from hccl_interop.cpp.recording import CustomOp
    from hccl_py.call.op_param import OpParam
    from hccl_py.communicator.communicator import Communicator

_USUAL_BYTES = 1 << 20


@dataclass(kw_only=True)
class CppSource(Source):
    """A custom op, built; its calls are recorded in processes of their own."""

    custom_op: CustomOp
    spec: CallSpec
    options: ImportOptions
    is_fixed = False
    needs_comm = True
    topology = "ascend950"

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters of the call, as C++ code is called."""
        return as_called(self.spec.sized(size).param(comm.size), comm.size)

    def imported(self, call: SourceCall) -> Imported:
        """Record the op on the ranks of the call."""
        from hccl_interop.cpp.recording import DEFAULT_BUFFER, CppCall

        comm = call.comm
        assert comm is not None
        op = self.op(call.size, comm)
        self.spec.operator.check(op, comm.topology)
        buffsize = self.options.buffsize
        ccl_bytes = DEFAULT_BUFFER if buffsize is None else buffsize << 20
        mode = self.spec.config.expansion(comm.topology.product, op.name)
        recorded = CppCall(op, comm.topology, ccl_bytes, self.options.calls, mode)
        return replace(self.custom_op.record(recorded), title=self.title)


class CppImporter(Importer):
    """Claims folders."""

    noun = "custom op in C++"
    takes = frozenset(
        {
            *("cpp_op", "calls", "minbytes", "dtype", "reduce_op", "root", "buffsize"),
            *("ranks", "servers", "devices", "superpods", "topology"),
        }
    )
    order = 50

    def claims(self, path: str) -> bool:
        """Return True for a folder."""
        return os.path.isdir(path)

    def noun_of(self, path: str) -> str:
        """Return the noun of a folder with sources, or of any other."""
        from hccl_interop.cpp.project import find_project
        from hccl_py.errors import HcclError

        try:
            find_project(path)
        except HcclError:
            return "directory"
        return self.noun

    def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
        """Return the one op of the folder."""
        return [SourceEntry(path, partial(self._opened, path, options))]

    def _opened(self, path: str, options: ImportOptions) -> Source:
        """Build the folder; raises CompilerError with the compiler's output."""
        from hccl_interop.cpp.build import Builder
        from hccl_interop.cpp.project import find_project
        from hccl_interop.cpp.recording import CustomOp

        custom_op = CustomOp(find_project(path), Builder.from_environment())
        _ = custom_op.built
        spec = CallSpec(
            custom_op.op_name() if options.op is None else options.op,
            dtype=(options.dtype or DataType.FP32).value,
            reduce_op=None if options.reduce is None else options.reduce.spelling,
            root=options.root,
            config=Config.load(buffsize_mb=options.buffsize),
        )
        return CppSource(
            noun=self.noun,
            name=format_path(path),
            title=path,
            ranks=None,
            op_name=spec.operator.name,
            usual_size=_USUAL_BYTES if options.size is None else options.size,
            executor=custom_op.project.title,
            custom_op=custom_op,
            spec=spec,
            options=options,
        )


def as_called(op: OpParam, ranks: int) -> OpParam:
    """Return the parameters as HCCL's C signatures imply: one buffer in a broadcast, and one pair
    for every two ranks in send_recv.
    """
    if op.name == "broadcast":
        return replace(op, in_place=True)
    if op.name == "send_recv":
        return replace(op, pairs=tuple((r, r + 1) for r in range(0, ranks - 1, 2)))
    return op
