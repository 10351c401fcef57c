"""The film strip on the terminal: its lines say what the steps say, in 80 columns."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

import hccl_py as hccl
from hccl_py.cli import main
from hccl_py.trace.pictures.algorithm_steps import AlgorithmSteps, algorithm_steps
from hccl_py.trace.pictures.strip import draw_strip


def steps_of(executor: str, op: str, ranks: int) -> AlgorithmSteps:
    reduce = hccl.ReduceOp.SUM if "reduce" in op else None
    topology = hccl.topology_of(ranks=ranks)
    call = hccl.OpParam(op, 1 << 10, hccl.DataType.FP32, reduce)
    return algorithm_steps(hccl.record(executor, call, topology), topology)


def lines(steps: AlgorithmSteps, width: int = 80, *, unicode: bool = True) -> list[str]:
    return [line.plain for line in draw_strip(steps, width, unicode=unicode)]


def test_a_gather_fills_the_blocks_of_all_ranks() -> None:
    drawn = lines(steps_of("AllGatherMeshOpbaseExecutor", "all_gather", 4))
    assert drawn[0] == "all-gather, step 1 of 1, 12K a rank"
    assert drawn[1].startswith("Every rank sends to every other")
    assert drawn[-1] == "  1 ████ ████ ████ ████"


def test_a_ring_adds_one_share_after_the_other() -> None:
    """After step 1 of a ring of 4, every rank has half of the shares of one chunk, and all own
    shares, a quarter, of the others; after the last step all have all.
    """
    drawn = lines(steps_of("AllReduceRing", "all_reduce", 4))
    frames = [line[4:].split(" ") for line in drawn if line[:4].strip().isdigit()]
    assert len(frames) == 6
    assert all(sorted(card) == sorted("▂▂▂▄") for card in frames[0])
    assert frames[-1] == ["████"] * 4


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("ranks", [3, 16, 24])
@pytest.mark.parametrize("unicode", [True, False])
def test_lines_fit(width: int, ranks: int, unicode: bool) -> None:
    drawn = lines(steps_of("AllReduceRing", "all_reduce", ranks), width, unicode=unicode)
    assert max(map(cell_len, drawn)) <= min(width, 80)
    assert unicode or all(line.isascii() or "\u2026" in line for line in drawn)


def test_many_alike_steps_are_left_out() -> None:
    drawn = lines(steps_of("AllReduceRing", "all_reduce", 16))
    assert [line.strip() for line in drawn if "more" in line] == ["... 12 more"] * 2


def test_trace_draws_the_strip_and_has_it_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["trace", "all_reduce", "--ranks", "4", "--executor", "AllReduceRing"]
    assert main(call) == 0
    drawn = capsys.readouterr().out
    assert "adds it to its own.\n  1 " in drawn
    assert "\x1b" not in drawn
    assert main([*call, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["step"] for step in steps] == list(range(1, 7))
    assert all(step["begin_us"] < step["end_us"] for step in steps)
    first = {(move["from"], move["to"], move["reduces"]) for move in steps[0]["transfers"]}
    assert first == {(str(rank), str((rank + 1) % 4), True) for rank in range(4)}
