"""`hccl-py numerics`: one call, all sizes, two calls, certificates, and what is refused."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hccl_py as hccl
from hccl_interop.msccl import to_xml
from hccl_py.cli import main

ROWS = (
    *("all_reduce", "--topology", "atlas-900-a3", "--servers", "1", "--devices", "8"),
    *("-d", "bf16", "--buffsize", "512", "--shape", "184x5120", "--same-as", "736x5120"),
)
"""The rows of a small batch, reduced again in a large one: vllm-project/vllm-ascend 17169."""

MESH = ("all_reduce", "--ranks", "4", "-b", "64K")


def document(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    assert main(["numerics", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_the_rows_of_two_batches(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *ROWS, status=1)
    assert [call["executor"] for call in found["calls"]] == [
        "AllReduceMeshSmallCountExecutor",
        "AllReduceFastDoubleRingFor91093Executor",
    ]
    two = found["compared"]
    assert two["bits"] == "differ"
    assert two["share_differing"] == pytest.approx(0.556, abs=0.01)  # as measured in the report
    assert two["boundary_bytes"] == [409 * 5120 * 2, 410 * 5120 * 2]
    assert two["witness"]["one"] != two["witness"]["other"]
    cures = {cure["setting"]: cure for cure in two["cures"]}
    assert cures["HCCL_DETERMINISTIC=strict"]["bits"] == "same"
    assert cures["HCCL_DETERMINISTIC=true"]["bits"] == "differ"
    assert cures["HCCL_DETERMINISTIC=strict"]["ratio"] > 0


def test_all_sizes_are_classes_without_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    ranges = document(capsys, "all_reduce", "--ranks", "8")["ranges"]
    assert (ranges[0]["first_bytes"], ranges[-1]["last_bytes"]) == (4, 1 << 30)
    for one, following in pairwise(ranges):
        assert following["first_bytes"] == one["last_bytes"] + 4


def test_one_call_draws_a_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["numerics", *MESH, "--algo", "level0:NA;level1:ring", "--element", "100"]) == 0
    shown = capsys.readouterr().out
    assert "element 100 of rank 0" in shown
    assert "rank 3" in shown
    assert "ties to even" in shown
    assert main(["numerics", *MESH, "-o", "avg"]) == 0
    assert "avg is the sum" in capsys.readouterr().out
    assert main(["numerics", "all_gather"]) == 0
    assert "moves bytes as they are" in capsys.readouterr().out


def test_other_settings_and_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert document(capsys, *MESH, "--with", "deterministic=true", status=1)["compared"]
    op = hccl.OpParam("all_reduce", 1024, hccl.DataType.FP32, hccl.ReduceOp.SUM, level1="ring")
    program = hccl.record("AllReduceComm", op, hccl.topology_of(servers=4, devices=1))
    ring = tmp_path / "ring.xml"
    ring.write_text(to_xml(program))
    call = ("all_reduce", "--servers", "4", "--devices", "1", "-b", "64K")
    along = ("--algo", "level0:NA;level1:ring", "--against", str(ring))
    assert document(capsys, *call, *along)["compared"]["bits"] == "same"
    other = ("--algo", "level0:NA;level1:NHR", "--against", str(ring))
    assert document(capsys, *call, *other, status=1)["compared"]["bits"] == "differ"


def test_the_page_of_all_sizes_has_their_trees_in_the_language_that_is_spoken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page, call = tmp_path / "bits.html", ("numerics", "all_reduce", "--ranks", "4", "-d", "bf16")
    assert main([*call, "--html", str(page)]) == 0
    english = page.read_text("utf-8")
    assert (
        "262146 to 1G bytes: AllReduceMeshOpbaseLoopExecutor mesh; trees: 4; order: of" in english
    )
    assert english.count("<svg") >= 5
    monkeypatch.setenv("HCCL_PY_LANG", "zh")
    assert main([*call, "--html", str(page)]) == 0
    chinese = page.read_text("utf-8")
    assert '<html lang="zh">' in chinese
    assert "所有数据量" in chinese
    assert "bytes" not in chinese


def test_a_certificate_is_proved_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept, page = str(tmp_path / "bits.json"), tmp_path / "bits.html"
    assert main(["numerics", *MESH, "--certificate", kept, "--html", str(page)]) == 0
    assert "rank 3" in page.read_text("utf-8")
    assert main(["numerics", "--check", kept]) == 0
    assert "the certificate holds" in capsys.readouterr().out
    text = Path(kept).read_text("utf-8")
    digest = json.loads(text)["calls"][0]["trees"][0]
    Path(kept).write_text(text.replace(digest, "0" * len(digest)))
    assert main(["numerics", "--check", kept]) == 1
    assert "1 trees are gone" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "No op is named"),
        (("all_reduce", "--shape", "0x5"), "has 0 bytes"),
        (("all_reduce", "--shape", "4x4", "-b", "1K"), "both say the size"),
        ((*MESH, "--same-as", "1M", "-e", "2M"), "-e asks for many sizes"),
        ((*MESH, "--with", "nothing"), "nothing"),
        ((*MESH, "--with", "colour=red"), "colour"),
        ((*MESH, "--with", "servers=two"), "'two' is no number"),
        ((*MESH, "--with", "zero_copy=perhaps"), "'perhaps' is neither"),
        ((*MESH, "--with", "reduce_op=prod"), "different reductions"),
        (("--check", "none.json"), "none.json"),
        (("all_reduce", "--check", "none.json", "-e", "1M"), "--check takes sizes"),
    ],
)
def test_bad_input_is_a_sentence(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["numerics", *words]) == 2
    captured = capsys.readouterr().err
    assert message in captured
    assert captured.count("error:") == 1
    assert "Traceback" not in captured
