"""Memory task by task: the cells hold what the scene says that memory holds, forwards and back."""

import os
from dataclasses import replace

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.topology import topology_of
from hccl_py.trace.board import Board, BoardDrawing
from hccl_py.trace.board.drawing import format_origins
from hccl_py.trace.board.keys import Keys, next_step
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.trace.words import Words
from tests.recording import op_of, recorded
from tests.trace.drawn import SCENES


def scene(executor: str, op: str, ranks: int) -> Scene:
    return scene_of(recorded(executor, op_of(op), ranks), topology_of(ranks))


Held = dict[tuple[int, int, int], tuple[tuple[int, ...], int]]


def expected(scene: Scene, changes: int) -> Held:
    """Return origins and the input's byte by rank, buffer and byte, for some bytes of all."""
    assert scene.memory
    found = {}
    for segment in scene.memory.state(changes):
        if segment.origins:
            for byte in {segment.start, (segment.start + segment.stop) // 2, segment.stop - 1}:
                at = segment.offset + byte - segment.start
                found[segment.rank, segment.buffer, byte] = (segment.origins, at)
    return found


def check(board: Board, scene: Scene, changes: int) -> None:
    for (rank, buffer, byte), (origins, at) in expected(scene, changes).items():
        cell = int(np.searchsorted(board.cuts[buffer], byte, "right")) - 1
        content = int(board.content[buffer][rank, cell])
        assert board.origins[content] == origins
        assert board.block_of(at) == board.block[buffer][rank, cell]


@pytest.mark.parametrize(
    ("executor", "op", "ranks"),
    [
        ("AllGatherMeshOpbaseExecutor", "all_gather", 4),
        ("AllReduceComm", "all_reduce", 3),
        ("AllReduceMeshOpbaseLoopExecutor", "all_reduce", 3),
        ("AllGatherComm", "all_gather", 5),
    ],
)
def test_cells_hold_what_memory_holds(executor: str, op: str, ranks: int) -> None:
    shown = scene(executor, op, ranks)
    board = Board(shown)
    assert shown.memory
    check(board, shown, shown.memory.begin)
    states = []
    for step, made in enumerate(board.steps):
        states.append({b: c.copy() for b, c in board.content.items()})
        board.go(step + 1)
        check(board, shown, made.stop)
        assert board.bar == made.bar
    for step in reversed(range(len(board.steps))):
        board.go(step)
        assert all((board.content[b] == content).all() for b, content in states[step].items())


def test_there_is_nothing_before_the_first_and_behind_the_last_step() -> None:
    board = Board(SCENES["all_gather_mesh"]())
    board.go(-3)
    assert (board.at, board.bar, board.changed(), board.read()) == (0, -1, [], [])
    board.go(10**9)
    assert board.at == len(board.steps) == 4 + 4 + 12


def test_what_a_step_reads_and_writes() -> None:
    shown = SCENES["all_gather_mesh"]()
    board = Board(shown)
    for step in range(1, len(board.steps) + 1):
        board.go(step)
        (written,), (read,), bars = board.changed(), board.read(), shown.bars
        assert (written.rank, written.buffer) == (
            bars.dst_rank[board.bar],
            bars.dst_buffer[board.bar],
        )
        assert (read.rank, read.buffer) == (bars.src_rank[board.bar], bars.src_buffer[board.bar])
        assert board.cuts[read.buffer][read.first] == bars.src_offset[board.bar]
        assert board.cuts[written.buffer][written.stop] == (
            bars.dst_offset[board.bar] + bars.size[board.bar]
        )


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("width", [40, 80])
def test_boards_fit(name: str, width: int) -> None:
    shown = SCENES[name]()
    board = Board(shown)
    drawing = BoardDrawing(board, Words.of(shown, unicode=False), shown.ranks.tolist())
    for step in range(0, len(board.steps) + 1, 7):
        board.go(step)
        _, said, *lines = (line.plain for line in drawing.lines(width))
        assert all(len(line) <= width for line in lines)
        assert said.isascii()


def test_a_low_screen_shows_what_the_step_touches() -> None:
    shown = SCENES["ring_all_reduce"]()
    drawing = BoardDrawing(Board(shown), Words.of(shown, unicode=True), shown.ranks.tolist())
    drawing.board.go(40)
    text = "\n".join(line.plain for line in drawing.lines(80, 22))
    assert "CCL_In" in text
    assert "user_out" not in text
    assert text.count("\n") < 22


def test_blocks_that_move_to_other_places_are_numbered() -> None:
    with hccl.Communicator(ranks=4) as comm:
        op = OpParam("all_to_all", 1 << 12, DataType.FP32)
        shown = scene_of(comm.plan(op).program, comm.topology)
    board = Board(shown)
    board.go(len(board.steps))
    drawing = BoardDrawing(board, Words.of(shown, unicode=True), [1])
    text = [line.plain for line in drawing.lines(200)]
    (row,) = (line for line in text if line.startswith("rank 1"))
    out = text[-2].rindex("0", 0, text[-2].rindex(" 1 "))
    cells = row[out - 3 :].replace("]", "|").replace("[", "|").split("|")
    labels = [cell.strip() for cell in cells if "." in cell]
    per_rank = len(labels) // 4
    assert [label.split(".")[0] for label in labels] == [
        str(rank) for rank in range(4) for _ in range(per_rank)
    ]
    first = [int(label.split(".")[1]) for label in labels]
    assert first == [*range(per_rank, 2 * per_rank)] * 4


@pytest.mark.parametrize(
    ("origins", "text"),
    [
        ((3,), "3"),
        ((0, 1), "0+1"),
        ((0, 1, 2), "0+1+2"),
        (tuple(range(8)), "+0-7"),
        ((0, 1, 6, 7), "+0-1,6-7"),
        ((0, 2, 4, 6, 8, 10), "+6"),
    ],
)
def test_spelling_of_sums(origins: tuple[int, ...], text: str) -> None:
    assert format_origins(origins) == text


def test_memory_that_is_not_known_says_why() -> None:
    shown = replace(SCENES["all_gather_mesh"](), memory=None, memory_left_out="Too large.")
    with pytest.raises(ParameterError, match="Too large"):
        Board(shown)


def test_sums_of_an_all_reduce() -> None:
    op = OpParam("all_reduce", 1 << 10, DataType.FP32, ReduceOp.SUM)
    with hccl.Communicator(ranks=4, algo="level0:NA;level1:ring") as comm:
        shown = scene_of(comm.plan(op, "AllReduceComm").program, comm.topology)
    board = Board(shown)
    board.go(len(board.steps))
    out = shown.buffers.index("OUT")
    assert {board.origins[c] for c in board.content[out].ravel().tolist()} == {(0, 1, 2, 3)}


def test_a_program_that_changes_nothing_has_no_steps() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 0), 4)
    shown = scene_of(program, topology_of(4))
    board = Board(shown)
    assert board.steps == []
    words = Words.of(shown, unicode=True)
    assert next(BoardDrawing(board, words, range(4)).lines(80)).plain.startswith("step 0 of 0")


