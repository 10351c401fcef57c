"""`hccl-py trace`: draw what an op puts on the streams, with model times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.options import Call, Output, TimeModel, grouped

if TYPE_CHECKING:
    from hccl_py.cli.call import Request
    from hccl_py.cli.time_model import Model
    from hccl_py.communicator import Plan
    from hccl_py.trace.steps import Trace

__all__ = ["trace"]


@grouped
def trace(
    *,
    call: Call,
    model: TimeModel,
    rank: Annotated[int, typer.Option("--rank", metavar="R", help="The rank that is drawn.")] = 0,
    all_ranks: Annotated[bool, typer.Option("--all-ranks", help="Draw every rank.")] = False,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=0, help="Draw the first N tasks; 0: all."),
    ] = 200,
    output: Output,
) -> None:
    """Draw what every stream does, and when.

    Who waits for whom, and which memory moves. The times are those of the cost model. --json has
    all ranks and all tasks.
    """
    from hccl_py.cli.call import Request, check_tasks
    from hccl_py.cli.time_model import checked_model

    request = Request(call)
    with request.comm:
        _check_rank(rank, request)
        used = checked_model(model, request.topology)
        plan = request.plan(request.op(request.minbytes))
        check_tasks(plan.program)
        from hccl_py.trace.steps import Trace

        topology, program = request.topology, plan.program
        timed = Trace.of(program, topology, used.cost, network=used.network, slow=used.slow)
        if output.json:
            _print_document(request, plan, timed, used)
        else:
            ranks = range(request.topology.size) if all_ranks else range(rank, rank + 1)
            _draw(request, plan, timed, used, ranks, limit)


def _check_rank(rank: int, request: Request) -> None:
    from hccl_py.errors import ParameterError

    if not 0 <= rank < request.topology.size:
        raise ParameterError(
            f"--rank {rank} is out of range.",
            f"The communicator has ranks 0 to {request.topology.size - 1}.",
        )


def _print_document(request: Request, plan: Plan, timed: Trace, model: Model) -> None:
    from hccl_py.cli.call import data_size
    from hccl_py.cli.output import print_json
    from hccl_py.trace.document import resources, task_documents

    op = plan.op
    print_json(
        {
            "schema": "hccl-py.trace/1",
            "op": op.name,
            "ranks": plan.program.ranks,
            "topology": request.topology.description,
            "bytes": data_size(request, op),
            "count": op.count,
            "dtype": op.dtype.value,
            "reduce_op": None if op.reduce is None else op.reduce.spelling,
            "mode": op.mode.value,
            "executor": plan.selection.executor,
            "algorithm": dict(plan.selection.algorithm),
            "rounds": plan.program.rounds,
            **model.document(),
            "total_us": timed.timeline.total_us,
        },
        resources=resources(plan.program),
        tasks=task_documents(timed),
    )


def _draw(
    request: Request, plan: Plan, timed: Trace, model: Model, ranks: range, limit: int
) -> None:
    from hccl_py.cli.call import spell_topology
    from hccl_py.cli.output import Screen, spell_levels
    from hccl_py.simulator import CostModel
    from hccl_py.trace.terminal import draw_rank, draw_resources
    from hccl_py.trace.words import Words

    program, screen = plan.program, Screen()
    rounds = f"{program.rounds} round{'s' if program.rounds > 1 else ''}"
    screen.show(request.describe(plan.op))
    screen.show(spell_topology(request.topology))
    screen.show(f"{plan.selection.executor}, {spell_levels(plan.selection.algorithm)}")
    screen.show(
        f"{program.task_count} tasks in {rounds}; {timed.timeline.total_us:.2f} us of model time, "
        f"{model.conditions}"
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
        screen.show("--rank R draws another rank, --all-ranks every one.", style="dim")
