"""The console script as a process: speed, pipes, interrupts, and what it imports."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_py.cli import main
from hccl_py.cli.app import COMMANDS
from tests.cpu import cpu_of_children

SCRIPT = str(Path(sys.executable).parent / "hccl-py")


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("HCCL", "FORCE_COLOR"))}


def hccl_py(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)


def best_of(times: int, *command: str) -> float:
    """Return the least CPU time of some runs, in seconds."""
    found = []
    for _ in range(times):
        with cpu_of_children() as cpu:
            subprocess.run(command, capture_output=True, env=environment(), check=True)
        found.append(cpu.seconds)
    return min(found)


def test_help_takes_little_more_than_its_one_library() -> None:
    bare = best_of(3, sys.executable, "-c", "import typer, typer.main, click")
    assert best_of(3, SCRIPT, "--help") < 2 * bare


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from hccl_py.cli import main; main(['--help']);"
        "print([m for m in ('numpy', 'pydantic', 'rich', 'numba', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_of_a_command_imports_its_options_and_nothing_that_does_the_work() -> None:
    code = (
        "import sys; from hccl_py.cli import main; from hccl_py.cli.app import COMMANDS\n"
        "for name in COMMANDS:\n"
        "    assert main([name, '--help']) == 0\n"
        "    print(name, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown = [line.split() for line in done.stderr.splitlines()]
    assert [name for name, *_ in shown] == list(COMMANDS)
    options = re.compile(
        r"hccl_py(\.cli(\..+)?|\.moved|\.printable|\.errors|\.language(\.wrapping)?)?"
    )
    for name, *modules in shown:
        ours = [m for m in modules if m.startswith("hccl_") and not options.fullmatch(m)]
        found = [*ours, *({"numpy", "rich", "numba", "scipy", "torch"} & set(modules))]
        assert not found, f"`hccl-py {name} --help` imports {', '.join(found[:3])}"


def test_list_reads_sources_only_where_it_shows_them() -> None:
    code = (
        "import linecache, sys; from hccl_py.cli import main; main(['list', *sys.argv[1:]]);"
        "print(any('hccl_executors' in file for file in linecache.cache))"
    )
    for options, reads in (([], "False"), (["-v"], "True")):
        command = [sys.executable, "-c", code, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == reads


def test_run_takes_at_most_five_times_what_its_dependencies_take() -> None:
    imports = "import numpy, pydantic, rich.console, typer, ml_dtypes"
    bare = best_of(3, sys.executable, "-c", imports)
    assert best_of(3, SCRIPT, "run", "all_gather", "--ranks", "4") < 5 * bare


def test_run_needs_neither_numba_nor_rich() -> None:
    code = (
        "import sys; from hccl_py.cli import main; main(['run', 'all_gather', '--ranks', '4']);"
        "print([m for m in ('rich', 'numba', 'torch', 'networkx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_json_is_all_there_is_on_stdout() -> None:
    done = hccl_py("run", "all_gather", "--ranks", "4", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == "hccl-py.run/1"


def test_an_error_is_a_sentence_and_a_hint_on_stderr_and_status_2() -> None:
    done = hccl_py("run", "all_gathr")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: Op 'all_gathr' is unknown.\n"
        "hint: Did you mean all_gather or all_gather_v or gather?\n"
    )


@pytest.mark.parametrize("command", [("list",), ("trace", "all_gather"), ("run", "all_gather")])
def test_a_pipe_gets_no_colours(command: tuple[str, ...]) -> None:
    assert "\x1b" not in hccl_py(*command).stdout


def test_streams_that_are_closed_from_the_start() -> None:
    found = {}
    for closed in ("", "2>&-", ">&-", "<&- >&- 2>&-"):
        for op in ("gather", "gathr"):
            command = ["bash", "-c", f"{SCRIPT} list --op {op} {closed}"]
            done = subprocess.run(command, capture_output=True, env=environment(), check=False)
            found[op, closed] = done.returncode
    assert {(op, status) for (op, _), status in found.items()} == {("gather", 0), ("gathr", 2)}


def test_a_closed_pipe_is_no_traceback() -> None:
    command = [SCRIPT, "trace", "all_reduce", "--ranks", "64", "--topology", "ring", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_interrupt_is_no_traceback() -> None:
    command = [SCRIPT, "run", "all_gather", "-b", "64K", "-n", "100000000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if b"data_size" in line:
                break
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130


def test_a_terminal_without_unicode_gets_plain_characters() -> None:
    command = [SCRIPT, "trace", "all_gather", "--rank", "0"]
    ascii_only = environment() | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=ascii_only, check=True)
    assert b"TxAck >r3" in done.stdout
    assert b"?" not in done.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hccl-py 0.")


def test_without_a_command_the_help_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commands:" in captured.err


@pytest.mark.parametrize("command", ["run", "trace", "explain", "list"])
def test_help_of_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out