def test_ranks_without_a_buffer_have_no_cells_in_it() -> None:
    with hccl.Communicator(ranks=2) as comm:
        program = comm.plan(OpParam("scatter", 4, DataType.FP32, root=0)).program
        shown = scene_of(program, comm.topology)
    lines = BoardDrawing(Board(shown), Words.of(shown, unicode=True), range(2)).lines(80)
    (root, other) = (line.plain for line in lines if line.plain.startswith("rank"))
    assert root.startswith("rank 0 |0.0|")
    assert other.startswith("rank 1   ")


def test_keys_come_in_pieces_and_have_names() -> None:
    reading, writing = os.pipe()
    os.write(writing, "n\x1b[A\x1bOB\x1b[5~\x1b[Zé".encode())
    os.close(writing)
    assert list(Keys(reading)) == ["n", "up", "down", "up", "unknown", "é"]
    os.close(reading)


def test_keys_lead_to_steps() -> None:
    board = Board(scene("AllGatherMeshOpbaseExecutor", "all_gather", 2))
    board.go(3)
    keys = [("n", ""), ("left", ""), ("\r", "7"), ("\r", ""), ("G", ""), ("?", "")]
    assert [next_step(board, *key) for key in keys] == [4, 2, 7, 4, len(board.steps), 3]
