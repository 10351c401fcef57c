"""Questions of newcomers: the overview leads to one command each, and that answers."""

import json
import sys
from pathlib import Path

import pytest

from hccl_py.cli import main
from hccl_py.cli.app import COMMANDS

LOG = """mpirun -n 4 ./bin/all_gather_test -b 8K -e 64M -f 8 -d fp16 -p 4
data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
8192 | 31.00 | 0.26 | success
65536 | 32.10 | 2.0 | success
67108864 | 1300.0 | 51.6 | success
"""

CALL = "all_reduce --servers 2 --devices 4 -b 1M"

QUESTIONS = [
    ("which algorithm runs", "executor that runs, with the reasons", f"explain {CALL}", "levels"),
    ("how long it takes", "how long an op takes", f"simulate {CALL}", "of model time"),
    (
        "what a straggler does",
        "also with stragglers",
        f"simulate {CALL} --slow rank=1:2x",
        "slow rank=1:2x",
    ),
    ("what is better", "what is faster", f"advise {CALL} --jobs 1", "candidates timed"),
    ("why it is slow", "what it costs", f"advise {CALL} --jobs 1", "goes into"),
    ("which is the fastest", "the fastest by size", f"compare {CALL} --jobs 1", "HCCL's rules"),
    ("is mine right", "Verify programs and executors", "check AllReduceRing --ranks 2", "ok"),
    ("what the streams do", "Draw what every stream does", "trace all_gather --ranks 2", "rank 0"),
    ("does it work on data", "on real data", "run all_gather --ranks 2 -b 1K", "success"),
    ("where to start", "project to start from", "new executor Mine --op all_gather", "Mine"),
    ("to C++", "executor as a custom op in C++", "export AllReduceRing --to ring", "ring"),
    ("to MSCCL", "MSCCL XML", "convert mine.json mine.npz", "mine.npz"),
    ("my measured times", "cost model to measured times", "fit a.log", "hccs.gbps"),
    ("a tuning table", "Make a tuning table", f"tuning t.json --op {CALL} --jobs 1", "ratio"),
    ("what works here", "which platforms work here", "doctor", "emulated"),
    ("which bits a sum has", "which bits a sum has", f"numerics {CALL}", "tree"),
]
"""Question, words of the overview, command line, words of the answer."""


@pytest.mark.parametrize(
    ("overview", "command", "answer"),
    [question[1:] for question in QUESTIONS],
    ids=[question[0] for question in QUESTIONS],
)
def test_one_command_answers(
    overview: str,
    command: str,
    answer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text(LOG)
    name, *arguments = command.split()
    assert [line for line in COMMANDS if overview in COMMANDS[line]] == [name]
    if name == "convert":
        saved = ["--ranks", "2", "-b", "1K", "--save", "mine.json"]
        assert main(["trace", "all_gather", *saved]) == 0
    assert main([name, *arguments]) == 0
    assert answer in capsys.readouterr().out


def test_a_program_in_cpp_and_the_screen_are_in_the_overview(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What takes a compiler or a terminal is run elsewhere; here they say what they need."""
    assert "custom op in C++ as a program" in COMMANDS["record"]
    assert main(["record", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert "on the whole screen" in COMMANDS["view"]
    assert not sys.stdout.isatty()
    assert main(["view", "all_gather"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_errors_of_the_answers_are_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "all_reduc", "--json"]) == 2
    assert "all_reduce" in json.loads(capsys.readouterr().out)["error"]["hint"]
