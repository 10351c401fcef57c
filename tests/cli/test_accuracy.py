"""The accuracy beside a time, and the digits that it leaves: by hand, and in every command."""

import json
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.cli.accuracy import TimeAccuracy, line_of_calls
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.measured import Accuracy, HeldOut, MeasuredSet

SET = MeasuredSet(
    what="a contest",
    kind="vendor simulation",
    source="its page",
    ops=("all_gather", "all_reduce"),
    bytes=(512 << 10, 512 << 20),
    ranks=(16,),
    points=23,
    held_out=HeldOut(points=21, median=0.03, p90=0.09, worst=0.14),
)
MODEL = CostModel.of("atlas-800-9000")
CALL = ["all_reduce", "--topology", "ascend950", "--servers", "2", "--devices", "8"]


def accuracy(band: float | None, *outside: str) -> TimeAccuracy:
    if band is None:
        return TimeAccuracy(MODEL, Accuracy(None))
    held_out = HeldOut(points=21, median=band / 2, p90=band, worst=2 * band)
    return TimeAccuracy(MODEL, Accuracy(SET.model_copy(update={"held_out": held_out}), outside))


@pytest.mark.parametrize(
    ("band", "us", "text"),
    [
        (None, 2273.414, "2273.41 us"),
        (0.09, 2273.414, "2.3 ms"),
        (0.09, 44.21, "44 us"),
        (0.09, 820.0, "820 us"),
        (0.09, 843.0, "840 us"),
        (0.09, 998.0, "1.0 ms"),
        (0.09, 0.0, "0 us"),
        (0.09, 0.00077, "0.00077 us"),
        (0.09, 9.96, "10 us"),
        (0.05, 2273.414, "2.3 ms"),
        (0.04, 2273.414, "2.27 ms"),
        (0.005, 2273.414, "2.27 ms"),
        (0.004, 2273.414, "2.273 ms"),
        (0.4, 12_345_678.0, "12 s"),
        (0.4, 12_345_678_900.0, "12000 s"),
    ],
)
def test_times_have_the_digits_that_the_band_leaves(
    band: float | None, us: float, text: str
) -> None:
    assert accuracy(band).time(us) == text


def test_columns_have_the_same_digits() -> None:
    assert accuracy(0.09).microseconds(2273.414) == "2300"
    assert accuracy(None).microseconds(2273.414) == "2273.41"
    assert accuracy(0.09).number(30.381, 5, fixed=False) == "30"
    assert accuracy(None).number(30.381234, 5, fixed=False) == "30.381"
    assert accuracy(None).number(30.381234, 2) == "30.38"


def test_one_line_says_what_the_band_rests_on() -> None:
    of = "±9 % (p90 of 21 held-out times of a vendor's simulation, 512K–512M, 16 ranks)"
    assert accuracy(0.09).line == f"{of}; this call: inside"
    assert accuracy(0.09, "128 ranks, measured at 16").line == (
        f"{of}; this call: 128 ranks, measured at 16"
    )
    assert accuracy(0.09, "1024 bytes, measured at 524288 to 536870912").line.endswith(
        "; this call: 1K bytes, measured at 512K to 512M"
    )
    assert accuracy(0.125).line.startswith("±12 % (")
    assert accuracy(0.045).line.startswith("±4.5 % (")
    assert accuracy(None).line == (
        "no measurement of atlas-800-9000; α is an engineering choice: none is published"
    )
    bare = TimeAccuracy(MODEL, Accuracy(SET.model_copy(update={"held_out": None})))
    assert bare.line == (
        "no error is known: none of 23 times was held out, of a vendor's simulation, 512K–512M, "
        "16 ranks; this call: inside"
    )
    one = HeldOut(points=1, median=0.07, p90=0.07, worst=0.07)
    single = SET.model_copy(update={"held_out": one, "bytes": (1 << 30, 1 << 30)})
    assert TimeAccuracy(MODEL, Accuracy(single)).line.startswith(
        "±7 % (the one held-out time of a vendor's simulation, 1G, 16 ranks)"
    )
    unstated = SET.model_copy(update={"bytes": None, "ranks": ()})
    assert TimeAccuracy(MODEL, Accuracy(unstated)).line == (
        "±9 % (p90 of 21 held-out times of a vendor's simulation); this call: inside"
    )


def test_calls_of_several_sizes_have_one_line() -> None:
    inside, outside = accuracy(0.09), accuracy(0.09, "1024 bytes, measured at more")
    assert line_of_calls([inside, inside]) == inside.line
    assert line_of_calls([outside, inside, inside]).endswith("; these calls: 2 of 3 inside")


def document(**more: Any) -> dict[str, Any]:
    return {"base": "ascend950", "measured": [SET.model_dump(mode="json")], **more}


@pytest.fixture
def cost(tmp_path: Path) -> str:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(document(engines={"aicpu_ts": {"call_us": 40}})))
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return " ".join(capsys.readouterr().out.split())


INSIDE = "16 ranks); this call: inside"


