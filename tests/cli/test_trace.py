"""`hccl-py trace`: numbers of HCCL's mesh all-gather, counted in what was recorded."""

import json
from collections import Counter
from typing import Any

import pytest

from hccl_py.cli import main


def trace_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["trace", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


@pytest.fixture
def mesh(capsys: pytest.CaptureFixture[str]) -> Any:
    return trace_json(capsys, "all_gather", "--ranks", "4")


def test_the_head(mesh: Any) -> None:
    others = ("resources", "steps", "tasks", "total_us", "accuracy")
    head = {name: value for name, value in mesh.items() if name not in others}
    assert head == {
        "schema": "hccl-py.trace/1",
        "op": "all_gather",
        "ranks": 4,
        "topology": "Atlas 800T A2, 1 server x 4 devices",
        "bytes": 1 << 20,
        "count": 65536,
        "dtype": "fp32",
        "reduce_op": None,
        "mode": "op_base",
        "executor": "AllGatherMeshOpbaseExecutor",
        "algorithm": {"level0": "mesh"},
        "rounds": 1,
        "network": "uncontended",
        "cost": "atlas-800t-a2",
        "slow": [],
        "clock": "model",
    }
    assert mesh["total_us"] == max(task["effect_us"] for task in mesh["tasks"])


def test_the_mesh_s_resources(mesh: Any) -> None:
    needs = {"sub_streams": 3, "notifies": 6, "transports": 3, "scratch_bytes": 0}
    assert mesh["resources"] == [{"rank": rank, **needs} for rank in range(4)]


@pytest.mark.parametrize("rank", range(4))
def test_the_mesh_s_tasks(mesh: Any, rank: int) -> None:
    mine = [task for task in mesh["tasks"] if task["rank"] == rank]
    assert len(mine) == 43
    assert Counter(task["kind"] for task in mine)["notify_wait"] == 18
    streams: dict[int, list[str]] = {}
    for task in mine:
        kinds = streams.setdefault(task["stream"], [])
        assert task["index"] == len(kinds)
        kinds.append(task["kind"])
    post, wait = "notify_post", "notify_wait"
    meet = [post, post, post, wait, wait, wait, "copy"]
    read = [post, post, post, "copy", wait, wait, wait, "copy"]
    assert streams.pop(0) == ["copy", *meet, *read]
    meet, read = [wait, post, wait, post], [wait, "read", post, wait, post]
    assert list(streams.values()) == [[*meet, *read]] * 3


def test_notifies_name_who_waits_for_whom(mesh: Any) -> None:
    places = {(t["rank"], t["stream"], t["index"]): t for t in mesh["tasks"]}
    waits = [task for task in mesh["tasks"] if task["kind"] == "notify_wait"]
    for wait in waits:
        post = places[tuple(wait["waits_for"])]
        assert post["kind"] == "notify_post"
        assert post["notify"] == wait["notify"]
        assert post["effect_us"] <= wait["end_us"]
        assert wait["peer"] in (None, post["rank"])
    assert len({tuple(wait["waits_for"]) for wait in waits}) == len(waits)
    assert {t["notify"] for t in waits if t["peer"] is not None} == {"Ack", "DataSignal"}


def test_memory_of_a_read(mesh: Any) -> None:
    (read,) = (
        t for t in mesh["tasks"] if t["kind"] == "read" and t["rank"] == 0 and t["peer"] == 3
    )
    assert read["bytes"] == 1 << 18
    assert read["src"] == {"rank": 3, "buffer": "CCL_OUT", "offset": 0}
    assert read["dst"] == {"rank": 0, "buffer": "OUT", "offset": 3 << 18}
    assert read["label"] == "all-gather"
    assert read["source"].startswith("all_gather/mesh_opbase.py:")
    assert (read["notify"], read["waits_for"]) == (None, None)


def test_a_program_without_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    document = trace_json(capsys, "all_gather", "--ranks", "1", "-b", "0")
    assert len(document["tasks"]) == 1
    assert document["total_us"] == 0


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_fit_the_screen(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["trace", "all_reduce", "--ranks", "8", "--all-ranks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)
    assert sum(line.startswith("rank ") and " tasks: " in line for line in lines) == 8


def test_a_screen_that_is_wider_than_any(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "999999999")
    assert main(["trace", "all_reduce", "--ranks", "2"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 10_000


@pytest.mark.parametrize("width", [1, 9])
def test_screens_that_are_too_narrow_for_anything(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["trace", "all_to_all_v"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 80


def test_another_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "all_gather", "--rank", "2"]) == 0
    output = capsys.readouterr().out
    assert "rank 2: 43 tasks: 18 notify_post, 18 notify_wait, 4 copy, 3 read" in output
    assert "read rank 1 CCL_Out[0:256K]" in output


def test_a_limit_says_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["trace", "all_gather", "--ranks", "40", "--topology", "mesh", "--rank", "0"]
    assert main(command) == 0
    output = capsys.readouterr().out
    assert "rank 0: 511 tasks" in output
    assert "the first 200 tasks of 16 of 40 streams; --limit 0 draws all" in output
    assert main([*command, "--limit", "0"]) == 0
    output = capsys.readouterr().out
    assert "--limit" not in output
    assert "sub 38" in output
