"""`hccl-py trace`: draw what an op puts on the streams, with model times."""

from __future__ import annotations

from typing import Annotated

import typer

from hccl_py.cli.call import (
    Request,
    check_tasks,
    describe_topology,
    document_of_plan,
    request_of,
)
from hccl_py.cli.options import Output, ProgramOptions, Saving, TimeModel, grouped
from hccl_py.cli.output import Screen, counted, print_json
from hccl_py.cli.scenes import scene_of_plan
from hccl_py.cli.sources import check_save, save_program
from hccl_py.cli.time_model import Model, checked_model
from hccl_py.cli.trace_files import TraceFiles, check_files, write_files
from hccl_py.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.planning import Plan
from hccl_py.trace.document import resources, task_documents
from hccl_py.trace.steps import Trace
from hccl_py.trace.terminal import draw_rank, draw_resources
from hccl_py.trace.words import Words

__all__ = ["command"]


@grouped
def command(
    *,
    call: ProgramOptions,
    model: TimeModel,
    rank: Annotated[int, typer.Option("--rank", metavar="R", help="The rank that is drawn.")] = 0,
    all_ranks: Annotated[bool, typer.Option("--all-ranks", help="Draw every rank.")] = False,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=0, help="Draw the first N tasks; 0: all."),
    ] = 200,
    saving: Saving,
    files: TraceFiles,
    output: Output,
) -> None:
    """Draw what every stream does, and when.

    Which task waits for which, and which memory moves. The times are those of the cost model.
    --json has all ranks and all tasks. In the place of an op, a program file is drawn as it is.
    """
    request = request_of(call)
    if saving.save is not None:
        check_save(saving.save)
    check_files(files)
    with request.comm:
        _check_rank(rank, request)
        used = checked_model(model, request.topology)
        plan = request.plan(request.op(request.minbytes))
        program, topology = plan.program, request.topology
        save_program(program, saving.save)
        check_tasks(program)
        if files.wanted:
            write_files(files, call, model, scene_of_plan(request, plan, used))
        timed = Trace.of(program, topology, used.cost, network=used.network, slow=used.slow)
        if output.json:
            _print_document(request, plan, timed, used)
        else:
            ranks = range(topology.size) if all_ranks else range(rank, rank + 1)
            _draw(request, plan, timed, used, ranks, limit)


def _check_rank(rank: int, request: Request) -> None:
    if not 0 <= rank < request.topology.size:
        raise ParameterError(
            f"--rank {rank} is out of range.",
            f"The communicator has ranks 0 to {request.topology.size - 1}.",
        )


def _print_document(request: Request, plan: Plan, timed: Trace, model: Model) -> None:
    print_json(
        {
            "schema": "hccl-py.trace/1",
            **document_of_plan(request, plan, without=("tasks",)),
            **model.document(),
            "total_us": timed.timeline.total_us,
        },
        resources=resources(plan.program),
        tasks=task_documents(timed),
    )


def _draw(
    request: Request, plan: Plan, timed: Trace, model: Model, ranks: range, limit: int
) -> None:
    program, screen = plan.program, Screen()
    screen.show(request.describe(plan.op))
    screen.show(describe_topology(request.topology))
    screen.show(request.describe_executor(plan.selection))
    screen.show(
        f"{program.task_count} tasks in {counted(program.rounds, 'round')}; "
        f"{timed.timeline.total_us:.2f} us of model time, {model.conditions}"
    )
    if model.cost != CostModel.of(request.topology.product.name):
        screen.show(f"cost model {model.cost.name}")
    words = Words(program, unicode=screen.unicode)
    screen.show()
    screen.show(draw_resources(program))
    for rank in ranks:
        screen.show()
        screen.show(draw_rank(timed, rank, words, screen.console.width, limit))
    if len(ranks) < program.ranks:
        screen.show()
        screen.show("--rank R draws another rank, --all-ranks all of them.", style="dim")