def test_simulate_and_trace_show_it(capsys: pytest.CaptureFixture[str], cost: str) -> None:
    text = output(capsys, "simulate", *CALL, "-b", "64M", "--cost", cost)
    assert INSIDE in text
    found = json.loads(output(capsys, "simulate", *CALL, "-b", "64M", "--cost", cost, "--json"))
    assert found["accuracy"] == {
        "band": 0.09,
        "points": 21,
        "kind": "vendor simulation",
        "measured": "a contest",
        "source": "its page",
        "is_inside": True,
        "outside": [],
    }
    us = found["simulated_us"]
    assert f"time {accuracy(0.09).time(us)} of model time" in text
    assert len(f"{us}") > 8  # the document keeps all digits
    assert INSIDE in output(capsys, "trace", *CALL, "-b", "1M", "--cost", cost)
    traced = json.loads(output(capsys, "trace", *CALL, "-b", "1M", "--cost", cost, "--json"))
    assert traced["accuracy"]["band"] == 0.09


def test_rows_of_sizes_share_a_line(capsys: pytest.CaptureFixture[str], cost: str) -> None:
    rows = [*CALL, "-b", "1K", "-e", "1M", "-f", "1024", "--cost", cost]
    assert "these calls: 1 of 2 inside" in output(capsys, "simulate", *rows)
    found = json.loads(output(capsys, "simulate", *rows, "--json"))["rows"]
    assert [row["accuracy"]["is_inside"] for row in found] == [False, True]
    assert found[0]["accuracy"]["outside"] == ["1024 bytes, measured at 524288 to 536870912"]


ONE_STEP = [*CALL, "--executor", "AllReduceDoubling"]


def test_below_the_floor_calls_take_the_floor(
    capsys: pytest.CaptureFixture[str], cost: str
) -> None:
    text = output(capsys, "simulate", *ONE_STEP, "-b", "64", "--cost", cost)
    assert "time 40 us of model time, at the call's floor: its tasks take " in text
    found = json.loads(output(capsys, "simulate", *ONE_STEP, "-b", "64", "--cost", cost, "--json"))
    assert (found["simulated_us"], found["is_at_floor"]) == (40.0, True)
    rows = [*ONE_STEP, "-b", "64", "-e", "1M", "-f", "16384", "--cost", cost]
    assert "at the call's floor, where programs do not differ: 64" in output(
        capsys, "simulate", *rows
    )


def test_compare_ties_what_differs_by_less(capsys: pytest.CaptureFixture[str], cost: str) -> None:
    compare = [
        "compare",
        *CALL,
        "-b",
        "1K",
        "-e",
        "4M",
        "-f",
        "4096",
        "--cost",
        cost,
        "--jobs",
        "1",
    ]
    found = json.loads(output(capsys, *compare, "--json"))
    for size in (1 << 10, 4 << 20):
        rows = [row for row in found["rows"] if row["bytes"] == size]
        best = min(row["time_us"] for row in rows)
        tied = {row["executor"] for row in rows if row["is_tied"]}
        level = {row["executor"] for row in rows if row["time_us"] <= 1.09 * best}
        winner = {row["executor"] for row in rows if row["is_winner"]}
        assert tied | winner == level
        assert {row["is_at_floor"] for row in rows if row["is_winner"]} == {size == 1 << 10}
    text = output(capsys, *compare)
    at_floor = sum(row["is_at_floor"] for row in found["rows"])
    assert f"at the call's floor: {at_floor} candidates" in text
    assert "these calls: 1 of 2 inside" in text
    assert "ties, as times within 9 % are not told apart: " in text
    assert "at the call's floor, where programs do not differ: 1K" in text


def test_without_a_band_there_is_no_tie(capsys: pytest.CaptureFixture[str]) -> None:
    compare = ["compare", "all_gather", "--topology", "atlas-800-9000", "--ranks", "8", "-b", "1M"]
    found = json.loads(output(capsys, *compare, "--jobs", "1", "--json"))
    assert not any(row["is_tied"] for row in found["rows"])
    assert "accuracy: no measurement of atlas-800-9000; α is" in output(
        capsys, *compare, "--jobs", "1"
    )


def test_choices_say_what_they_rest_on(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["all_gather", "--topology", "atlas-800-9000", "--ranks", "2", "-b", "4K"]
    line = "no measurement of atlas-800-9000; α is an engineering choice: none is published"
    assert f"accuracy of model times: {line}" in output(capsys, "explain", *call)
    explained = json.loads(output(capsys, "explain", *call, "--json"))
    assert explained["accuracy"]["kind"] == "none"
    run = ["run", *call, "-n", "1", "-w", "0"]
    chosen = output(capsys, *run, "--select", "cost")
    assert "ways by the cost model atlas-800-9000: " in chosen
    assert f"accuracy {line}" in chosen
    assert "accuracy" not in output(capsys, *run)
    assert (
        json.loads(output(capsys, *run, "--select", "cost", "--json"))["accuracy"]["band"] is None
    )
