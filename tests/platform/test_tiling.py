"""Tiles against numpy slices, for moves that no sane executor would record."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.tiling import TileLimits, TilePlan, plan_tiles
from hccl_platform.emulated.unite import _unite
from hccl_platform.lowering.moves import moves_of
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import ResourceRequest
from hccl_py.program.program import Program
from tests.platform.running import NUMPY, THREADS, TILES, Array, Way, same_bits
from tests.recording import recorded

COUNT = 256
SIZE = COUNT * 4
HALF = SIZE // 2


class Move(NamedTuple):
    reduces: bool
    dst: Buffer
    dst_offset: int
    src: Buffer
    src_offset: int
    size: int


class AnyMoves:
    """Fills both CCL buffers, does the given moves on one stream, delivers both CCL buffers."""

    op = "all_reduce"
    algorithm = "none"

    def __init__(self, moves: list[Move]) -> None:
        self.moves = moves

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: Any, rank: Any) -> None:
        user_in, main = Region(Buffer.USER_IN, 0, SIZE), rank.main
        main.copy(rank.ccl_in, user_in[:HALF])
        main.copy(rank.ccl_out, user_in[HALF:])
        for move in self.moves:
            act = main.reduce if move.reduces else main.copy
            into = Region(move.dst, move.dst_offset, move.size)
            act(into, Region(move.src, move.src_offset, move.size))
        main.copy(Region(Buffer.USER_OUT, 0, HALF), rank.ccl_in)
        main.copy(Region(Buffer.USER_OUT, HALF, HALF), rank.ccl_out)


def program_of(moves: list[Move]) -> Program:
    op = OpParam("all_reduce", COUNT, DataType.INT32, ReduceOp.SUM)
    return recorded(AnyMoves(moves), op, 1, HALF)


ROOM = {Buffer.USER_IN: SIZE, Buffer.USER_OUT: SIZE, Buffer.CCL_IN: HALF, Buffer.CCL_OUT: HALF}


@st.composite
def any_moves(draw: st.DrawFn) -> Move:
    reduces = draw(st.booleans())
    unit = 4 if reduces else draw(st.sampled_from([1, 4, 4, 64]))
    dst, src = draw(st.sampled_from(sorted(ROOM))), draw(st.sampled_from(sorted(ROOM)))
    size = unit * draw(st.integers(1, HALF // 2 // unit))
    into = unit * draw(st.integers(0, (ROOM[dst] - size) // unit))
    out_of = unit * draw(st.integers(0, (ROOM[src] - size) // unit))
    return Move(reduces, dst, into, src, out_of, size)


def run_overlapping(program: Program, apart: int, way: Way) -> Array:
    """Run on an input that begins `apart` elements after the output, in the same memory."""
    memory = np.random.default_rng(0).integers(-(2**31), 2**31, 3 * COUNT, np.int32)
    user_out = memory[COUNT : 2 * COUNT]
    user_in = memory[COUNT + apart : 2 * COUNT + apart]
    session = way.session(program)
    session.run("tag", program, [user_in], [user_out])
    session.close()
    return memory


@given(
    moves=st.lists(any_moves(), max_size=12),
    apart=st.sampled_from([COUNT, -COUNT, 0, 1, -1, 64, -100]),
)
def test_any_moves_give_the_same_bits(moves: list[Move], apart: int) -> None:
    program = program_of(moves)
    wanted = run_overlapping(program, apart, NUMPY)
    for way in (TILES, THREADS):
        assert same_bits([run_overlapping(program, apart, way)], [wanted])


def plan_of(program: Program, unit: int = 4, threads: int = 2) -> TilePlan | None:
    prepared = Prepared(program, moves_of(program, program.linked.order.astype(np.int64)))
    limits = TileLimits(least=64, most=128, alone=0)
    return plan_tiles(prepared.moves, prepared.origins(()), unit, threads, limits)


def copy(dst: int, src: int, size: int) -> Move:
    return Move(False, Buffer.CCL_IN, dst, Buffer.CCL_IN, src, size)


def test_moves_that_agree_are_one_group() -> None:
    plan = plan_of(program_of([Move(False, Buffer.CCL_IN, 0, Buffer.CCL_OUT, 0, HALF)]))
    assert plan is not None
    assert len(plan.phases) == 1
    assert len(plan.phases[0].ranges) > 1


def test_a_rotation_begins_a_new_group() -> None:
    rotation = [copy(128, 0, 128), copy(256, 128, 128), copy(0, 256, 128)]
    plan = plan_of(program_of([*rotation, *rotation]))
    assert plan is not None
    assert len(plan.phases) > 1
    assert all(phase.move < 0 for phase in plan.phases)


def test_a_move_that_overlaps_itself_runs_alone() -> None:
    plan = plan_of(program_of([copy(64, 0, 128)]))
    assert plan is not None
    assert [phase.move for phase in plan.phases if phase.move >= 0] == [2]


def test_small_groups_are_joined() -> None:
    rotation = [copy(128, 0, 128), copy(256, 128, 128), copy(0, 256, 128)]
    plan = plan_of(program_of([*rotation, *rotation]), threads=1)
    assert plan is not None
    assert [phase.ranges for phase in plan.phases] == [((0, len(plan.tiles)),)]


def test_elements_are_never_cut() -> None:
    reduce = Move(True, Buffer.CCL_IN, 0, Buffer.CCL_OUT, 0, 64)
    cut = Move(False, Buffer.CCL_IN, 1, Buffer.CCL_OUT, 1, 2)
    assert plan_of(program_of([reduce])) is not None
    assert plan_of(program_of([reduce, cut])) is None


def test_every_byte_of_every_move_is_in_one_tile() -> None:
    op = OpParam("all_reduce", 1000, DataType.FP32, ReduceOp.SUM)
    program = recorded("AllReduceComm", op, 5, 1280)
    plan = plan_of(program)
    assert plan is not None
    prepared = Prepared(program, moves_of(program, program.linked.order.astype(np.int64)))
    entries = np.diff(plan.first)[plan.tiles[:, 0]]
    moved = int(((plan.tiles[:, 2] - plan.tiles[:, 1]) * entries).sum())
    assert moved == int(prepared.moves.size.sum())


@pytest.mark.parametrize("seed", range(5))
def test_uniting_means_the_same_compiled(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dst, src = rng.integers(0, 1000, 40), rng.integers(2000, 3000, 40)
    size = rng.integers(1, 200, 40)
    alone = rng.random(40) < 0.1
    cuts = np.unique(np.concatenate([dst, dst + size, src, src + size]))
    args = (dst, src, size, alone, cuts, np.searchsorted(cuts, dst), np.searchsorted(cuts, src))
    plain = _unite.plain(*args, 10_000)
    fast = _unite.compiled(*args, 10_000)
    for a, b in zip(plain, fast, strict=True):
        assert (a == b).all()
