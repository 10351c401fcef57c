"""Results alone on stdout; nothing that a terminal obeys, from any file or plugin, anywhere."""

import copy
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.cli.output import printable_console
from hccl_py.formats import to_json
from hccl_py.plugins import discovery
from hccl_py.plugins.discovery import sorted_points
from tests.recording import op_of, recorded
from tests.topology.tables import GROUPS, LEVELS, SERVERS, paths_of

HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202eX\x00\x7f"
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

AUTHOR = f"""
from hccl_executors import EXECUTORS
from hccl_py.plugins.executor import Unsuitable

Comm = next(c for c in EXECUTORS if c.__name__ == "AllGatherComm")

class Labels(Comm):
    def orchestrate(self, op, rank):
        print({HOSTILE!r})
        with rank.main.phase({HOSTILE!r}):
            super().orchestrate(op, rank)

class Fails(Comm):
    def orchestrate(self, op, rank):
        raise ValueError({HOSTILE!r})

class Unsuited(Comm):
    def suits(self, op, topology):
        return Unsuitable({HOSTILE!r})

class NoSuchOp(Comm):
    op = {HOSTILE!r}

class NoSuchLevel(Comm):
    algorithm = {HOSTILE!r}
"""

NOISY = """
import atexit, os, subprocess, sys
from hccl_executors import EXECUTORS

Comm = next(c for c in EXECUTORS if c.__name__ == "AllGatherComm")

print("noise")
os.write(1, b"noise\\n")
subprocess.run([sys.executable, "-S", "-c", "print('noise')"])
atexit.register(print, "noise")

class Noisy(Comm):
    def suits(self, op, topology):
        print("noise")
        return super().suits(op, topology)

    def orchestrate(self, op, rank):
        print("noise")
        super().orchestrate(op, rank)
"""

SCRIPT = "from hccl_py.cli import main; raise SystemExit(main())"

COST = {"base": "atlas-800t-a2", "name": "mine", "sources": "some", "uncertain": "much"}
NETWORK = {
    "name": "two",
    "ranks": [{"name": "a"}, {"name": "b"}],
    "switches": [{"name": "s", "gbps": 100}],
    "links": [{"from": "a", "to": "s"}, {"from": "b", "to": "s"}],
    "routes": [{"path": ["a", "s", "b"]}],
}
LOG = "# all_gather_test -p 2\ndata_size(Bytes): | aveg_time(us):\n1024 9.0\n2048 x 9.5\n"

CALL = ["all_gather", "--executor", "AllGatherComm"]
QUICK = ["compare", "all_gather", "--executors", "AllGatherComm", "--jobs", "1", "-b1K", "-e1K"]


TWO = ["all_gather", "--ranks", "2"]

COMMANDS = {
    "program": [["check", "-v"], ["trace", "--rank", "0"], ["trace", "--step", "--limit", "2"]],
    "cost": [["simulate", *CALL, "--cost"], [*QUICK, "--cost"]],
    "network": [[name, *CALL, "--topology"] for name in ("run", "simulate", "trace")],
    "servers": [["run", *CALL, "--rank-table"]],
    "groups": [["explain", "all_gather", "--rank-table"]],
    "levels": [["simulate", *CALL, "--rank-table"]],
    "tuning": [["tuning"], ["explain", *TWO, "--select"]],
    "counts": [["run", "all_gather_v", "--ranks", "2", "--counts"]],
}
"""By kind of file, the commands that take it."""


def document(kind: str, folder: Path) -> Any:
    if kind == "program":
        return json.loads(to_json(recorded("AllGatherComm", op_of("all_gather"), 2)))
    if kind == "tuning":
        saved = folder / "tuning.json"
        assert main([*QUICK, "--ranks", "2", "--table", str(saved)]) == 0
        return json.loads(saved.read_text())
    tables = {"servers": SERVERS, "groups": GROUPS, "levels": LEVELS}
    return {"cost": COST, "network": NETWORK, "counts": ["x"], **tables}[kind]


def spoilt(document: Any) -> Iterator[Any]:
    """Copies of a document, each with one text or one key hostile; alike places once."""
    seen: set[tuple[str | None, ...]] = {()}
    for path in paths_of(document):
        kind = tuple(None if isinstance(key, int) else key for key in path)
        if kind not in seen:
            seen.add(kind)
            yield from _spoilt_at(document, path)


