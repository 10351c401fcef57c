"""`hccl-py fit` with kernels of the CCU: times of a model of our own give its parameters back."""

import json
from pathlib import Path

import pytest

from hccl_interop.cpp.export.starting import starting_project
from hccl_py.cli import main
from hccl_py.scaffold import write_project
from hccl_py.simulator import COSTS

CLUSTER = ["--topology", "ascend950-4x1"]
TRUTH = {"roce_us": 7.0, "roce_gbps": 90.0}
SIZES = ("4K", "1M", "16M", "64M")


def test_recordings_of_the_ccu_give_the_costs_of_its_engine_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(starting_project("mine", "all_gather", "ccu"), tmp_path / "mine")
    cost = ["--cost", "ours.json", "--network", "contended"]
    ccu = COSTS["ascend950"].engines.ccu.model_dump(exclude_none=True) | TRUTH
    Path("ours.json").write_text(json.dumps({"base": "ascend950", "engines": {"ccu": ccu}}))
    rows = []
    for size in SIZES:
        assert main(["simulate", "mine", *CLUSTER, "-b", size, *cost, "--json"]) == 0
        time_us = json.loads(capsys.readouterr().out)["simulated_us"]
        rows.append(f"mine,all_gather,{size},{time_us},")
    rows.append(f"mine,all_gather,256K,{2 * time_us},yes")  # a time that no cost gives
    Path("times.csv").write_text("\n".join(["program,op,bytes,time_us,held_out", *rows]) + "\n")
    names = [f"engines.ccu.{name}" for name in TRUTH]
    wanted = ["--parameters", ",".join(names), "--network", "contended", "--json"]
    assert main(["fit", "times.csv", *CLUSTER, *wanted]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {one["name"]: one["value"] for one in found["parameters"]}
    assert values == pytest.approx(dict(zip(names, TRUTH.values(), strict=True)), rel=0.01)
