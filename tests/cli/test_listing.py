"""`hccl-py list`; broken packages are in tests/test_plugin_package.py."""

import json
import re
from pathlib import Path

import pytest

from hccl_py.cli import main
from hccl_py.errors import PluginError
from hccl_py.plugins.discovery import Platforms, Registry, installed_executors


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "hccl-py.list/1"
    mesh = next(e for e in document["executors"] if e["name"] == "AllGatherMeshOpbaseExecutor")
    assert mesh["op"] == "all_gather"
    assert mesh["algorithm"] == "level0:mesh"
    assert mesh["package"] == "hccl_executors"
    assert mesh["summary"].startswith("AllGather inside one server")
    assert "emulated" in [platform["name"] for platform in document["platforms"]]
    assert "atlas-800t-a2" in [topology["name"] for topology in document["topologies"]]
    assert document["problems"] == []


def test_every_executor_says_where_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    executors = json.loads(capsys.readouterr().out)["executors"]
    for executor in executors:
        file, _, line = executor["source"].rpartition(":")
        written = Path(file).read_text("utf-8").splitlines()[int(line) - 1]
        assert written.startswith("class ")
    ring = next(e for e in executors if e["name"] == "AllReduceRing")
    assert Path(ring["source"].rpartition(":")[0]).name == "inference.py"


def test_people_see_where_executors_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for options in ((), ("-v",)):
        assert main(["list", "--op", "gather", *options]) == 0
        shown[options] = capsys.readouterr().out
    assert "flat.py" in shown["-v",].replace("\n      ", "")
    assert "flat.py" not in shown[()]


def test_a_name_says_where_an_executor_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "AllReduceRingExecutor"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("executors of all_reduce\n  AllReduceRingExecutor  hccl_executors\n")
    assert "rings/servers.py:" in shown.replace("\n      ", "")
    assert "level0:ring; level1:H-D_R|ring|" in shown
    assert "coll_all_reduce_ring_executor.cc" in shown.replace("\n      ", "")
    assert "platforms" not in shown


def test_a_part_of_a_name_lists_all_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "ringexecutor", "--op", "all_reduce", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["executors"]
    assert [e["name"] for e in found] == ["AllReduceRingExecutor"]
    assert main(["list", "allreducering"]) == 0
    assert "AllReduceRingZerocopyExecutor" in capsys.readouterr().out
    assert main(["list", "AllReduceRing"]) == 0  # a whole name is that one alone
    assert "AllReduceRingZerocopyExecutor" not in capsys.readouterr().out


def test_an_unknown_name_has_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "AllReduceRingExecutr"]) == 2
    assert "Did you mean AllReduceRingExecutor" in capsys.readouterr().err


def test_only_one_op(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--op", "all_reduce", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {e["op"] for e in document["executors"]} == {"all_reduce"}


def test_a_barrier_runs_all_reduce_s_executors(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for op in ("barrier", "all_reduce"):
        assert main(["list", "--op", op, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["executors"])
    own, *sums = found[0]
    assert own["name"] == "AicpuBarrierSoleNHR"
    assert sums == found[1] != []


def test_what_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("executors of all_reduce\n  ")
    assert re.search(
        r"\n  AllGatherMeshOpbaseExecutor +hccl_executors\n      level0:mesh\n", output
    )
    assert "\nplatforms\n  emulated" in output
    assert "broken" not in output


def test_nothing_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hccl_py.plugins.discovery.installed_executors", Registry)
    monkeypatch.setattr("hccl_py.plugins.discovery.installed_platforms", Platforms)
    assert main(["list"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("executors\n  none is installed\n\nplatforms\n  none is installed\n\n")
    assert "\ntopologies\n  atlas-800t-a2" in output


def test_broken_packages_are_shown_and_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = installed_executors().copy()
    registry.problems.append(PluginError("Plugin odd is odd.", "Mend it."))

    def installed() -> Registry:
        return registry

    monkeypatch.setattr("hccl_py.plugins.discovery.installed_executors", installed)
    monkeypatch.setattr("hccl_py.communicator.domain.installed_executors", installed)
    assert main(["list"]) == 0
    assert "broken: Plugin odd is odd.\n  Mend it.\n" in capsys.readouterr().out
    assert main(["run", "all_gather", "-n", "1"]) == 0
    assert capsys.readouterr().err == "warning: Plugin odd is odd.\n"


def test_how_executors_stand_to_hccl(capsys: pytest.CaptureFixture[str]) -> None:
    """One rank copies its input, as HCCL's does; nobody else has a gather."""
    assert main(["list", "--json"]) == 0
    found = {e["name"]: e["fidelity"] for e in json.loads(capsys.readouterr().out)["executors"]}
    proof = found["AllGatherSingleExecutor"].pop("proof")
    assert proof["source"] == "libochao-huawei/hcomm@8958adb"
    assert proof["calls"] > 0
    assert found["AllGatherVMeshOpbaseExecutor"]["proof"] is None
    assert found["AllGatherSingleExecutor"] == {
        "kind": "same",
        "deviation": None,
        "sources": [
            "xiaobingling93-pixel/cann-hcomm@b5f3e5b:src/algorithm/impl/coll_executor/"
            "coll_all_gather/coll_all_gather_single_rank_executor.cc"
        ],
    }
    assert main(["list", "AllGatherVMeshOpbaseExecutor"]) == 0
    assert "fidelity: same (read)" in capsys.readouterr().out
    assert main(["list", "--op", "gather"]) == 0
    assert "fidelity: ours. HCCL has no gather in its API." in capsys.readouterr().out
