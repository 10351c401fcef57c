"""Bad input gets a sentence and a hint on stderr, and exit status 2; never a traceback."""

import json
import logging
from types import SimpleNamespace

import pytest

from hccl_py.cli import main
from hccl_py.cli.errors import (
    DEFECT,
    USAGE,
    PipeClosedError,
    WrongResultError,
    guarded,
    say_problems,
    say_warning,
)
from hccl_py.errors import ParameterError, PluginError

CASES = {
    "trace all_gather --flows 3": ["--flows is about the files of --perfetto", "Add one of them"],
    "run": ["Missing argument 'OP|FILE|DIR'", "`hccl-py run --help`"],
    "check --repeat": ["'--repeat' requires an argument", "`hccl-py check --help`"],
    "new executor --op": ["'--op' requires an argument", "`hccl-py new executor --help`"],
    "compare .": ["compare takes an op, and . is a directory.", "hint"],
    "check all_gather --in-place=both": ["--in-place 'both' is unknown.", "Give start or slot"],
    "rn": ["No such command 'rn'", "Did you mean 'run'?"],
    "run all_gather --foo": ["No such option: --foo", "hint"],
    "run all_gather extra": ["unexpected extra argument", "hint"],
    "run all_gathr": ["Op 'all_gathr' is unknown", "Did you mean all_gather"],
    "run 全收集": ["Op '全收集' is unknown", "Known: all_gather, all_gather_v, all_reduce"],
    "run all_gather --executor AllGatherMesh": ["unknown", "AllGatherMeshExecutor"],
    "run all_gather --executor AllReduceComm": ["executes all_reduce", "AllGatherComm"],
    "run all_reduce --servers 2 --devices 8 --executor AllReduceMeshOpbaseLoopExecutor": [
        "does not suit this call: needs one server",
        "These do: ",
        "AllReduceComm",
    ],
    "run all_gather -d fp33": ["Data type 'fp33' is unknown", "Did you mean fp32"],
    "run all_reduce -d uint8": ["does not take uint8", "It takes int8"],
    "run all_reduce -o prod -d bf16": ["does not take prod with bf16", "prod takes"],
    "run all_reduce -o sim": ["Reduce op 'sim' is unknown", "Did you mean sum?"],
    "run broadcast --ranks 4 -r 9": ["Root 9 is out of range", "ranks 0 to 3"],
    "run broadcast --ranks 4 -r -1": ["Root -1 is out of range", "ranks 0 to 3"],
    "run all_gather --ranks 0": ["ranks is 0", "Give 1 to"],
    "run all_gather --ranks -3": ["ranks is -3", "Give 1 to"],
    "run all_gather --ranks 99999999999999999999": ["99999999999999999999", "Give 1 to"],
    "run all_gather --ranks four": ["--ranks", "integer"],
    "run all_gather --ranks 4.5": ["--ranks", "integer"],
    "run all_gather --servers 2 --devices 9": ["Server 0 has 9 devices", "Use more servers"],
    "run all_gather --servers 2 --devices 2 --ranks 5": ["4 ranks, not 5", "hint"],
    "run all_gather --topology atlas-800": [
        "unknown",
        "Did you mean atlas-800-9000 or atlas-800t-a2?",
    ],
    "run all_gather --platform emulate": ["unknown", "Did you mean emulated?"],
    "run all_gather -b 12Q": ["-b/--minbytes '12Q' is not a size", "64M"],
    "run all_gather -b -5": ["-b/--minbytes '-5' is not a size", "64M"],
    "run all_gather -b 1.5M": ["is not a size", "64M"],
    "run all_gather -b ٤K": ["is not a size", "64M"],
    "run all_gather -b 99999999999999999999999G": ["is not a size", "64M"],
    "run all_gather -b 2000000000G": ["more than 2^60 bytes", "smaller"],
    "run all_gather -e x": ["-e/--maxbytes 'x' is not a size", "64M"],
    "run all_gather -b 2M -e 1M": ["less than", "Give -e at least -b"],
    "run all_gather -b 1 -e 8 -f 1": ["-f/--stepfactor is 1", "Give 2 or more"],
    "run all_gather -b 0 -e 8 -f 2": ["never leads away from 0", "hint"],
    "run all_gather -i x": ["-i/--stepbytes 'x' is not a size", "64M"],
    "run all_gather -b 1000G": ["has a count of", "Counts go from 0 to"],
    "run all_reduce --ranks 65536 -b 1G": ["The buffers of all ranks", "Give fewer ranks"],
    "run all_gather -o sum": ["all_gather has no reduce op to choose", "Leave -o/--reduce-op out"],
    "run barrier -o sum": ["barrier has no reduce op to choose", "Leave -o/--reduce-op out"],
    "run barrier -d fp16": ["a sum of 8 fp32 elements, nothing else", "Leave size, data type"],
    "run barrier -b 4": ["barrier has no data size", "Leave -b, -e, -f and -i out"],
    "run barrier -e 4": ["barrier has no data size", "Leave -b, -e, -f and -i out"],
    "run broadcast -r 4": ["Root 4 is out of range", "ranks 0 to 3"],
    "run all_to_all --in-place": ["all_to_all cannot work in place", "an output of its own"],
    "run all_reduce --deterministic maybe": ["unexpected extra argument", "hint"],
    "run all_reduce --deterministic=maybe": ["illegal value 'maybe'", "false, true or strict"],
    "run all_gather --superpods 2": ["Atlas 800T A2 has no superpods", "atlas-900-a3"],
    "run all_gather --rank-table no.json": ["no.json", "cannot be read"],
    "run all_gather --rank-table no.json --ranks 4": ["says where the ranks are", "(--ranks) out"],
    "run all_gather --counts no.json": ["all_gather takes no --counts", "all_to_all_v"],
    "run all_gather_v --counts no.json": ["no.json", "cannot be read"],
    "run gather --strict-hccl -n 1": ["HCCL refuses gather", "Without --strict-hccl"],
    "run all_gather -n 0": ["--iters", "hint"],
    "run all_gather -w -1": ["--warmup", "hint"],
    "run all_gather -c 3": ["--check", "hint"],
    "run all_gather --mode eager": ["illegal value 'eager'", "op_base or graph"],
    "run all_gather --buffsize 0": ["illegal value 0", "1 to 1048576"],
    "run all_gather --algo level1:rnig": ["algorithm 'rnig' is unknown", "Did you mean ring"],
    "run all_gather --seed -1": ["--seed is -1", "Give 0 to"],
    "run all_gather --schedule late": ["'late' is unknown", "Did you mean late-wire"],
    "run all_gather --executor :X": ["is not module:Class", "my_ring:MyRing"],
    "run all_gather --executor no_such_module:X": ["There is no module no_such_module", "hint"],
    "run all_gather --executor json:Decoder": ["has no Decoder", "Did you mean JSONDecoder"],
    "run all_gather --executor json:JSONDecoder": ["attribute op is missing", "hint"],
    "trace all_gather --rank 4": ["--rank 4 is out of range", "ranks 0 to 3"],
    "explain all_gather -b 1 -e 1G -i 1": ["1073741824 sizes are too many", "leave it out"],
    "simulate all_gather -b 1 -e 1P -i 1": ["1125899906842624 sizes are too many", "larger -i"],
    "run all_gather -b 0 -e 64K -i 1": ["65537 sizes are too many", "larger -i"],
    "export AllReduceRing --to=": ["--to '' names no folder", "new or empty"],
    "new executor MyRing --op all_gather --path=": ["--path '' names no folder", "new or empty"],
    "new --cpp my_gather --path=": ["--path '' names no folder", "new or empty"],
    "run all_gather --topology=": ["Topology '' is unknown", "Known: "],
    "check AllReduceRing --topology=": ["Topology '' is unknown", "Known: "],
    "run all_gather --schedule=": ["--schedule '' is unknown", "late-wire"],
    "trace all_gather --svg=": ["error: '': a picture is not written", "ends in .svg"],
    "compare all_gather --ranks 2 --jobs 99999999999999999999": ["jobs is 9999", "Give 1 to 4096"],
    "tuning ": ["Missing argument", "hccl-py tuning --help"],
    "record no-such-folder": ["there is no file or folder 'no-such-folder'", "custom op"],
    "explain barrier -e 1M": ["barrier has no data size", "-e, -f and -i out"],
    "list --op all_gathr": ["Op 'all_gathr' is unknown", "Did you mean all_gather"],
}


