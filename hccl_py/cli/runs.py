"""What `hccl-py run` does: sizes, programs and measurements, row after row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hccl_py.cli.call import check_memory, check_save, check_tasks
from hccl_py.cli.progress import Bar
from hccl_py.cli.request import Request, refuse_without_addresses, request_of
from hccl_py.cli.sizes import last_size, row_sizes, starting_at
from hccl_py.cli.trace_files import check_timeline, write_timeline
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.measurement import Measurement, SizeResult, bytes_needed
from hccl_py.documents.disk import format_path
from hccl_py.enums import Buffer
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.trace.scene import scene_of
from hccl_py.trace.units import format_size

if TYPE_CHECKING:
    from hccl_py.cli.options import ProgramOptions, Sizes
    from hccl_py.cli.run_options import Interleaving, Measuring


@dataclass(frozen=True)
class Runs:
    """What is run: sizes, iterations, kind of check, interleaving."""

    request: Request
    sizes: Sequence[int]
    maxbytes: int
    measuring: Measuring
    schedule: Schedule | None

    @staticmethod
    def of(
        call: ProgramOptions, sizes: Sizes, measuring: Measuring, interleaving: Interleaving
    ) -> Runs:
        """Check the options; raises where one makes no sense."""
        schedule = _schedule(interleaving)
        request = request_of(call, schedule)
        if request.source is not None:
            refuse_without_addresses(request.source, "run")
        request.check_sizes(sizes)
        if not request.has_op:
            raise ParameterError(
                f"What {format_path(call.op)} computes is not known, so there is nothing to run.",
                "State it: --op, -d, -o, -r.",
            )
        if request.is_fixed:
            return Runs(request, [request.minbytes], request.minbytes, measuring, schedule)
        start = starting_at(call.minbytes, request.minbytes)
        rows, last = row_sizes(start, sizes), last_size(start, sizes)
        return Runs(request, rows, last, measuring, schedule)

    def check_save(self, path: str) -> None:
        """Refuse to save several programs, or over a file that is none."""
        if len(self.sizes) > 1:
            raise ParameterError(
                "--save keeps one program, -e asks for several.", "Leave one of them out."
            )
        check_save(path)

    def check_timeline(self, path: str) -> None:
        """Refuse timelines of several programs, and a file that cannot be written."""
        if len(self.sizes) > 1:
            raise ParameterError(
                "--timeline is of one program, -e asks for several.", "Leave one of them out."
            )
        check_timeline(path)

    def write_timeline(self, path: str) -> None:
        """Write the measured times of the first size and those of the model."""
        request, counts = self.request, self.measuring
        plan = request.plan(request.op(self.sizes[0]))
        measured = Measurement(request.comm, 1, counts.warmup, check=False).timeline(plan)
        title, facts = request.describe(plan.op), [("platform", request.platform)]
        scenes = {
            f"measured on {request.platform}": scene_of(
                plan.program,
                request.topology,
                timeline=measured,
                clock="measured",
                title=title,
                facts=facts,
            ),
            "model": scene_of(plan.program, request.topology, title=title),
        }
        write_timeline(path, scenes)

    def prepare(self) -> Program:
        """Return the program of the first size.

        Raises, before anything is printed, where a call is illegal or too large for this machine,
        and where its executor cannot record the first size.
        """
        for size in (self.sizes[0], self.sizes[-1]):
            op = self.request.op(size)
            self.request.select(op)
            check_memory(bytes_needed(self.request.comm, op), "The buffers of all ranks together")
        program = self.request.plan(self.request.op(self.sizes[0])).program
        if not self.request.is_recorded:
            _check_buffers(self.request, program)
        return program

    def rows(self) -> Iterator[SizeResult]:
        """Measure size after size."""
        counts = self.measuring
        measurement = Measurement(
            self.request.comm, counts.iters, counts.warmup, check=counts.check > 0
        )
        for size in self.sizes:
            plan = self.request.plan(self.request.op(size))
            check_tasks(plan.program)
            title = format_size(self.request.data_size(plan.op))
            with Bar(title, counts.warmup + counts.iters) as bar:
                row = measurement.row(plan, bar.advance)
            yield row


def _schedule(asked: Interleaving) -> Schedule | None:
    """Return the interleaving that the user asks for, if any."""
    if asked.seed is None and asked.schedule is None and not asked.slow:
        return None
    known = {adversary.value: adversary for adversary in Adversary}
    name = Adversary.RANDOM.value if asked.schedule is None else asked.schedule
    if name not in known:
        raise ParameterError(f"--schedule {name!r} is unknown.", did_you_mean(name, known))
    if asked.seed is not None and not 0 <= asked.seed < 1 << 64:
        raise ParameterError(f"--seed is {asked.seed}.", "Give 0 to 2^64 - 1.")
    return Schedule(asked.seed or 0, known[name], slow=Stragglers.parse(asked.slow or []))


def _check_buffers(request: Request, program: Program) -> None:
    """Refuse a program whose IN and OUT are not those of its op: data made up would not fit."""
    needed = request.operator.user_bytes(program.op, program.ranks)
    for buffer, sizes in zip((Buffer.USER_IN, Buffer.USER_OUT), needed, strict=True):
        name = buffer.spelling
        if name not in program.buffers:
            if not sizes.any():
                continue
            raise NotSupportedError(
                f"{request.source_name} has no buffer {name}: there is nowhere to put data.",
                "Data comes from IN, and results are read from OUT.",
            )
        found = program.buffer_sizes[:, program.buffers.index(name)]
        wrong = (found != sizes).nonzero()[0]
        if len(wrong):
            rank = int(wrong[0])
            raise NotSupportedError(
                f"{request.source_name}: {name} of rank {rank} has {found[rank]} bytes, "
                f"{program.op.name} has {sizes[rank]} there.",
                "`hccl-py check --numeric` runs a program with buffers of any size.",
            )
