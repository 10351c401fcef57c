"""`hccl-py check`: targets, options, the report, the document, the exit status."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hccl_executors import EXECUTORS
from hccl_py.cli import main
from hccl_py.cli.check_targets import SourceCalls, find_targets
from hccl_py.cli.errors import USAGE, WRONG
from hccl_py.cli.options import ProgramOptions
from hccl_py.formats import save
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.executor import ops_of
from tests.recording import op_of, recorded

BROKEN: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "fp32", "count": 1},
    "ranks": 2,
    "link": "sdma",
    "exported": ["CCL"],
    "buffers": {"0": {"IN": 4, "OUT": 8, "CCL": 4}, "1": {"IN": 4, "OUT": 8, "CCL": 4}},
    "tasks": {
        "0": {
            "0": [
                ["copy", ["IN", 0, 4], ["OUT", 8, 4], {"source": "my_ring.py:12"}],
                ["wait", 1, 0, {"source": "my_ring.py:13"}],
            ]
        }
    },
}

AUTHOR = '''
from hccl_py.plugins.executor import Mode, PlaneRequest, ResourceRequest


class Right:
    """AllGather over the mesh of all ranks, in op-base mode."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op, topology):
        return op.mode is Mode.OP_BASE and topology.is_single_server

    def resources(self, op, rank):
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),), sub_streams=rank.size - 1)

    def orchestrate(self, op, rank):
        staged = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        with rank.flat.fork() as subs:
            rank.main.copy(rank.user_out[rank.id], staged)
            for sub, peer, link in subs:
                link.tx_ack(sub)
                link.rx_ack(sub)
                sub.copy(rank.user_out[peer], link.remote(staged))
                self.done(link, sub)

    def done(self, link, sub):
        link.tx_data_signal(sub)
        link.rx_data_signal(sub)


class Careless(Right):
    """Does not say when it has read."""

    def done(self, link, sub):
        pass


class Misspelt(Right):
    """Uses a name that is not there."""

    def orchestrate(self, op, rank):
        rank.man.copy(rank.user_out, rank.user_in)


class Nobody:
    """No executor."""


def right():
    return Right()


