"""`hccl-py trace`: draw what an op puts on the streams, with model times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.options import PLATFORM, SAVE, Output, ProgramOptions, TimeModel, flag, option

if TYPE_CHECKING:
    from hccl_py.cli.request import Model, Request
    from hccl_py.communicator.planning import Plan


@dataclass(frozen=True)
class Views:
    """The ranks, tasks and span of time that are drawn."""

    rank: Annotated[
        int | None, option("--rank", "R", "Draw this rank alone, and list its tasks.")
    ] = None
    all_ranks: Annotated[bool, flag("--all-ranks", "Draw every rank, and list all tasks.")] = False
    limit: Annotated[
        int,
        option("--limit", "N", "List the first N tasks of a rank; 0: all, and all streams.", min=0),
    ] = 200
    ranks_shown: Annotated[
        int, option("--ranks-shown", "N", "Draw at most N groups of ranks that do the same.", min=1)
    ] = 8
    step: Annotated[
        bool, flag("--step", "Show what memory holds, task by task: keys, forwards and back.")
    ] = False
    from_us: Annotated[
        float | None, option("--from", "US", "Draw the time from this microsecond on.")
    ] = None
    to_us: Annotated[float | None, option("--to", "US", "Draw the time until then.")] = None


@dataclass(frozen=True)
class TraceFiles:
    """The files that are made of a scene, where they are asked for."""

    html: Annotated[
        str | None, option("--html", "FILE", "Write a page to browse, for any browser.")
    ] = None
    against: Annotated[
        str | None, option("--against", "PROGRAM", "In the page, beside the program in this file.")
    ] = None
    svg: Annotated[
        str | None, option("--svg", "FILE", "Write a picture of the algorithm's steps.")
    ] = None
    perfetto: Annotated[
        str | None, option("--perfetto", "FILE", "Write a .pftrace file for ui.perfetto.dev.")
    ] = None
    chrome: Annotated[
        str | None,
        option("--chrome", "FILE", "Write Chrome's .json trace events, for MindStudio Insight."),
    ] = None
    flows: Annotated[
        int | None,
        option(
            "--flows",
            "N",
            "Arrows from posts to waits in these two, the longest waits first: 10000.",
            min=0,
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """True if any file is asked for."""
        return any(file is not None for file in (self.html, self.svg, *self.traces))

    @property
    def traces(self) -> tuple[str | None, str | None]:
        """The files for other viewers."""
        return self.perfetto, self.chrome


@grouped
def command(
    *,
    call: Annotated[ProgramOptions, without(*PLATFORM)],
    model: TimeModel,
    views: Views,
    save: Annotated[str | None, SAVE] = None,
    files: TraceFiles,
    output: Output,
) -> int | None:
    """Draw what every stream does, and when.

    Time runs from left to right, a line per stream; ranks that do the same are drawn once. The
    times are those of the cost model. What the verifier finds is marked at its tasks; with an
    error the status is 1. --json has all ranks and all tasks. In the place of an op, a program
    file is drawn as it is.
    """
    from hccl_py.cli.call import check_save, check_tasks
    from hccl_py.cli.output import working
    from hccl_py.cli.request import model_of
    from hccl_py.cli.sources import request_of
    from hccl_py.cli.trace_report import (
        check_files,
        check_views,
        draw,
        draw_memory,
        is_wrong,
        scene_of_plan,
        write_files,
    )

    request = request_of(call)
    if save is not None:
        check_save(save)
    check_files(files)
    with request.comm:
        check_views(views, request.topology.size)
        used = model_of(model, request)
        with working("recording"):
            plan = request.plan(request.op(request.minbytes))
        if save is not None:
            plan.program.save(save)
        if output.json:
            check_tasks(plan.program)
        if output.json and not files.wanted:
            _print_document(request, plan, used)
            return None
        with working(f"verifying and timing {plan.program.task_count} tasks"):
            around = () if views.rank is None else (views.rank,)
            scene = scene_of_plan(request, plan, used, around)
        if files.wanted:
            write_files(files, call, model, scene)
        if output.json:
            _print_document(request, plan, used)
            return None
        if views.step:
            draw_memory(scene, views)
        else:
            draw(request, plan, scene, used, views)
        return WRONG if is_wrong(scene) else None


def _print_document(request: Request, plan: Plan, model: Model) -> None:
    from hccl_py.cli.accuracy import TimeAccuracy
    from hccl_py.cli.call import document_of_plan
    from hccl_py.cli.output import print_json
    from hccl_py.simulator import simulate
    from hccl_py.trace.document import resources, task_documents
    from hccl_py.trace.pictures.algorithm_steps import step_documents, steps_of_timeline

    timeline = simulate(
        plan.program,
        request.topology,
        model.cost,
        network=model.network,
        slow=model.slow,
        expand=True,
    )
    print_json(
        {
            "schema": "hccl-py.trace/1",
            **document_of_plan(request, plan, without=("tasks",)),
            **model.document(),
            "total_us": timeline.total_us,
            "accuracy": TimeAccuracy.of(request, plan.program, plan.op, model).document(),
        },
        resources=resources(plan.program),
        steps=step_documents(steps_of_timeline(timeline)),
        tasks=task_documents(timeline),
    )
