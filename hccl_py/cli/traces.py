"""A Chakra trace where a command takes an op or a program: its job on the topology of the options.

It says what is communicated, not where in memory: it is timed and drawn, not verified or run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_py.cli.options import CallOptions, ProgramOptions, Sizes, given
from hccl_py.cli.output import counted
from hccl_py.cli.placing import placed
from hccl_py.cli.request import Request, communicator
from hccl_py.communicator import Plan
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.platforms import Schedule
from hccl_py.selection import Selection

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hccl_py.chakra import Roofline
    from hccl_py.jobs import Job, JobProgram
    from hccl_py.program.program import Program
    from hccl_py.simulator.timeline import Timeline

__all__ = [
    "NOT_VERIFIED",
    "TraceRequest",
    "check_chakra",
    "document_of_job",
    "drawing_of_job",
    "is_job",
    "refuse_trace",
    "write_chakra",
]

NOUN = "Chakra trace"

NO_ADDRESSES = "has sizes and no addresses"
NOT_VERIFIED = f"not verified: a {NOUN} {NO_ADDRESSES}"

_NOT_OF_TRACES = (
    *("ranks", "executor", "in_place", "counts", "buffsize", "reduce_op", "root", "minbytes"),
    *("cpp_op", "calls"),
)
"""Options of a call that the trace says itself, or that are about one op."""


class TraceRequest(Request):
    """The job of a trace. Its ranks are put where the options say, by default on as few servers as
    hold them; the options choose the executors of all its calls.
    """

    is_fixed = True
    is_verified = False

    def __init__(self, options: ProgramOptions, schedule: Schedule | None = None) -> None:
        from hccl_py.chakra import read_trace

        self.name = format_path(options.op)
        _refuse_options(options)
        self._dtype, self._roofline = DataType.parse(options.dtype), _roofline(options.roofline)
        self._buffered = options.buffered
        self.trace = read_trace(options.op)
        topology = placed(len(self.trace.ranks), options, NOUN)
        super().__init__(
            "batch_send_recv", communicator(options, topology, schedule), options.platform
        )
        self.minbytes = 0

    @cached_property
    def job(self) -> Job:
        """The job."""
        from hccl_py.chakra import job_of

        return job_of(self.trace, self.comm, self._dtype, self._roofline, buffered=self._buffered)

    @cached_property
    def program(self) -> JobProgram:
        """Its program."""
        return self.job.program()

    def op(self, size: int) -> OpParam:
        """Return the op that stands for a job."""
        return self.program.op

    def select(self, op: OpParam) -> Selection:
        """Return a selection of nothing but the trace."""
        return Selection(
            op=op.name,
            executor=NOUN,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is the {NOUN} {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Return the program of the job."""
        return Plan(op, self.select(op), self.program)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes."""
        given_sizes = ("-e", sizes.maxbytes), ("-f", sizes.stepfactor), ("-i", sizes.stepbytes)
        for option, size in given_sizes:
            if size is not None:
                raise _not_of_traces(option)

    def describe(self, op: OpParam) -> str:
        """Return how much the trace has."""
        nodes = counted(self.trace.node_count, "node")
        return f"{NOUN} {self.name}: {nodes} on {counted(len(self.trace.ranks), 'rank')}"

    def describe_executor(self, selection: Selection) -> str:
        """Return how many calls there are, and on which streams."""
        program = self.program
        names = ", ".join(program.stream_names[:8])
        more = len(program.stream_names) - 8
        rest = f" and {more} more" if more > 0 else ""
        return f"{counted(len(program.calls_run), 'call')}, streams {names}{rest}"


def refuse_trace(name: str, command: str) -> None:
    """Raise ParameterError where a command that looks at memory is given a trace."""
    from hccl_py.cli.sources import TRACE

    if TRACE.is_one(name):
        what = {"check": "nothing can be verified", "run": "there is nothing to run"}[command]
        raise ParameterError(
            f"{format_path(name)} is a {NOUN}. A {NOUN} {NO_ADDRESSES}, so {what}.",
            "`hccl-py simulate` times it, `hccl-py trace` and `view` draw it.",
        )


def check_chakra(path: str, request: Request) -> None:
    """Refuse --chakra before the work, where there is no trace to write, or no place for it."""
    from hccl_py.chakra import check_folder

    if not isinstance(request, TraceRequest):
        raise ParameterError(
            f"--chakra writes a {NOUN} with its times, and this is none.",
            "Leave it out, or name a folder of .et files first.",
        )
    check_folder(path)


def write_chakra(path: str, request: Request, timeline: Timeline | None) -> None:
    """Write the job of a trace, with its times."""
    from hccl_py.chakra import write_trace

    assert isinstance(request, TraceRequest)
    write_trace(request.job, path, timeline)


def is_job(program: Program) -> bool:
    """Whether a program is that of a job."""
    from hccl_py.jobs import JobProgram

    return isinstance(program, JobProgram)


def drawing_of_job(program: Program, timeline: Timeline | None) -> Iterator[RenderableType]:
    """Yield what of a job's communication is hidden, where its tasks were timed; nothing for other
    programs.
    """
    if timeline is not None and is_job(program):
        from hccl_py.jobs import draw_overlap, overlap

        report = overlap(timeline)
        yield ""
        yield draw_overlap(report)
        yield f"{report.hidden:.0%} of the communication is hidden behind computation"


def document_of_job(program: Program, timeline: Timeline | None) -> dict[str, Any]:
    """Return the same for a JSON document; nothing for other programs."""
    if timeline is None or not is_job(program):
        return {}
    from hccl_py.jobs import overlap

    report = overlap(timeline)
    worst = {
        name: float(getattr(report, name)[report.worst])
        for name in ("total_us", "compute_us", "communication_us", "overlapped_us", "exposed_us")
    }
    return {"overlap": {"hidden": report.hidden, "worst_rank": report.worst, **worst}}


def _refuse_options(options: CallOptions) -> None:
    for option in given(options, _NOT_OF_TRACES):
        raise _not_of_traces({"--minbytes": "-b", "--cpp-op": "--op"}.get(option, option))


def _not_of_traces(option: str) -> ParameterError:
    return ParameterError(
        f"{option} does not go with a {NOUN}, which says that itself.", f"Leave {option} out."
    )


def _roofline(text: str | None) -> Roofline | None:
    """Return the rates of --roofline TFLOPS,GBPS."""
    from hccl_py.chakra import Roofline

    if text is None:
        return None
    try:
        tflops, gbps = map(float, text.split(","))
    except ValueError:
        raise ParameterError(
            f"--roofline {text!r:.80} is no pair of rates.", "Write TFLOPS,GBPS, such as 300,1600."
        ) from None
    return Roofline(tflops, gbps)
