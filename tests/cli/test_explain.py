"""`hccl-py explain`: the selection with its reasons, what it costs, where it changes."""

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.cli import main
from hccl_py.orchestration.record import record
from hccl_py.program import usage
from hccl_py.selection.spans import Choice, spans
from hccl_py.trace import document


def explain_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["explain", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = explain_json(capsys, "all_gather", "--ranks", "4", "-b", "1M")
    assert document["schema"] == "hccl-py.explain/1"
    assert document["executor"] == document["hccl_executor"] == "AllGatherMeshOpbaseExecutor"
    assert document["algorithm"] == {"level0": "mesh"}
    assert document["tag"].startswith("AllGather_hccl_world_group")
    assert "level0 is mesh" in document["reasons"]
    against = {r["executor"]: r["reason"] for r in document["rejected"]}
    assert against["AllGatherComm"].startswith("suits, but AllGatherMeshOpbaseExecutor comes first")
    assert against["AllGatherRingExecutor"] == "needs level0 ring, it is mesh"
    assert document["resources"] == [
        {
            "ranks": [0, 1, 2, 3],
            "sub_streams": 3,
            "notifies": 6,
            "transports": 3,
            "scratch_bytes": 0,
        }
    ]
    assert document["ccl_buffer_bytes"] == 200 << 20
    assert (document["rounds"], document["tasks"]) == (1, 4 * 43)
    assert document["why_levels"] == {
        "level0": "the links of 4 devices in a server, which HCCL_ALGO does not change"
    }
    assert [(r["min_bytes"], r["max_bytes"]) for r in document["ranges"]] == [(1 << 10, 16 << 30)]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_paths_break_between_their_parts(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    arguments = ["all_to_all", "--servers", "2", "--devices", "4", "-b", "64K"]
    sources = explain_json(capsys, *arguments)["fidelity"]["sources"]
    assert main(["explain", *arguments]) == 0
    text = capsys.readouterr().out
    names = [part for source in sources for part in source.split("/")]
    assert len(sources) == 3
    assert all(name in text for name in names)
    assert "".join(sources) in re.sub(r"\s+", "", text)
    assert (sources[0] in text) == (width == 200)
    assert all(len(line) <= width for line in text.splitlines())


def test_uneven_servers_have_ranks_that_need_different_things(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = explain_json(capsys, "all_reduce", "--ranks", "11", "--mode", "graph")
    assert sorted(r for found in document["resources"] for r in found["ranks"]) == [*range(11)]
    assert document["ccl_buffer_bytes"] == 0


def test_sizes_at_which_the_choice_changes(capsys: pytest.CaptureFixture[str]) -> None:
    document = explain_json(
        capsys, "all_reduce", "--servers", "2", "--devices", "8", "-b", "1K", "-e", "1G"
    )
    first, *_, last = document["ranges"]
    assert first["min_bytes"] == 1024
    assert last["max_bytes"] == 1 << 30
    assert first["hccl_executor"] != last["hccl_executor"]
    for a, b in pairwise(document["ranges"]):
        assert b["min_bytes"] == a["max_bytes"] + 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.data())
def test_spans_cover_everything_and_are_right(table: list[int], data: st.DataObject) -> None:
    def choice(size: int) -> Choice:
        return Choice(str(table[size]), "")

    sizes = st.integers(0, len(table) - 1)
    points = sorted({0, len(table) - 1, *data.draw(st.lists(sizes))})
    found = spans(points, choice)
    assert found[0].first == 0
    assert found[-1].last == len(table) - 1
    for a, b in pairwise(found):
        assert b.first == a.last + 1
        assert a.choice != b.choice
    for span in found:
        assert choice(span.first) == span.choice
    for point in points:
        (around,) = (span for span in found if span.first <= point <= span.last)
        assert around.choice == choice(point)


def test_what_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "all_gather", "--ranks", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all_gather of 1M bytes, fp32, op_base"
    assert lines[1] == "4 ranks: Atlas 800T A2, 1 server x 4 devices"
    words = "\n".join(lines)
    assert "AllGatherMeshOpbaseExecutor, level0 mesh" in words
    assert "ranks 0-3, each: 3 sub streams, 6 notifies, 3 transports, scratch 0" in words


def test_where_hccl_takes_another_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_OP_EXPANSION_MODE", "AIV")
    command = ["explain", "all_gather", "--servers", "1", "--devices", "8", "-b", "64K", "-e", "1G"]
    assert main(command) == 0
    output = capsys.readouterr().out
    assert "runs         AllGatherMeshOpbaseExecutor, level0 mesh" in output
    assert "HCCL takes   AllGatherMeshAivSmallCountExecutor" in output
    document = explain_json(capsys, *command[1:])
    assert [(found["min_bytes"], found["hccl_executor"]) for found in document["ranges"]] == [
        (64 << 10, "AllGatherMeshAivSmallCountExecutor"),
        (8 * 700 * 1024 + 1, "AllGatherMeshAivExecutor"),
    ]


def test_people_read_the_table_s_executors_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "all_reduce", "--ranks", "8", "-b", "1M"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(k for k, line in enumerate(lines) if line.startswith("not "))
    end = next(k for k, line in enumerate(lines) if line.startswith("ruleset "))
    shown = " ".join(" ".join(lines[begin:end]).split())
    assert "AllReduceMeshSmallCountExecutor: needs bytes <= 262144, it is 1048576" in shown
    assert "91093" not in shown
    assert re.search(r" \d+ more: --json says why$", shown)


def test_the_usual_sizes_end_at_the_most_that_a_call_may_move(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An item of a byte type has several times the bytes of -b."""
    document = explain_json(capsys, "batch_send_recv", "--ranks", "8", "-d", "uint8", "-b", "4")
    assert document["ranges"][-1]["max_bytes"] >= 8 << 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["barrier", "-e", "1M"], "barrier has no data size"),
        (["barrier", "-b", "1M"], "barrier has no data size"),
        (["all_gather_v", "--ranks", "2", "--counts", "c.json", "-e", "1M"], "says the sizes"),
    ],
)
def test_a_range_needs_a_size(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "c.json").write_text("[1, 2]")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_memory_counts_buffers_and_scratch(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain_json(capsys, "all_gather", "--ranks", "1")["memory_bytes"] == 0
    document = explain_json(capsys, "all_gather", "--ranks", "4", "--buffsize", "7")
    assert document["memory_bytes"] == 2 * (7 << 20)
    command = ["all_reduce", "--ranks", "11", "--mode", "graph", "-o", "prod", "-b", "1M"]
    document = explain_json(capsys, *command)
    scratch = max(found["scratch_bytes"] for found in document["resources"])
    assert document["memory_bytes"] == scratch > 0


@pytest.mark.parametrize(
    ("call", "transports"),
    [
        (["batch_send_recv", "--ranks", "4"], 2 * 2),  # two planes, each with both neighbours
        (["all_reduce", "--topology", "atlas-900-a3", "--ranks", "8", "-b", "64M"], 2 * 2),
        (["all_reduce", "--topology", "atlas-800-9000", "--servers", "2", "--devices", "8"], 9),
    ],
)
def test_each_plane_has_links_of_its_own(
    call: list[str], transports: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four rings of 910A have two neighbours each, and a server's rank one in the other server."""
    document = explain_json(capsys, *call)
    assert document["resources"][0]["transports"] == transports
    assert document["unused"] == []


def test_levels_and_refusal_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = explain_json(capsys, "all_gather", "--servers", "4", "--devices", "8", "-b", "64M")
    assert document["hccl_algorithm"] == {"level0": "mesh", "level1": "pipeline"}
    assert (document["hccl_result"], document["refusal"]) == (None, None)
    odd = ["--topology", "atlas-800-9000", "--servers", "2", "--devices", "3"]
    document = explain_json(capsys, "all_reduce", *odd)
    assert document["hccl_executor"] is None
    assert document["hccl_result"] == "HCCL_E_PARA"
    assert "all ranks are one ring" in document["refusal"]
    assert document["executor"]


def test_people_read_what_hccl_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    odd = ["--topology", "atlas-800-9000", "--servers", "2", "--devices", "3"]
    assert main(["explain", "all_reduce", *odd, "-b", "1K", "-e", "4K"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "none, it refuses with HCCL_E_PARA: level1:H-D_R needs servers" in output
    assert "none: it refuses" in output.rpartition("HCCL takes")[2]


def test_people_read_hccl_s_levels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "all_gather", "--servers", "4", "--devices", "8", "-b", "64M"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "AllGatherMeshOpbasePipelineExecutor, level0 mesh" in output
    assert "memory 400M bytes at the rank that needs most" in output


def test_nothing_is_worked_out_twice(capsys: pytest.CaptureFixture[str]) -> None:
    looked = {usage.differences.__code__: 0, document.resources.__code__: 0, record.__code__: 0}

    def seen(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in looked:
            looked[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        assert main(["explain", "all_reduce", "--ranks", "4"]) == 0
    finally:
        sys.setprofile(before)
    assert "HCCL takes" in capsys.readouterr().out
    assert set(looked.values()) == {1}


def test_the_same_is_only_said_of_what_is(capsys: pytest.CaptureFixture[str]) -> None:
    """An all-gather of one rank is HCCL's copy; HCCL does not take what the caller names."""
    shown = {}
    for options in (("--ranks", "1"), ("--executor", "AllGatherComm")):
        assert main(["explain", "all_gather", *options]) == 0
        lines = capsys.readouterr().out.splitlines()
        shown[options[0]] = [line for line in lines if line.startswith(("HCCL takes", "fidelity"))]
    assert shown["--ranks"][0] == "HCCL takes   the same"
    assert re.match(r"fidelity +same \(run\): equal in \d+ calls that HCCL", shown["--ranks"][1])
    assert not any("the same" in line for line in shown["--executor"])