def _spoilt_at(document: Any, path: tuple[str | int, ...]) -> Iterator[Any]:
    *outer, last = path
    for is_key in (False, True):
        copied = found = copy.deepcopy(document)
        for key in outer:
            found = found[key]
        if is_key and isinstance(last, str):
            found[last + HOSTILE] = found.pop(last)
            yield copied
        if not is_key and isinstance(found[last], str):
            found[last] += HOSTILE
            yield copied


def check_output(capsys: pytest.CaptureFixture[str], command: list[str]) -> str:
    status = main(command)
    captured = capsys.readouterr()
    assert status in (0, 1, 2), (command, captured.err)
    for text in captured:
        assert not RAW.search(text), (command, text)
    return captured.out + captured.err


@pytest.mark.parametrize("kind", COMMANDS)
def test_no_document_reaches_the_terminal_raw(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands, file, said = COMMANDS[kind], tmp_path / "file.json", ""
    documents = list(spoilt(document(kind, tmp_path)))
    capsys.readouterr()
    for number, changed in enumerate(documents):
        file.write_text(json.dumps(changed))
        said += check_output(capsys, [*commands[number % len(commands)], str(file)])
    assert re.search(r"\\(x|u00)1b\[2J", said)
    for command in commands:
        file.write_text(HOSTILE)
        check_output(capsys, [*command, str(file)])
        check_output(capsys, [*command, str(tmp_path / f"{HOSTILE[:6]}.json")])


def test_no_text_file_reaches_the_terminal_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, sweep = tmp_path / f"{HOSTILE[:6]}.txt", tmp_path / f"{HOSTILE[:6]}.csv"
    for text in (LOG, LOG.replace("9.5", HOSTILE[:-2]), LOG.replace("gather", HOSTILE[:-2])):
        log.write_text(text)
        check_output(capsys, ["fit", str(log)])
    for text in (f"key,{HOSTILE}\n", HOSTILE):
        sweep.write_text(text)
        check_output(capsys, [*QUICK, "--out", str(sweep)])


@pytest.mark.parametrize("name", ["Labels", "Fails", "Unsuited", "NoSuchOp", "NoSuchLevel", "No"])
def test_no_plugin_reaches_the_terminal_raw(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hostile.py").write_text(AUTHOR)
    for command in ("run", "trace", "simulate", "explain"):
        check_output(capsys, [command, *CALL[:2], f"hostile:{name}"])
    check_output(capsys, ["check", f"hostile:{name}", "--ranks", "2"])


def test_no_import_error_reaches_the_terminal_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_plugin.py").write_text(f"print({HOSTILE!r}); raise Exception({HOSTILE!r})")
    point = EntryPoint("broken", "broken_plugin", discovery.EXECUTOR_GROUP)
    monkeypatch.setattr(
        discovery,
        "sorted_points",
        lambda group: [*sorted_points(group), *[point] * (group == point.group)],
    )
    discovery.installed_executors.cache_clear()
    try:
        assert r"\x1b[2J" in check_output(capsys, ["list"])
    finally:
        discovery.installed_executors.cache_clear()


def test_a_terminal_gets_colours_and_nothing_else() -> None:
    file = io.StringIO()
    console = printable_console(file, is_terminal=True)
    from rich.table import Table
    from rich.text import Text

    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE, style="red")
    table.add_row(Text(HOSTILE, style="bold"))
    console.print(HOSTILE, table)
    text = file.getvalue()
    assert "\x1b[31m" in text
    assert text.count(r"\x1b[2J\x1b]0;title") == 5
    assert not RAW.search(re.sub(r"\x1b\[[\d;]*m", "", text))


@pytest.mark.parametrize("command", ["run", "simulate", "trace", "check"])
def test_a_noisy_plugin_does_not_spoil_the_document(command: str, tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    call = ["check", "noisy:Noisy"] if command == "check" else [command, *CALL[:2], "noisy:Noisy"]
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, *call, "--ranks", "2", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(process.stdout)["schema"].startswith(f"hccl-py.{command}")
    assert process.stderr.count("noise\n") >= 6
