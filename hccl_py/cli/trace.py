"""`hccl-py trace`: draw what an op puts on the streams, with model times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions, Saving, TimeModel
from hccl_py.cli.trace_options import TraceFiles, Views

if TYPE_CHECKING:
    from hccl_py.cli.request import Request
    from hccl_py.cli.time_model import Model
    from hccl_py.communicator.planning import Plan


@grouped
def command(
    *,
    call: ProgramOptions,
    model: TimeModel,
    views: Views,
    saving: Saving,
    files: TraceFiles,
    output: Output,
) -> int | None:
    """Draw what every stream does, and when.

    Time runs from left to right, a line per stream; ranks that do the same are drawn once. The
    times are those of the cost model. What the verifier finds is marked at its tasks; with an
    error the status is 1. --json has all ranks and all tasks. In the place of an op, a program
    file is drawn as it is.
    """
    from hccl_py.cli.call import check_save, check_tasks, save_program
    from hccl_py.cli.progress import working
    from hccl_py.cli.request import request_of
    from hccl_py.cli.scenes import scene_of_plan
    from hccl_py.cli.time_model import model_of
    from hccl_py.cli.trace_files import check_files, write_files
    from hccl_py.cli.trace_views import check_views, draw, draw_steps, is_wrong

    request = request_of(call)
    if saving.save is not None:
        check_save(saving.save)
    check_files(files)
    with request.comm:
        check_views(views, request.topology.size)
        used = model_of(model, request)
        with working("recording"):
            plan = request.plan(request.op(request.minbytes))
        save_program(plan.program, saving.save)
        if output.json:
            check_tasks(plan.program)
        if output.json and not files.wanted:
            _print_document(request, plan, used)
            return None
        with working(f"verifying and timing {plan.program.task_count} tasks"):
            around = () if views.rank is None else (views.rank,)
            scene = scene_of_plan(request, plan, used, around)
        if files.wanted:
            write_files(files, call, model, scene, request.topology)
        if output.json:
            _print_document(request, plan, used)
            return None
        if views.step:
            draw_steps(scene, views)
        else:
            draw(request, plan, scene, used, views)
        return WRONG if is_wrong(scene) else None


def _print_document(request: Request, plan: Plan, model: Model) -> None:
    from hccl_py.cli.call import document_of_plan
    from hccl_py.cli.output import print_json
    from hccl_py.simulator import simulate
    from hccl_py.trace.document import resources, task_documents

    timeline = simulate(
        plan.program, request.topology, model.cost, network=model.network, slow=model.slow
    )
    print_json(
        {
            "schema": "hccl-py.trace/1",
            **document_of_plan(request, plan, without=("tasks",)),
            **model.document(),
            "total_us": timeline.total_us,
        },
        resources=resources(plan.program),
        tasks=task_documents(timeline),
    )
