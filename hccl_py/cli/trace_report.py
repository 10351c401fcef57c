"""The drawings of `hccl-py trace`: on the terminal, step by step, and in files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, TextIO

from rich.text import Text

from hccl_py.cli.accuracy import TimeAccuracy
from hccl_py.cli.call import describe_topology
from hccl_py.cli.options import ProgramOptions, TimeModel
from hccl_py.cli.output import Screen, counted
from hccl_py.cli.request import Model, Request, model_of
from hccl_py.cli.sources import request_of
from hccl_py.cli.streams import raw, results
from hccl_py.clocks.cost import CostModel
from hccl_py.communicator.planning import Plan
from hccl_py.documents.disk import check_place, format_path, replacing
from hccl_py.documents.kind import FileKind
from hccl_py.errors import ParameterError
from hccl_py.importers import importer_of
from hccl_py.language import translated
from hccl_py.trace.board import Board, BoardDrawing
from hccl_py.trace.board.drawing import MOST_RANKS
from hccl_py.trace.board.keys import Keys, next_step
from hccl_py.trace.gantt import draw_gantt, list_findings
from hccl_py.trace.gantt.chart import MOST_LANES, chosen_groups, format_runs, used_by_path
from hccl_py.trace.pictures.algorithm_steps import steps_of_scene
from hccl_py.trace.pictures.strip import draw_strip
from hccl_py.trace.scene import UNREACHED, Scene, scene_of
from hccl_py.trace.terminal import draw_rank, draw_resources
from hccl_py.trace.units import format_time
from hccl_py.trace.words import Words
from hccl_py.verifier import Severity, verify_program

if TYPE_CHECKING:
    from hccl_py.cli.trace import TraceFiles, Views

_SHORTEST_US = 1e-6

MOST_VERIFIED = 100_000
"""Tasks of a program up to which it is verified before it is drawn."""
_PICTURE = FileKind(
    noun="picture",
    parts="shapes",
    suffixes=(".svg",),
    mark=re.compile(
        rb'^<svg xmlns="http://www\.w3\.org/2000/svg" width="(\d+)" height="(\d+)" '
        rb'viewBox="0 0 \1 \2" role="img">\n<title>'
    ),
)

_ENDS = ("q", "escape", "\x03", "\x04", "")
_HELP = "n, space, right: on   p, left: back   home, end   NUMBER enter   q: quit"


def scene_of_plan(request: Request, plan: Plan, model: Model, around: Sequence[int] = ()) -> Scene:
    """Time and verify a plan for drawing; a program that is too large to verify has a fact that
    says so. Of one that is too large to draw, ranks `around` and their partners are shown.
    """
    program = plan.program
    facts = [
        ("executor", request.describe_executor(plan.selection)),
        ("topology", describe_topology(request.topology)),
        ("tasks", f"{program.task_count} in {counted(program.rounds, 'round')}"),
        ("time", f"cost model {model.cost.name}, {model.conditions}"),
        ("accuracy", TimeAccuracy.of(request, program, plan.op, model).line),
    ]
    report, notes = None, _not_verified(request)
    if not notes and program.task_count > MOST_VERIFIED:
        notes = [f"not looked for above {MOST_VERIFIED} tasks"]
    elif not notes:
        report = verify_program(program)
        notes = report.notes
    facts += [("findings", note) for note in notes]
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


def _not_verified(request: Request) -> Sequence[str]:
    """Return the reason why a program without addresses is not verified."""
    if request.source is None or request.is_verified:
        return []
    return [f"not verified: a {request.source.noun} has sizes and no addresses"]


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
    if views.rank is None and span in (None, (0.0, scene.total_us)):
        _show_strip(screen, scene, width)
    listed = [group[0] for group in groups] if views.rank is not None or views.all_ranks else []
    for rank in listed:
        screen.show()
        screen.show(draw_rank(scene, rank, words, width, views.limit))
    if views.rank is None and not views.all_ranks:
        screen.show()
        screen.show("--rank R lists the tasks of a rank, --all-ranks those of all.", style="dim")


def _show_strip(screen: Screen, scene: Scene, width: int) -> None:
    """Show the steps of the algorithm, and what every rank holds after each."""
    screen.show()
    for line in draw_strip(steps_of_scene(scene), width, unicode=screen.unicode):
        screen.show(line)


def draw_memory(scene: Scene, views: Views) -> None:
    """Show the contents of memory, task by task."""
    screen = Screen()
    every = scene.ranks.tolist()
    ranks = every[:MOST_RANKS] if views.rank is None and not views.all_ranks else every
    if views.rank is not None:
        ranks = [views.rank]
    words = Words.of(scene, unicode=screen.unicode)
    step_through(BoardDrawing(Board(scene), words, ranks), screen, views.limit)


def is_wrong(scene: Scene) -> bool:
    """True if the program cannot end, or the verifier has found an error."""
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
    shorter = TimeAccuracy.of(request, program, plan.op, model)
    never = int((scene.bars.state == UNREACHED).sum())
    ends = f", and no end: {counted(never, 'task')} cannot begin" if scene.never_ends else ""
    screen.show(
        f"{counted(program.task_count, 'task')} in {counted(program.rounds, 'round')}; "
        f"{shorter.time(scene.total_us)} of model time{ends}, {model.conditions}"
    )
    screen.show(f"accuracy: {shorter.line}")
    for note in _not_verified(request):
        screen.show(note)
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
    """Yield notes on ranks and tasks that are not drawn, and on the time of the critical path."""
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


def check_files(files: TraceFiles) -> None:
    """Refuse before the work what could not be written after it."""
    from hccl_py.trace.page import check_page

    if files.html is not None:
        check_page(files.html)
    if files.svg is not None:
        check_place(files.svg, _PICTURE)
    _check_traces(files)
    if files.against is None:
        return
    if files.html is None:
        raise ParameterError(
            "--against is about the page that --html writes.", "Add --html FILE, or leave it out."
        )
    if importer_of(files.against) is None:
        raise ParameterError(
            f"--against {format_path(files.against)!r:.200} is no program file.",
            "Write one with --save; it ends in .json or .npz.",
        )


def write_files(files: TraceFiles, call: ProgramOptions, model: TimeModel, scene: Scene) -> None:
    """Write the files that are asked for of the scene that the options make."""
    from hccl_py.trace.page import write_page

    if files.html is not None:
        scenes = [scene]
        if files.against is not None:
            scenes.append(_other_scene(files.against, call, model))
        write_page(files.html, scenes)
    if files.svg is not None:
        _write_picture(files.svg, scene)
    _write_traces(files, scene)


def _write_picture(path: str, scene: Scene) -> None:
    from hccl_py.trace.pictures.film import draw_film

    picture = draw_film(steps_of_scene(scene), translated(scene.title))
    with replacing(path, _PICTURE) as part:
        part.write_text(picture, "utf-8")


def _check_traces(files: TraceFiles) -> None:
    from hccl_py.trace.export import CHROME, PERFETTO, check_trace_file

    if files.flows is not None and files.perfetto is None and files.chrome is None:
        raise ParameterError(
            "--flows is about the files of --perfetto and --chrome.",
            "Add one of them, or leave it out.",
        )
    for path, kind in ((files.perfetto, PERFETTO), (files.chrome, CHROME)):
        if path is not None:
            check_trace_file(path, kind)


def _write_traces(files: TraceFiles, scene: Scene) -> None:
    from hccl_py.trace.export import CHROME, PERFETTO, write_trace_file
    from hccl_py.trace.timelines import log_omissions

    for path, kind in ((files.perfetto, PERFETTO), (files.chrome, CHROME)):
        if path is not None:
            log_omissions(path, write_trace_file(path, {"": scene}, kind, files.flows))


def _other_scene(path: str, call: ProgramOptions, model: TimeModel) -> Scene:
    """Return the scene of a program file, timed as the options say, on the cluster that they say;
    on as few servers as hold its ranks where they say nothing.
    """
    other = request_of(
        ProgramOptions(
            op=path,
            servers=call.servers,
            devices=call.devices,
            superpods=call.superpods,
            topology=call.topology,
            rank_table=call.rank_table,
        )
    )
    with other.comm:
        used = model_of(model, other)
        return scene_of_plan(other, other.plan(other.op(other.minbytes)), used)


def step_through(drawing: BoardDrawing, screen: Screen, most: int) -> None:
    """Show the states of a board: by keys where there is a terminal at both ends, otherwise the
    first `most` below each other; 0: all.
    """
    has_keys = sys.stdin is not None and sys.stdin.isatty()
    if has_keys and results().isatty() and not screen.console.is_dumb_terminal:
        with _keyboard() as keys:
            _walk(drawing, screen, keys)
        return
    board = drawing.board
    for step in range(min(len(board.steps), most or len(board.steps)) + 1):
        board.go(step)
        if step:
            screen.show()
        for line in drawing.lines(screen.console.width):
            screen.show(line)
    if board.at < len(board.steps):
        screen.show()
        shown = "this was the first step" if most == 1 else f"these were the first {most} steps"
        rest = f"... {shown} of {len(board.steps)}; --limit 0 shows all."
        screen.show(rest, style="yellow")


def _walk(drawing: BoardDrawing, screen: Screen, keys: Iterator[str]) -> None:
    out, number, board = raw(results()), "", drawing.board
    while True:
        out.write("\x1b[H\x1b[2J")
        room = max(screen.console.height - 2, 1)
        for line in [*drawing.lines(screen.console.width, room)][:room]:
            screen.show(line)
        screen.show(f"{number}_ enter: go to that step" if number else _HELP, style="dim")
        out.flush()
        key = next(keys, "")
        if key in _ENDS:
            return
        if key.isdigit():
            number = (number + key)[:9]
            continue
        board.go(next_step(board, key, number))
        number = ""


@contextmanager
def _keyboard() -> Iterator[Keys]:
    """Read keys as they are pressed, on a screen of our own; everything is put back at the end."""
    import termios
    import tty

    descriptor, out = sys.stdin.fileno(), raw(results())
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        _write(out, "\x1b[?1049h\x1b[?25l")
        yield Keys(descriptor)
    finally:
        _write(out, "\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _write(out: TextIO, text: str) -> None:
    out.write(text)
    out.flush()
