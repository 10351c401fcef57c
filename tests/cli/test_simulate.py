"""`hccl-py simulate`: the document, both walks, the report, and what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.simulator import COSTS, CostModel, Stragglers, simulate, write_cost
from hccl_py.simulator.bounds import lower_bound
from hccl_py.topology import topology_of
from tests.cli.authors import AUTHOR
from tests.recording import op_of, recorded

RING = ("all_reduce", "--topology", "ring", "--executor", "AllReduceComm")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["simulate", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert [line for line in captured.err.splitlines() if "compiling" not in line] == []
    return json.loads(captured.out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["simulate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    return captured.err


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--algo", "level0:NA;level1:ring", "--ranks", "4", "-b", "64K", "-d", "fp16"]
    found = simulated(capsys, *RING, *options, "-o", "max", "--slow", "rank=1:2x")
    assert all(found.pop(name) >= 0 for name in ("record_s", "link_s", "simulate_s"))
    assert 10 < found.pop("peak_rss_mb") < 10_000
    topology = topology_of(4, preset="ring")
    op = op_of("all_reduce", 1 << 15, "fp16")
    program = recorded("AllReduceComm", op, topology, 200 << 20)
    total = simulate(program, topology, slow=Stragglers.parse(["rank=1:2x"])).total_us
    bound = lower_bound(op, topology, CostModel.of("ring"))
    assert found == {
        "schema": "hccl-py.simulate/1",
        "op": "all_reduce",
        "ranks": 4,
        "topology": "ring, 1 server x 4 devices",
        "bytes": 1 << 16,
        "count": 1 << 15,
        "dtype": "fp16",
        "reduce_op": "max",
        "mode": "op_base",
        "executor": "AllReduceComm",
        "algorithm": {"level0": "NA", "level1": "ring"},
        "rounds": 1,
        "tasks": program.task_count,
        "network": "uncontended",
        "cost": "study",
        "slow": ["rank=1:2x"],
        "clock": "model",
        "notifies": "one-bit",
        "walk": "tasks",
        "simulated_us": total,
        "is_at_floor": False,
        "accuracy": {
            "band": None,
            "points": None,
            "kind": "none",
            "measured": None,
            "source": None,
            "is_inside": False,
            "outside": [],
        },
        "overruns": 0,
        "why_levels": {
            "level0": "AllReduceComm has no level0 of its own: it takes all ranks at once",
            "level1": "HCCL_ALGO asks for ring",
        },
        "overruled": [],
        "algbw_gbps": (1 << 16) / total * 1e-3,
        "busbw_gbps": (1 << 16) / total * 1e-3 * 6 / 4,
        "lower_bound_us": bound.time_us,
    }


def test_large_programs_are_walked_by_batches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_task = simulated(capsys, *RING, "--ranks", "6")
    monkeypatch.setattr("hccl_py.simulator.entry.FEW_TASKS", 10)
    found = simulated(capsys, *RING, "--ranks", "6")
    assert (found["walk"], found["link_s"]) == ("batches", 0)
    assert found["simulated_us"] == by_task["simulated_us"]
    shares_nothing = simulated(capsys, *RING, "--ranks", "6", "--network", "contended")
    assert shares_nothing["walk"] == "batches"
    assert shares_nothing["simulated_us"] == by_task["simulated_us"]
    torus = ("all_to_all", "--topology", "torus:3x3", "--network", "contended")
    all_ranks = simulated(capsys, *torus)
    assert all_ranks["walk"] == "tasks"
    monkeypatch.setattr("hccl_py.simulator.contended.entry._MANY", 10)
    one_of_each = simulated(capsys, *torus)
    assert (one_of_each["walk"], one_of_each["link_s"]) == ("classes", 0)
    assert one_of_each["simulated_us"] == pytest.approx(all_ranks["simulated_us"], rel=1e-9)
    assert simulated(capsys, *torus, "--slow", "rank=1:2x")["walk"] == "tasks"
    assert main(["simulate", *RING, "--ranks", "6"]) == 0
    assert "--report says what the time goes into." in capsys.readouterr().out
    reported = simulated(capsys, *RING, "--ranks", "6", "--report")
    assert reported["walk"] == "tasks"
    assert reported["link_s"] > 0


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--ranks", "4", "-b", "1M", "--slow", "rank=2:9x", "--report")
    found = simulated(capsys, *RING, *options)
    report, total = found["report"], found["simulated_us"]
    ranks = {row.pop("which"): row for row in report["ranks"]}
    assert set(ranks) == {"busiest", "median", "idlest"}
    assert ranks["busiest"]["rank"] == 2
    for row in ranks.values():
        assert row["busy"] + row["waiting"] + row["idle"] == pytest.approx(1)
    assert report["waits"][0]["on"] == 2
    assert report["waits"][0]["us"] <= total
    assert {"source", "target", "bytes", "share"} == set(report["links"][0])
    path = report["critical_path"]
    parts = [value for name, value in path.items() if name.endswith("_us")]
    assert sum(parts) == pytest.approx(total)
    assert sum(path["phases"].values()) == pytest.approx(total)
    assert set(path["phases"]) == {"", "all-gather", "barrier", "reduce-scatter"}
    assert path["first"][0]["begin_us"] == 0
    assert "copy user_in" in path["first"][0]["task"]


def test_chance_is_said_and_repeats(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals = []
    for seed in (3, 3, 4):
        chance = {"base": "atlas-800t-a2", "jitter": 0.25, "jitter_seed": seed}
        (here / "ours.json").write_text(json.dumps(chance))
        assert main(["simulate", "all_gather", "--ranks", "4", "--cost", "ours.json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[3] == f"cost model ours, uncontended, jitter 0.25 of seed {seed}"
        totals.append(next(line for line in lines if line.startswith("time ")))
    assert totals[0] == totals[1] != totals[2]


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "all_gather", "--ranks", "4", "--slow", "rank=0:1.5x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "all_gather of 1M bytes, fp32, op_base",
        "4 ranks: Atlas 800T A2, 1 server x 4 devices",
    ]
    assert lines[3] == "cost model atlas-800t-a2, uncontended, slow rank=0:1.5x"
    heads = [line[:16].rstrip() for line in lines[5:] if line.strip()]
    assert [head for head in heads if head] == [
        *(
            "time",
            "accuracy",
            "bandwidth",
            "lower bound",
            "busiest rank",
            "median rank",
            "least busy",
        ),
        *("longest waits", "busiest links", "critical path", "by phase", "its first tasks"),
    ]
    assert any("α" in line for line in lines)


def test_nothing_that_takes_time(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = COSTS["selection"].hccs.model_copy(update={"alpha_us": 0.0})
    links = dict.fromkeys(("hccs", "sio", "pcie", "roce"), link)
    write_cost("free.json", COSTS["selection"].model_copy(update=links))
    options = ("all_gather", "-b", "0", "--cost", "free.json")
    assert simulated(capsys, *options)["algbw_gbps"] == 0
    assert simulated(capsys, *options, "--report")["report"]["critical_path"]["phases"] == {"": 0}
    assert main(["simulate", *options]) == 0
    assert "Nothing takes any time." in capsys.readouterr().out


def test_cost_models(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cost("slower.yaml", COSTS["selection"].model_copy(update={"name": "slower"}))
    names = {"selection": "selection", "formula": "formula", "slower.yaml": "slower"}
    found = {name: simulated(capsys, "all_gather", "--cost", name) for name in names}
    assert [found[name]["cost"] for name in names] == list(names.values())
    assert found["slower.yaml"]["simulated_us"] == found["selection"]["simulated_us"]
    assert found["formula"]["simulated_us"] < found["selection"]["simulated_us"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cost", "atlas-800t-a3"), "error: --cost 'atlas-800t-a3' is unknown.\nhint: Did you"),
        (("--cost", "none.json"), "error: none.json: the file cannot be read: No such file"),
        (("--network", "contented"), "error: --network 'contented' is unknown.\nhint: Did you"),
        (("--slow", "rank=4:2x"), "error: --slow rank=4 names no rank.\nhint: There are ranks 0"),
        (("--slow", "2x"), "error: --slow '2x' is not understood.\nhint: Write rank=3:2x, "),
        (("--slow", "link=0-9:2x"), "has no node '9'"),
        (("-b", "12Q"), "error: -b/--minbytes '12Q' is not a size."),
    ],
)
def test_bad_options(
    options: tuple[str, ...], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(capsys, "all_gather", "--ranks", "4", *options)


@pytest.mark.parametrize("few", [0, 1000])
def test_a_deadlock(
    few: int, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hccl_py.simulator.entry.FEW_TASKS", few)
    name = f"timed_{few}"
    (here / f"{name}.py").write_text(AUTHOR)
    said = refused(capsys, "all_gather", "--executor", f"{name}:Stuck")
    assert said.startswith("error: Deadlock: ")
    assert (f"{name}.py:" in said) == (few > 0)


def test_notifies_that_count(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hccl_py.simulator.entry.FEW_TASKS", 1)
    twice = {
        "format": "hccl-py.program/1",
        "op": {"name": "barrier", "dtype": "uint8"},
        "ranks": 2,
        "link": "sdma",
        "exported": [],
        "buffers": {"0": {}, "1": {}},
        "tasks": {
            "0": {"0": [["post", 1, 0], ["post", 1, 0]]},
            "1": {"0": [["compute", 50], ["wait", 0, 0], ["wait", 0, 0]]},
        },
    }
    (here / "twice.json").write_text(json.dumps(twice))
    assert "Notify overrun" in refused(capsys, "twice.json")
    assert "--notifies 'two'" in refused(capsys, "twice.json", "--notifies", "two")
    found = simulated(capsys, "twice.json", "--notifies", "counting")
    assert (found["notifies"], found["overruns"], found["simulated_us"]) == ("counting", 1, 50)
    assert main(["simulate", "twice.json", "--notifies", "counting"]) == 0
    assert "1 post came while a notify was still set" in capsys.readouterr().out
    rows = simulated(capsys, *RING, "-b", "1K", "-e", "2K", "-f", "2", "--notifies", "counting")
    assert [row["overruns"] for row in rows["rows"]] == [0, 0]


def test_trace_takes_the_same_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["all_gather", "--cost", "selection", "--slow", "rank=1:2x"]
    wanted = simulated(capsys, *options)
    assert main(["trace", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["total_us"] == wanted["simulated_us"]
    for name in ("network", "cost", "slow", "clock"):
        assert document[name] == wanted[name]
    assert main(["trace", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].endswith("us of model time, uncontended, slow rank=1:2x")
    assert lines[4].startswith("accuracy: no measurement of selection; 60 µs is what HCCL's")
    assert "cost model selection" in lines[5:8]


def test_one_time_for_one_call_where_flows_share_links(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No time is below the lower bound, and `compare` says the same as `simulate`."""
    call = ["all_to_all", "--topology", "torus:4x4", "-b", "64M", "--json"]
    assert main(["simulate", *call]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["simulated_us"] >= alone["lower_bound_us"]
    assert main(["compare", *call]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    (rules,) = (row for row in rows if row["is_hccl"])
    assert rules["executor"] == alone["executor"]
    assert rules["time_us"] == alone["simulated_us"]
    assert main(["simulate", *call, "--network", "contended"]) == 0
    shared = json.loads(capsys.readouterr().out)
    assert alone["simulated_us"] <= shared["simulated_us"] < 1.1 * alone["simulated_us"]
