"""Scenes that are drawn in tests, and their drawings as they were looked at, in drawings/.

`python -m tests.trace.drawn` writes those anew; look at what git shows then.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import hccl_py as hccl
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.program.instruction import Batch
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.trace.board import Board, BoardDrawing
from hccl_py.trace.gantt import draw_gantt, list_findings
from hccl_py.trace.gantt.chart import chosen_groups
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.trace.words import Words
from hccl_py.verifier import verify_program
from tests.recording import op_of, recorded

DRAWINGS = Path(__file__).parent / "drawings"
WIDTHS = (80, 160)

SUM = OpParam("all_reduce", 1 << 18, DataType.FP32, ReduceOp.SUM)


def all_gather_mesh() -> Scene:
    return of_program(recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1 << 16), 4))


def ring_all_reduce() -> Scene:
    with hccl.Communicator(ranks=8, algo="level0:NA;level1:ring") as comm:
        return of_program(comm.plan(SUM, "AllReduceComm").program)


def nhr_all_reduce() -> Scene:
    with hccl.Communicator(ranks=5, algo="level0:NA;level1:NHR") as comm:
        return of_program(comm.plan(SUM, "AllReduceComm").program)


def two_levels() -> Scene:
    with hccl.Communicator(servers=2, devices=4) as comm:
        program = comm.plan(SUM).program
        return scene_of(program, comm.topology, report=verify_program(program))


def job_with_overlap() -> Scene:
    with hccl.Communicator(servers=2, devices=4) as world:
        job = hccl.Job(world.topology)
        compute, comm = job.stream("compute"), job.stream("dp")
        for layer in (1, 0):
            compute.compute(100.0, f"backward {layer}")
            comm.wait(compute.record())
            comm.run(world, SUM, f"gradients {layer}")
        compute.wait(comm.record())
        program = job.program()
        return scene_of(program, world.topology)


def deadlock() -> Scene:
    """The mesh, in which rank 2 does not tell rank 1 that its CCL_Out is ready: rank 1 reads
    nothing, and nobody learns that it has.
    """
    whole = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1 << 16), 4, by_rank=True)
    mine = next(b for b in whole.batches if list(b.ranks) == [2])
    post = next(i for i in mine.instructions if i.kind is TaskKind.NOTIFY_POST and i.stream == 1)
    rest = Batch(mine.ranks, tuple(i for i in mine.instructions if i is not post))
    batches = tuple(rest if b is mine else b for b in whole.batches)
    return of_program(replace(whole, batches=batches))


def of_program(program: Program) -> Scene:
    return scene_of(program, topology_of(program.ranks), report=verify_program(program))


SCENES: dict[str, Callable[[], Scene]] = {
    make.__name__: cache(make)
    for make in (
        all_gather_mesh,
        ring_all_reduce,
        nhr_all_reduce,
        two_levels,
        job_with_overlap,
        deadlock,
    )
}

BOARDS = {"all_gather_mesh": (0, 1, 5, 20), "ring_all_reduce": (0, 9, 60, 128)}
"""By scene, the steps whose memory is drawn."""


def gantt(scene: Scene, width: int, *, unicode: bool = True) -> list[str]:
    words = Words.of(scene, unicode=unicode)
    lines = [*draw_gantt(scene, words, width, chosen_groups(scene, 8))]
    return [line.plain for line in (*lines, *list_findings(scene, width))]


def boards(scene: Scene, width: int, steps: tuple[int, ...]) -> list[str]:
    drawing = BoardDrawing(Board(scene), Words.of(scene, unicode=True), scene.ranks.tolist())
    lines = []
    for step in steps:
        drawing.board.go(step)
        lines += [*(line.plain for line in drawing.lines(width)), ""]
    return lines


def drawings() -> dict[str, str]:
    """Return all drawings by the names of their files."""
    found = {}
    for name, make in SCENES.items():
        for width in WIDTHS:
            found[f"{name}-{width}.txt"] = gantt(make(), width)
    for name, steps in BOARDS.items():
        found[f"{name}-memory-80.txt"] = boards(SCENES[name](), 80, steps)
    return {
        name: "\n".join(line.rstrip() for line in lines) + "\n" for name, lines in found.items()
    }


def main() -> None:
    DRAWINGS.mkdir(exist_ok=True)
    for name, text in drawings().items():
        (DRAWINGS / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
