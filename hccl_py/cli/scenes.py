"""From what a command works on to what there is to see of it."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.cli.call import describe_topology
from hccl_py.cli.output import counted
from hccl_py.cli.request import Request
from hccl_py.cli.time_model import Model
from hccl_py.communicator.planning import Plan
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.verifier import Report, verify_program

MOST_VERIFIED = 100_000
"""Tasks of a program up to which it is verified before it is drawn."""


def scene_of_plan(request: Request, plan: Plan, model: Model, around: Sequence[int] = ()) -> Scene:
    """Time and verify a plan for drawing; what is too large to verify says so in a fact. Of what is
    too large to draw, ranks `around` are shown, and those that they work with.
    """
    program = plan.program
    facts = [
        ("executor", request.describe_executor(plan.selection)),
        ("topology", describe_topology(request.topology)),
        ("tasks", f"{program.task_count} in {counted(program.rounds, 'round')}"),
        ("time", f"cost model {model.cost.name}, {model.conditions}"),
    ]
    report = _report(plan) if request.is_verified else None
    if not request.is_verified:
        facts.append(("findings", request.not_verified))
    elif report is None:
        facts.append(("findings", f"not looked for above {MOST_VERIFIED} tasks"))
    elif report.notes:
        facts += [("findings", note) for note in report.notes]
    return scene_of(
        program,
        request.topology,
        cost=model.cost,
        network=model.network,
        slow=model.slow,
        report=report,
        title=request.describe(plan.op),
        facts=facts,
        around=around,
    )


def _report(plan: Plan) -> Report | None:
    return verify_program(plan.program) if plan.program.task_count <= MOST_VERIFIED else None