@pytest.mark.parametrize("command", CASES)
def test_bad_input(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "\nhint: " in captured.err
    assert "Traceback" not in captured.err
    for words in CASES[command]:
        assert words in captured.err


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("simulate all_gathr", "ParameterError"),
        ("run all_gather --ranks many", "BadParameter"),
        ("explain all_gather -d fp33", "NotSupportedError"),
    ],
)
def test_an_error_is_a_document_with_json(
    command: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--json"]) == USAGE
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert error["kind"] == kind
    assert captured.err == f"error: {error['message']}\nhint: {error['hint']}\n"


def test_more_tasks_than_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hccl_py.cli.call.BYTES_PER_TASK", 1 << 40)
    for command in ("trace", "run"):
        assert main([command, "all_gather", "--json"]) == USAGE
        captured = capsys.readouterr()
        assert "The program's 172 tasks would take 180355072 MB" in captured.err


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HCCL_BUFFSIZE", "abc"),
        ("HCCL_BUFFSIZE", "0"),
        ("HCCL_BUFFSIZE", ""),
        ("HCCL_ALGO", "level1=ring"),
        ("HCCL_DETERMINISTIC", "maybe"),
    ],
)
def test_bad_environment(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["explain", "all_gather"]) == USAGE
    captured = capsys.readouterr()
    assert variable in captured.err
    assert captured.out == ""


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_gathr", "--debug"]) == USAGE
    assert "Traceback" in capsys.readouterr().err