made = Right()
'''

FEW = ["--ranks", "2,3", "--count", "64"]


CALLS = SourceCalls(ProgramOptions())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with an author's module and a good and a broken program."""
    (tmp_path / "my_gather.py").write_text(AUTHOR)
    save(recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 64), 4), tmp_path / "good.npz")
    save(recorded("AllGatherComm", op_of("all_gather", 64), 3), tmp_path / "ring.json")
    (tmp_path / "broken.json").write_text(json.dumps(BROKEN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_gather", raising=False)
    return tmp_path


def check_json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert main(["check", *arguments, "--json"]) == status
    captured = capsys.readouterr()
    if status != USAGE:
        assert captured.err == ""
    document = json.loads(captured.out)
    assert document["schema"] == "hccl-py.check/1"
    assert document["ok"] == (status == 0)
    return document["reports"]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what is said about bad usage or input."""
    assert main(["check", *arguments]) == USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "\nhint: " in captured.err
    assert "Traceback" not in captured.err
    return captured.err


def test_good_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = check_json(capsys, "good.npz", "ring.json")
    assert [(r["target"], r["ok"], r["cases"]) for r in reports] == [
        ("good.npz", True, 1),
        ("ring.json", True, 1),
    ]


def test_a_broken_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = check_json(capsys, "broken.json", status=WRONG)
    found = {finding["class"]: finding for finding in report["findings"]}
    assert found["OUT_OF_BOUNDS"]["tasks"] == ["r0.s0.t0"]
    assert found["OUT_OF_BOUNDS"]["source"] == "my_ring.py:12"
    assert found["WAIT_WITHOUT_POST"]["tasks"][0] == "r0.s0.t1"
    assert report["ok"] is False


def test_the_report_of_a_broken_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "broken.json"]) == WRONG
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0].startswith("broken.json: ")
    assert "errors" in lines[0]
    assert lines[1] == "  all_gather fp32, 2 ranks, 2 tasks"
    assert any(line.startswith("OUT_OF_BOUNDS (1 error): ") for line in lines)
    assert "    at my_ring.py:12" in lines
    assert any("▸ task 0  copy user_in[0:4] to user_out[8:12]" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_several_targets_are_counted_at_the_end(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "good.npz", "broken.json", "ring.json"]) == WRONG
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split(":")[0] for line in lines if ".json:" in line or ".npz:" in line]
    assert heads == ["good.npz", "broken.json", "ring.json"]
    assert lines[-1] == "3 targets: 2 ok, 1 with errors"


@pytest.mark.sweep
def test_an_op_is_all_of_its_executors(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--ranks", "3", "--count", "64", "-d", "int8"]
    assert main(["check", "scatter", *few, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {report["target"] for report in document["reports"]}
    assert found | {*document["unsuited"]} == {
        cls.__name__ for cls in EXECUTORS if "scatter" in ops_of(cls())
    }
    assert all(report["cases"] > 1 for report in document["reports"])
    unsuited = document["unsuited"]
    assert "ScatterSingleExecutor" in unsuited
    assert main(["check", "scatter", *few]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    none = f"{len(unsuited)} suit no such call"
    assert last == f"{len(found) + len(unsuited)} targets: {len(found)} ok, {none}"


def test_an_op_and_a_size_are_the_call_of_the_executor_that_is_chosen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["all_reduce", "--topology", "ascend950", "--servers", "2", "--devices", "8"]
    assert main(["check", *call, "-b", "64M"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "AicpuAllReduceParallelMeshNHR: ok" in text
    assert "16 ranks" in text
    few = ["--ranks", "2,4", "-b", "1K", "-r", "1", "--mode", "graph"]
    assert main(["check", "broadcast", *few]) == 0
    assert "2 targets: 2 ok" in capsys.readouterr().out


def test_a_barrier_is_one_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "barrier", "--ranks", "2,3"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "barrier sum of 32 bytes, fp32, op_base, AllReduceMeshSmallCountExecutor: ok" in text
    assert "2 targets: 2 ok" in text
    assert main(["check", "barrier", "--count", "8"]) == USAGE
    assert "--count narrows the calls of executors, and barrier" in capsys.readouterr().err


def test_an_op_of_which_no_executor_is_left_is_not_fine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "send_recv", "--in-place", "--json"]) == WRONG
    assert json.loads(capsys.readouterr().out)["ok"] is False
    assert main(["check", "send_recv", "--in-place"]) == WRONG
    text = capsys.readouterr().out
    assert "SendExecutor: suits no such call\n" in text
    assert "2 targets: 0 ok, 2 suit no such call" in text


def test_what_is_named_twice_is_reported_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = ["ring.json", "broken.json", "ring.json", "AllGatherComm", "AllGatherComm"]
    reports = check_json(capsys, *targets, *FEW, status=WRONG)
    assert [report["target"] for report in reports] == targets
    assert reports[0] == reports[2]
    assert main(["check", "ring.json", "ring.json"]) == 0
    assert capsys.readouterr().out.endswith("\n2 targets: 2 ok\n")


def test_an_author_s_executor(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target in ("my_gather:Right", "my_gather:made"):
        (report,) = check_json(capsys, target, *FEW)
        assert report["target"] == target


def test_an_author_s_mistake(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = check_json(capsys, "my_gather:Careless", *FEW, status=WRONG)
    errors = [f for f in report["findings"] if f["severity"] == "error"]
    assert "RACE_RW" in {finding["class"] for finding in errors}
    assert all(finding["case"] for finding in errors)
    assert "my_gather.py:" in str(errors[0]["source"])


def test_an_author_s_mistake_is_shown_with_its_tasks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "my_gather:Careless", *FEW]) == WRONG
    output = capsys.readouterr().out
    assert output.startswith("my_gather:Careless: ")
    assert "    smallest case: 2 ranks" in output
    assert "      ▸ task " in output


def test_what_is_wrong_with_several_targets_in_the_same_way_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for kept in ("a.gone", "b.gone"):
        assert main(["check", kept, kept]) == USAGE
        assert capsys.readouterr().err.count("error: ") == 1
    assert main(["check", "a.gone", "b.gone", "a.gone"]) == USAGE
    assert capsys.readouterr().err.count("error: ") == 2


def test_an_executor_that_cannot_be_recorded_does_not_hide_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "my_gather:Misspelt", "good.npz", *FEW]) == USAGE
    captured = capsys.readouterr()
    assert "good.npz: ok" in captured.out
    assert captured.out.endswith("2 targets: 1 ok, 1 not verified\n")
    assert "Did you mean main" in captured.err
    (report,) = check_json(capsys, "my_gather:Misspelt", "good.npz", *FEW, status=USAGE)
    assert report["target"] == "good.npz"


def test_repeat_says_how_often_the_op_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = check_json(capsys, "my_gather:Careless", *FEW, "--repeat", "1", status=0)
    twice = check_json(capsys, "my_gather:Careless", *FEW, status=WRONG)
    assert {f["repeat"] for r in once for f in r["findings"]} <= {1}
    assert 2 in {f["repeat"] for r in twice for f in r["findings"]}


def test_numeric_runs_with_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = check_json(capsys, "ring.json", "--numeric")
    assert report["numeric"] == {"ok": True, "programs": 1, "runs": 40, "wrong": None}
    (report,) = check_json(capsys, "my_gather:Right", *FEW, "--numeric")
    assert report["numeric"]["ok"]
    assert report["numeric"]["programs"] == report["cases"]


def test_numeric_says_where_it_cannot_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {"0": {"0": [["copy", ["CCL", 0, 2], ["CCL", 2, 2]]]}}
    document = {**BROKEN, "tasks": tasks, "buffers": {"0": {"CCL": 4}, "1": {"CCL": 4}}}
    (folder / "no_data.json").write_text(json.dumps(document))
    (report,) = check_json(capsys, "no_data.json", "--numeric", status=WRONG)
    assert any("not run with data: " in note for note in report["notes"])
    assert "numeric" not in report


def test_deterministic_makes_the_order_of_sums_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["AllReduceMeshOpbaseLoopExecutor", "--ranks", "4", "--count", "256", "-d", "fp32"]
    (report,) = check_json(capsys, *command, "-o", "sum")
    severities = {f["severity"] for f in report["findings"] if f["class"] == "REDUCE_ORDER_NONDET"}
    assert severities == {"warning"}
    (report,) = check_json(capsys, *command, "-o", "sum", "--deterministic", status=WRONG)
    check_json(capsys, *command, "-o", "max", "--deterministic")


def test_verbose_shows_every_hint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(BROKEN)
    document["tasks"] = {"0": {"0": [["wait", 1, k] for k in range(3)]}}
    (folder / "waits.json").write_text(json.dumps(document))
    assert main(["check", "waits.json"]) == WRONG
    short = capsys.readouterr().out
    assert main(["check", "waits.json", "-v"]) == WRONG
    assert len(capsys.readouterr().out) >= len(short)


BAD_TARGETS = {
    "all_gathr": ["Target 'all_gathr' is unknown.", "all_gather"],
    "AllGatherCom": ["Target 'AllGatherCom' is unknown.", "AllGatherComm"],
    "AllGatherMeshOpbase": ["is unknown", "AllGatherMeshOpbaseExecutor"],
    "zzzz": ["Target 'zzzz' is unknown.", "The nearest are ", "`hccl-py list` shows all"],
    "goood": ["Target 'goood' is unknown.", "good.npz"],
    "brokn.json": ["There is no file 'brokn.json'.", "Did you mean broken.json"],
    "./brokn.json": ["There is no file './brokn.json'.", "Did you mean ./broken.json"],
    "nowhere/ring.json": ["There is no file 'nowhere/ring.json'.", "ring.json"],
    ".": [". has no sources in op_host/.", "hccl-py.toml may name other places"],
    "my_gather.py": ["programs are kept in .json and .npz files, not in .py"],
    "my_gather:Wright": ["has no Wright", "Did you mean Right"],
    "my_gather:right": [
        "target 'my_gather:right' is no class, but a function.",
        "Did you mean Right",
    ],
    "os:path": ["target 'os:path' is no class, but a module.", "Did you mean PathLike?"],
    "json:dumps": ["is no class", "Known: JSONDecodeError, JSONDecoder, JSONEncoder."],
    "my\ngather:Right": ["target 'my\\ngather:Right' is not module:Class"],
    "my_gather:Nobody": ["executor 'Nobody'", "attribute op is missing"],
    "no_such_module:X": ["There is no module no_such_module"],
    ":X": ["target ':X' is not module:Class", "my_ring:MyRing"],
    "": ["Target '' is unknown"],
}


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_bad_targets(target: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, target)
    for words in BAD_TARGETS[target]:
        assert words in said


def test_a_dangling_link_says_where_it_leads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "link.json").symlink_to("gone.json")
    said = refused(capsys, "link.json")
    assert "link.json: the file cannot be read: it is a link that leads to no file." in said
    assert "hint: It leads to gone.json." in said
    (folder / "loop.json").symlink_to("loop.json")
    assert "It leads to loop.json." in refused(capsys, "loop.json")


BAD_OPTIONS = {
    "--product a2": ["--product 'a2' is unknown", "atlas-800t-a2"],
    "--repeat 0": ["--repeat", "hint"],
    "--repeat 65": ["--repeat", "64", "hint"],
    "--ranks 4,x": ["--ranks '4,x' is not a list of numbers from 1 to", "--ranks 1,4"],
    "--ranks 0": ["--ranks '0' is not a list", "from 1"],
    "--ranks 4,": ["--ranks '4,' is not a list"],
    "--ranks 4 --servers 2": ["ranks, not 4"],
    "--topology atlas-800": ["unknown", "Did you mean atlas-800-9000 or atlas-800t-a2?"],
    "--servers 2 --devices 9": ["Server 0 has 9 devices"],
    "--count -1": ["--count '-1' is not a list of numbers from 0"],
    "--count 99999999999999999999": ["--count", "is not a list"],
    "-r 1,two": ["-r/--root '1,two' is not a list", "For example --root 1,4"],
    "--count 4 -b 1K": ["--count narrows the calls", "Leave --count out, or name executors"],
    "--calls 2 -b 1K": ["--calls is about"],
    "-d fp32,fp33": ["Data type 'fp33' is unknown", "Did you mean fp32"],
    "-o sum,sim": ["Reduce op 'sim' is unknown", "Did you mean sum?"],
    "--mode eager": ["--mode 'eager' is unknown", "graph, op_base"],
    "--max-size 3Q": ["--max-size '3Q' is not a size", "64M"],
    "--buffsize 0": ["illegal value 0", "1 to 1048576"],
    "--buffsize 2000000": ["illegal value 2000000", "1 to 1048576"],
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_bad_options(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "all_gather", *options.split())
    for words in BAD_OPTIONS[options]:
        assert words in said


def test_every_number_of_ranks_is_looked_at_before_anything_is_verified(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two servers have 16 ranks, and no 4."""
    few = ["--count", "64", "-d", "int8", "--servers", "2"]
    assert "ranks, not 4" in refused(capsys, "AllGatherMeshOpbaseExecutor", "--ranks", "16,4", *few)


@pytest.fixture
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package whose entry point names a module without executors."""
    (tmp_path / "odd.py").write_text("")
    folder = tmp_path / "odd-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[hccl_py.executors]\nodd = odd\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed_executors.cache_clear()
    yield
    installed_executors.cache_clear()


@pytest.mark.usefixtures("broken_plugin")
@pytest.mark.parametrize("command", ["check", "trace", "run"])
def test_broken_plugins_are_warned_of_everywhere(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = ["--count", "3", "-d", "fp32", "--mode", "op_base"]
    options = narrow if command == "check" else ["-b", "1K"]
    target = "AllGatherComm" if command == "check" else "all_gather"
    assert main([command, target, "--ranks", "2", *options]) == 0
    assert capsys.readouterr().err == "warning: Plugin odd has no tuple EXECUTORS.\n"


def test_networks_and_their_files_are_topologies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "three.json"
    ends = [{"from": "a", "to": "b", "gbps": 10}, {"from": "b", "to": "c", "gbps": 10}]
    ranks = [{"name": name} for name in "abc"]
    path.write_text(json.dumps({"name": "three", "ranks": ranks, "links": ends}))
    narrow = ["--count", "3", "-d", "fp32", "--mode", "op_base"]
    for topology in ("torus:2x2", str(path)):
        (report,) = check_json(capsys, "AllGatherComm", "--topology", topology, *narrow)
        assert report["ok"]
        assert report["cases"] > 0


def test_names_of_files_stay_on_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad\n\x1b.json").write_text("{")
    said = refused(capsys, "bad\n\x1b.json")
    assert said.startswith("error: bad\\n\\x1b.json: line 1 column 2: ")
    assert said.count("\n") == 2
    assert "bad\\n\\x1b.json" in refused(capsys, "bad.json")
    (folder / "ring.json").rename("ri\nng.json")
    assert "out for ri\\nng.json." in refused(capsys, "ri\nng.json", "--ranks", "4")
    assert main(["check", "ri\nng.json"]) == 0
    assert capsys.readouterr().out.startswith("ri\\nng.json: ok\n")
    (report,) = check_json(capsys, "ri\nng.json")
    assert report["target"] == "ri\nng.json"


def test_a_sweep_is_narrowed_a_program_is_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "ring.json", "--ranks", "4")
    assert "--ranks does not go with a program file, which says that itself." in said


def test_nothing_runs_before_all_targets_are_known(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.json").write_text('{"format": "hccl-py.program/1", "ranks": "two"}')
    said = refused(capsys, "good.npz", "all_gathr", "bad.json")
    assert said.count("error: ") == 2
    assert "bad.json: " in said


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("not JSON", "line 1 column 1: the text is not JSON"),
        ("[]", "$: "),
        (json.dumps({**BROKEN, "ranks": -1}), "ranks: "),
        (json.dumps({**BROKEN, "tasks": {"0": {"0": [["cpy"]]}}}), "tasks.0.0[0]"),
        ("\x00" * 100, "line 1 column 1: "),
        ("", "line 1 column 1: "),
    ],
)
def test_bad_files_get_a_sentence(
    text: str, path: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.json").write_text(text)
    said = refused(capsys, "bad.json")
    assert said.count("\n") == 2
    assert f"bad.json: {path}" in said


def test_large_files_are_refused_by_their_size(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("large.json", "wb") as file:
        file.truncate((32 << 20) + 1)
    assert "expected at most 33,554,432 bytes, found 33,554,433" in refused(capsys, "large.json")
    size = (folder / "ring.json").stat().st_size
    assert f"at most 1,024 bytes, found {size:,}" in refused(
        capsys, "ring.json", "--max-size", "1K"
    )
    assert "at most" in refused(capsys, "good.npz", "--max-size", "1K")
    check_json(capsys, "ring.json", "good.npz", "--max-size", "64M")
    assert "found 33,554,433" not in refused(capsys, "large.json", "--max-size", "33M")


def test_more_tasks_than_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hccl_py.cli.call.BYTES_PER_TASK", 1 << 40)
    assert "tasks would take" in refused(capsys, "good.npz")


def test_a_file_with_an_op_s_name_is_not_in_the_way(folder: Path) -> None:
    (folder / "all_gather").mkdir()
    targets, problems = find_targets(["all_gather"], CALLS)
    assert len(targets) > 1
    assert not problems


def test_a_pipe_without_unicode_gets_plain_text(folder: Path) -> None:
    code = "import sys; from hccl_py.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "check", "broken.json"]
    environment = {"PYTHONIOENCODING": "ascii", "PATH": ""}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (WRONG, b"")
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    assert b"      > task 0" in done.stdout


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--help"]) == 0
    output = capsys.readouterr().out
    for option in ("--repeat", "--in-place", "--deterministic", "--product", "--json", "--debug"):
        assert option in output


def test_what_an_executor_prints_is_no_part_of_the_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "my_gather.py").write_text(
        AUTHOR + "\n\nclass Prints(Right):\n    def suits(self, op, topology):\n"
        '        print("suits?")\n        return super().suits(op, topology)\n'
    )
    assert main(["check", "my_gather:Prints", *FEW, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["ok"]
    assert "suits?" in captured.err


@pytest.mark.parametrize("method", ["suits", "orchestrate"])
def test_an_executor_that_exits_does_not_end_the_check(
    method: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "my_gather.py").write_text(
        f"{AUTHOR}\n\nclass Exits(Right):\n    def {method}(self, op, more):\n        exit()\n"
    )
    assert main(["check", "my_gather:Exits", *FEW]) == USAGE
    said = capsys.readouterr().err
    assert "SystemExit" in said
    assert "my_gather.py:" in said


@pytest.mark.parametrize(("words", "text"), [([], "in place"), (["slot"], "in place (slot)")])
def test_in_place_alone_and_with_a_word(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["AllGatherMeshOpbaseExecutor", "--ranks", "4", "--count", "100", "-d", "int8"]
    call += ["--topology", "atlas-800t-a2"]
    assert main(["check", *call, "--json", "--in-place", *words]) == 0
    [report] = json.loads(capsys.readouterr().out)["reports"]
    assert report["findings"]
    assert all(finding["case"].split(", ")[4] == text for finding in report["findings"])
