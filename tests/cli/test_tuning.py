"""`hccl-py tuning`, and `--select` of every command that takes a call."""

import json
from pathlib import Path

import pytest

from hccl_py.cli import main
from hccl_py.tuning.points import evaluate
from hccl_py.tuning.table import TuningTable
from hccl_py.tuning.tune import alternatives, tune
from tests.tuning.evaluations import point

CALL = ("all_reduce", "--servers", "2", "--devices", "2")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose winner at 1K is not HCCL's choice, and at 1G is."""
    calls = [point(size, servers=2, devices=2, ranks=None) for size in (1 << 10, 1 << 30)]
    points = [one for call in calls for one in alternatives(call)]
    kept = [
        one
        for one in points
        if one.call.bytes == 1 << 10 or (one.executor or "").startswith("AllReduceM")
    ]
    path = tmp_path_factory.mktemp("tuning") / "tuned.json"
    tune(kept, [evaluate(one) for one in kept]).write(path)
    return str(path)


def test_a_table_is_shown_with_what_hccl_takes(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assert main(["tuning", file]) == 0
    title, model, head, first, *rest = capsys.readouterr().out.splitlines()
    assert title.startswith("all_reduce sum, fp32, op_base, buffers of 200M, on atlas-800t-a2, 2 x")
    timed = "timed uncontended by the cost model study"
    assert model == f"{timed}; rules of cann-2026.08"
    assert head.split() == ["bytes", "timed", "at", "time", "us", "HCCL", "us", "ratio", "executor"]
    assert first.split()[:2] == ["from", "0"]
    begin = next(k for k, line in enumerate(rest) if line.split()[0] == "1K")
    assert " not AllReduceMeshExecutor ring" in " ".join(" ".join(rest[begin : begin + 3]).split())


def test_the_document(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert main(["tuning", file, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "hccl-py.tuning-report/1"
    small, large = document["ranges"]
    assert (small["from_bytes"], small["to_bytes"]) == (0, 1 << 20)  # 1K and 1G: their mean
    assert (large["from_bytes"], large["to_bytes"]) == ((1 << 20) + 1, None)
    assert (small["differs"], large["differs"]) == (True, False)
    [sample] = small["samples"]
    assert sample["times_longer"] == sample["hccl_us"] / sample["simulated_us"] > 1
    assert main(["tuning", file, "--json", "--differing"]) == 0
    assert json.loads(capsys.readouterr().out)["ranges"] == [small]


def test_only_what_differs(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert main(["tuning", file, "--differing"]) == 0
    assert "1G" not in capsys.readouterr().out


def test_a_table_that_agrees_and_an_empty_one(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    table = TuningTable.read(file)
    entries = [e.with_winners([*e.winners][1:]) for e in table.entries]
    agreeing, empty = tmp_path / "agreeing.json", tmp_path / "empty.json"
    TuningTable.joined(table.costs, entries).write(agreeing)
    TuningTable(costs=(), entries=()).write(empty)
    assert main(["tuning", str(agreeing), "--differing"]) == 0
    assert capsys.readouterr().out.endswith("HCCL's rules choose the same everywhere.\n")
    assert main(["tuning", str(empty)]) == 0
    assert capsys.readouterr().out == "The table has no entries.\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gone.json", None, "gone.json: the file cannot be read: No such file or directory."),
        ("bad.json", "{", "bad.json: line 1 column 2: the text is not JSON"),
        ("other.json", "{}", "other.json: schema: expected hccl-py.tuning/1, found null."),
    ],
)
def test_bad_files(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    text: str | None,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(name).write_text(text)
    assert main(["tuning", name]) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_tables_are_written_as_rules(
    capsys: pytest.CaptureFixture[str],
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # short names, which no line breaks in two
    for form, out in (("hccl-tuner", "a.json"), ("nccl-csv", "a.csv"), ("hccl-plugin", "plugin")):
        assert main(["tuning", file, "--to", form, "-o", out]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert text.startswith(f"{out}: 0 rules ")
        assert "from 0 bytes: AllReduce" in text
        assert main(["tuning", file, "--to", form, "-o", out, "--json"]) == 2 * (out == "plugin")
        capsys.readouterr()
    assert json.loads((tmp_path / "a.json").read_text()) == {"version": 1, "op_types": {}}
    assert "nullptr" in (tmp_path / "plugin" / "rules.h").read_text()
    assert main(["tuning", file, "--to", "nccl-csv", "-o", file]) == 2
    assert "holds no file of tuner rules" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to", "hccl-tunr", "-o", "x"), "--to 'hccl-tunr' is no form of rules.\nhint: Did you"),
        (("--to", "nccl-csv"), "The rules have no place.\nhint: Name the file or folder: -o PATH."),
        (("-o", "x"), "error: -o needs a form of rules."),
    ],
)
def test_bad_forms_of_rules(
    capsys: pytest.CaptureFixture[str], file: str, options: tuple[str, ...], message: str
) -> None:
    assert main(["tuning", file, *options]) == 2
    assert message in capsys.readouterr().err


def test_explain_says_who_chose(capsys: pytest.CaptureFixture[str], file: str) -> None:
    found = {}
    for how in ("rules", "cost", file):
        assert main(["explain", *CALL, "-b", "1K", "--select", how, "--json"]) == 0
        found[how] = json.loads(capsys.readouterr().out)
    assert found["cost"]["executor"] == found[file]["executor"] != found["rules"]["executor"]
    assert {one["hccl_executor"] for one in found.values()} == {found["rules"]["executor"]}
    assert found["cost"]["reasons"][0].startswith("the cheapest of ")
    assert found[file]["reasons"][0] == (
        "the tuning table tuned.json has it for sizes from 0 to 1M bytes"
    )


def test_a_name_wins_over_selection_by_cost(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", *CALL, "--select", "cost", "--executor", "AllReduceRing", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["executor"] == "AllReduceRing"


def test_runs_selected_by_cost_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *CALL, "-b", "1K", "-n", "1", "-w", "0", "--select", "cost", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    small = "AllReduceMeshOpbaseSmallCountDeterministicExecutor"
    assert (row["check"], row["executor"]) == ("success", small)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--select", "cots"), "error: Selection 'cots' is unknown.\nhint: Did you mean cost?"),
        (("--select", "cost", "--strict-hccl"), "error: Strict asks for what HCCL takes"),
    ],
)
def test_bad_selections(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert main(["explain", *CALL, *options]) == 2
    assert message in capsys.readouterr().err


def test_compare_saves_its_winners_and_adds_to_what_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.json"
    names = "AllReduceRing,AllReduceDoubling"
    for size in ("1K", "1M"):
        options = ("-b", size, "--executors", names, "--jobs", "1", "--table", str(path), "--json")
        assert main(["compare", *CALL, *options]) == 0
    [entry] = TuningTable.read(path).entries
    assert [winner.sample.bytes for winner in entry.winners] == [1 << 10, 1 << 20]
    capsys.readouterr()


def test_tuning_makes_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made, saved = str(tmp_path / "made.json"), str(tmp_path / "saved.json")
    sizes = ["-b", "1K", "-e", "16K", "--jobs", "1"]
    names = ["--executors", "AllReduceRing,AllReduceDoubling"]
    operands = ["--servers", "2", "--devices", "2"]
    assert main(["tuning", made, "--op", "all_reduce", *operands, *sizes, *names, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["entries"] == 1
    assert [s["bytes"] for r in document["ranges"] for s in r["samples"]] == [1024, 4096, 16384]
    assert main(["compare", *CALL, *sizes, *names, "--table", saved]) == 0
    assert TuningTable.read(made) == TuningTable.read(saved)


def test_options_of_times_need_an_op(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert main(["tuning", file, "-b", "4K"]) == 2
    assert "Add --op" in capsys.readouterr().err