def failing(error: BaseException) -> int:
    def command() -> None:
        raise error

    return guarded(command)


def test_a_defect_is_no_traceback_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(ZeroDivisionError("by zero")) == DEFECT
    assert capsys.readouterr().err == (
        "error: internal error: ZeroDivisionError: by zero\n"
        "hint: This is a defect of hccl-py; --debug shows where. Please report it.\n"
    )


@pytest.mark.parametrize("error", [MemoryError(), OSError(12, "Cannot allocate memory")])
def test_lack_of_memory(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(error) == USAGE
    assert "not enough memory" in capsys.readouterr().err


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(OSError(28, "No space left on device")) == USAGE
    assert "error: No space left on device." in capsys.readouterr().err


class OfTyper(Exception):
    """A usage error of any version of typer."""

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.message = message
        if command:
            self.ctx = SimpleNamespace(command=None, command_path=command)

    def format_message(self) -> str:
        return self.message


class Abort(Exception):
    """What typer raises where its user gives up."""


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (Abort(), 130, ""),
        (BrokenPipeError(), 141, ""),
        (PipeClosedError(), 141, ""),
        (
            WrongResultError("1 of 2 is wrong.", "Look."),
            1,
            "error: 1 of 2 is wrong.\nhint: Look.\n",
        ),
        (ParameterError("No.", "Yes."), 2, "error: No.\nhint: Yes.\n"),
        (ParameterError("No.", ""), 2, "error: No.\n"),
        (
            OfTyper("No such\n option", "hccl-py run"),
            2,
            "error: No such option.\nhint: `hccl-py run --help` lists what it takes.\n",
        ),
        (OfTyper("Which?"), 2, "error: Which?\nhint: `hccl-py --help` lists what it takes.\n"),
    ],
)
def test_every_end_has_a_status(
    error: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(error) == status
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(("found", "status"), [(None, 0), (0, 0), (1, 1), (3, 3), ("text", 0)])
def test_a_command_may_say_its_status(found: object, status: int) -> None:
    assert guarded(lambda: found) == status


def test_notes_and_warnings_have_a_form(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        logging.getLogger("hccl_py.room").info("compiles %s", "this")
        logging.getLogger("hccl_py.room").debug("says more")

    handlers = list(logging.getLogger("hccl_py").handlers)
    guarded(command)
    say_warning("that is old")
    say_problems([PluginError("mine is broken.", "")])
    assert capsys.readouterr().err == (
        "note: compiles this\nwarning: that is old\nwarning: mine is broken.\n"
    )
    assert logging.getLogger("hccl_py").handlers == handlers
