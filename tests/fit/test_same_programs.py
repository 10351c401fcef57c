"""Equal programs are one, and equal times of one program count once."""

from hccl_py.fit.fit import fit
from hccl_py.fit.parameters import Parameter, TimedCall
from hccl_py.fit.same_programs import alike_programs, counted_once
from hccl_py.simulator import CostModel
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded

PAIR = topology_of(2)


def call(count: int, time_us: float, executor: str = "AllGatherComm") -> TimedCall:
    """A call that is recorded anew."""
    return TimedCall(recorded(executor, op_of("all_gather", count), PAIR), PAIR, time_us)


def test_programs_that_are_recorded_twice_are_one() -> None:
    calls = [call(64, 5.0), call(128, 6.0), call(64, 7.0), call(64, 5.0, "AllGatherMeshExecutor")]
    distinct, place = alike_programs(calls)
    assert place == [0, 1, 0, 2]
    assert distinct == [calls[0], calls[1], calls[3]]


def test_equal_times_count_once_and_others_of_the_same_program_do_not() -> None:
    calls = [call(64, 5.0), call(64, 5.0), call(64, 7.0), call(128, 5.0)]
    once, place = counted_once(calls)
    assert place == [0, 0, 1, 2]
    assert [c.time_us for c in once] == [5.0, 7.0, 5.0]


def test_rows_that_repeat_do_not_draw_the_fit() -> None:
    cost = CostModel.of("study")
    rows = [call(1 << 10, 11.0), call(1 << 20, 250.0), call(1 << 22, 960.0), call(1 << 24, 3700.0)]
    asked = [Parameter.parse("hccs.alpha_us"), Parameter.parse("hccs.gbps")]
    found, again = fit(rows, cost, asked), fit([*rows, *[rows[0]] * 9], cost, asked)
    assert again.cost == found.cost
    assert again.model_us.tolist() == [*found.model_us, *[found.model_us[0]] * 9]
