"""The importer of Chakra traces: the job of a trace, with sizes and without addresses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_py.documents.disk import format_path
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
    from hccl_interop.chakra.build import Roofline
    from hccl_interop.chakra.values import Trace
    from hccl_py.call.op_param import OpParam
    from hccl_py.communicator.communicator import Communicator
    from hccl_py.program.program import Program


@dataclass(kw_only=True)
class TraceSource(Source):
    """The job of a trace; options choose the executors of its calls."""

    trace: Trace
    dtype: DataType
    roofline: Roofline | None
    buffered: bool
    needs_comm = True
    has_addresses = False
    last: tuple[Communicator, Imported] | None = None
    """The communicator of the last call, and the job on it."""

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the op that stands for a job."""
        return self.imported(SourceCall(size, comm)).require().op

    def imported(self, call: SourceCall) -> Imported:
        """Return the program of the job; its calls are planned on the ranks of the call."""
        from hccl_interop.chakra.build import job_of

        comm = call.comm
        assert comm is not None
        if self.last is None or self.last[0] is not comm:
            job = job_of(self.trace, comm, self.dtype, self.roofline, buffered=self.buffered)
            self.last = comm, Imported(self.title, job.program())
        return self.last[1]

    def describe(self) -> str | None:
        """Return the size of the trace."""
        nodes, ranks = self.trace.node_count, len(self.trace.ranks)
        of_ranks = f"{ranks} rank{'s' if ranks > 1 else ''}"
        return f"{self.noun} {self.name}: {nodes} node{'s' if nodes > 1 else ''} on {of_ranks}"

    def describe_executor(self, program: Program | None) -> str:
        """Return the number of calls, and their streams."""
        from hccl_py.jobs import JobProgram

        assert isinstance(program, JobProgram)
        names, calls = program.stream_names, len(program.calls_run)
        rest = f" and {len(names) - 8} more" if len(names) > 8 else ""
        of_calls = f"{calls} call{'s' if calls != 1 else ''}"
        return f"{of_calls}, streams {', '.join(names[:8])}{rest}"


class ChakraImporter(Importer):
    """Claims folders with .et files, and prefixes of such files."""

    noun = "Chakra trace"
    takes = frozenset(
        {
            *("dtype", "roofline", "buffered"),
            *("select", "algo", "ruleset", "mode", "deterministic", "zero_copy", "strict_hccl"),
        }
    )
    order = 20
    writes_jobs = True
    writes_programs = False

    def claims(self, path: str) -> bool:
        """Return True for a folder or a prefix of .et files."""
        if not (os.path.isdir(path) or os.path.exists(f"{path}.0.et")):
            return False
        from hccl_interop.chakra.folder import is_trace

        return is_trace(path)

    def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
        """Return the one trace of the folder."""
        return [SourceEntry(path, partial(self._opened, path, options))]

    def _opened(self, path: str, options: ImportOptions) -> Source:
        from hccl_interop.chakra.folder import read_trace

        roofline = _roofline(options.roofline)
        trace = read_trace(path)
        return TraceSource(
            noun=self.noun,
            name=format_path(path),
            title=path,
            ranks=len(trace.ranks),
            op_name="batch_send_recv",
            executor=self.noun,
            trace=trace,
            dtype=options.dtype or DataType.FP32,
            roofline=roofline,
            buffered=options.buffered,
        )

    def writes(self, path: str) -> bool:
        """Return True for a name without a suffix, and for a folder."""
        return not Path(path).suffix or Path(path).is_dir()

    def check_target(self, path: str) -> None:
        """Refuse a folder with other files than those of a trace."""
        from hccl_interop.chakra.writing import check_folder

        check_folder(path)

    def write(self, program: Program, path: str, options: WriterOptions) -> None:
        """Write the job of a program, with the times of a timeline."""
        from hccl_interop.chakra.writing import write_trace
        from hccl_py.jobs import JobProgram

        if not isinstance(program, JobProgram) or program.job is None:
            raise ParameterError(f"A program is no {self.noun}.", "Name a .json or .npz file.")
        write_trace(program.job, path, options.timeline)


def _roofline(text: str | None) -> Roofline | None:
    """Return the rates of a text TFLOPS,GBPS."""
    from hccl_interop.chakra.build import Roofline

    if text is None:
        return None
    try:
        tflops, gbps = map(float, text.split(","))
    except ValueError:
        raise ParameterError(
            f"--roofline {text!r:.80} is no pair of rates.", "Write TFLOPS,GBPS, such as 300,1600."
        ) from None
    return Roofline(tflops, gbps)
