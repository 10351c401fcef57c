"""What `hccl-py trace` draws on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from rich.text import Text

from hccl_py.cli.call import describe_topology
from hccl_py.cli.output import Screen, counted
from hccl_py.cli.request import Request
from hccl_py.cli.time_model import Model
from hccl_py.cli.trace_options import Views
from hccl_py.clocks.cost import CostModel
from hccl_py.communicator.planning import Plan
from hccl_py.errors import ParameterError
from hccl_py.trace.board.drawing import MOST_RANKS
from hccl_py.trace.gantt import draw_gantt, list_findings
from hccl_py.trace.gantt.drawing import MOST_LANES, chosen_groups, format_runs, used_by_path
from hccl_py.trace.scene import UNREACHED, Scene
from hccl_py.trace.terminal import draw_rank, draw_resources
from hccl_py.trace.units import format_time
from hccl_py.trace.words import Words
from hccl_py.verifier import Severity

_SHORTEST_US = 1e-6


def check_views(views: Views, ranks: int) -> None:
    """Refuse before the work what could not be drawn after it."""
    if views.rank is not None and not 0 <= views.rank < ranks:
        raise ParameterError(
            f"--rank {views.rank} is out of range.", f"The communicator has ranks 0 to {ranks - 1}."
        )
    begin = 0.0 if views.from_us is None else views.from_us
    end = inf if views.to_us is None else views.to_us
    if not (0 <= begin < inf and end - begin >= _SHORTEST_US):
        given = f"--from {begin:g}" + ("" if views.to_us is None else f" --to {views.to_us:g}")
        raise ParameterError(
            f"{given} is no span of time.",
            "Give microseconds from 0 on, the end a picosecond or more behind the start.",
        )


def draw(request: Request, plan: Plan, scene: Scene, model: Model, views: Views) -> None:
    """Draw the ranks that are asked for: over time, and task by task where that is asked for."""
    span = _span(views, scene.total_us)
    screen = Screen()
    _show_heads(screen, request, plan, scene, model)
    words, width = Words.of(scene, unicode=screen.unicode), screen.console.width
    groups = _groups(scene, views)
    screen.show()
    most = MOST_LANES if views.limit else len(scene.lanes)
    for line in draw_gantt(scene, words, width, groups, span, most):
        screen.show(line)
    for note in _notes(scene, groups, views):
        screen.show(note, style="dim")
    findings = list(list_findings(scene, width))
    for line in [Text(), *findings] if findings else []:
        screen.show(line)
    listed = [group[0] for group in groups] if views.rank is not None or views.all_ranks else []
    for rank in listed:
        screen.show()
        screen.show(draw_rank(scene, rank, words, width, views.limit))
    if views.rank is None and not views.all_ranks:
        screen.show()
        screen.show("--rank R lists the tasks of a rank, --all-ranks those of all.", style="dim")


def draw_steps(scene: Scene, views: Views) -> None:
    """Show what memory holds, task by task."""
    from hccl_py.cli.stepping import step_through
    from hccl_py.trace.board import Board, BoardDrawing

    screen = Screen()
    every = scene.ranks.tolist()
    ranks = every[:MOST_RANKS] if views.rank is None and not views.all_ranks else every
    if views.rank is not None:
        ranks = [views.rank]
    words = Words.of(scene, unicode=screen.unicode)
    step_through(BoardDrawing(Board(scene), words, ranks), screen, views.limit)


def is_wrong(scene: Scene) -> bool:
    """Whether the program cannot end, or the verifier has found an error."""
    errors = any(found.finding.severity is Severity.ERROR for found in scene.findings)
    return errors or scene.never_ends


def _span(views: Views, total_us: float) -> tuple[float, float] | None:
    if views.from_us is None and views.to_us is None:
        return None
    begin = views.from_us or 0.0
    if begin >= total_us:
        raise ParameterError(
            f"--from {begin:g} is behind the end.", f"The program ends at {total_us:g} us."
        )
    return begin, min(total_us, total_us if views.to_us is None else views.to_us)


def _show_heads(screen: Screen, request: Request, plan: Plan, scene: Scene, model: Model) -> None:
    program = plan.program
    screen.show(request.describe(plan.op))
    screen.show(describe_topology(request.topology))
    screen.show(request.describe_executor(plan.selection))
    never = int((scene.bars.state == UNREACHED).sum())
    ends = f", and no end: {counted(never, 'task')} cannot begin" if scene.never_ends else ""
    screen.show(
        f"{counted(program.task_count, 'task')} in {counted(program.rounds, 'round')}; "
        f"{scene.total_us:.2f} us of model time{ends}, {model.conditions}"
    )
    if not request.is_verified:
        screen.show(request.not_verified)
    if model.cost != CostModel.of(request.topology.product.name):
        screen.show(f"cost model {model.cost.name}")
    screen.show()
    screen.show(draw_resources(program))


def _groups(scene: Scene, views: Views) -> list[tuple[int, ...]]:
    if views.rank is not None:
        return [(views.rank,)]
    if views.all_ranks:
        return [(rank,) for rank in scene.ranks.tolist()]
    return chosen_groups(scene, views.ranks_shown)


def _notes(scene: Scene, groups: list[tuple[int, ...]], views: Views) -> Iterator[str]:
    """Yield what is not drawn, and what the critical path spends its time on."""
    if views.rank is None:
        drawn = {rank for group in groups for rank in group}
        rest = [rank for rank in scene.ranks.tolist() if rank not in drawn]
        if rest:
            yield f"{format_runs(rest)}: not drawn; --ranks-shown {len(scene.groups)} draws all"
    if scene.left_out:
        yield scene.left_out
    if spent := used_by_path(scene):
        total = scene.total_us
        parts = [f"{name} {format_time(us)} us ({us / total:.0%})" for name, us in spent]
        yield f"critical path: {', '.join(parts)}"
