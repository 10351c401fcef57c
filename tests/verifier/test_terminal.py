"""Reports in words: what they show, what they leave out, and that they fit."""

import json
from dataclasses import replace
from typing import Any

import pytest

from hccl_py.formats import from_json
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.verifier.classes import CLASSES, Severity
from hccl_py.verifier.finding import Failure, Finding, Report, TaskAt
from hccl_py.verifier.numeric import NumericResult, WrongResult
from hccl_py.verifier.terminal import Pen, draw_report, format_report
from hccl_py.verifier.verdict import format_verdict

HINT, WARNING = Severity.HINT, Severity.WARNING

RANK_0 = {
    "0": [
        ["copy", ["IN", 0, 4], ["CCL", 0, 4], {"source": "far/away/my_ring.py:10"}],
        ["local_post", 1, 0],
        ["post", 1, 0],
        ["wait", 1, 0],
        ["copy", ["CCL", 0, 4], ["OUT", 0, 4], {"source": "far/away/my_ring.py:14"}],
        ["compute", 1],
    ],
    "1": [["local_wait", 0], ["compute", 2]],
}
RANK_1 = {"0": [["compute", 3], ["post", 0, 0], ["wait", 0, 0]]}


def program_of(tasks: dict[str, Any]) -> Program:
    buffers = {"IN": 4, "OUT": 8, "CCL": 4}
    return from_json(
        json.dumps(
            {
                "format": "hccl-py.program/1",
                "op": {"name": "all_gather", "dtype": "fp32", "count": 1},
                "ranks": 2,
                "link": "sdma",
                "exported": ["CCL"],
                "buffers": {"0": buffers, "1": buffers},
                "tasks": tasks,
            }
        )
    )


PROGRAM = program_of({"0": RANK_0, "1": RANK_1})


def finding(name: str = "RACE_RW", *tasks: TaskAt, **more: Any) -> Finding:
    return Finding(**{"name": name, "message": "Both touch it.", "tasks": tasks, **more})


def report_of(*findings: Finding, **more: Any) -> Report:
    return Report.of("x.json", findings, {"": PROGRAM}, **more)


def lines_of(*findings: Finding, pen: Pen | None = None, **more: Any) -> list[str]:
    return format_report(report_of(*findings, **more), pen).splitlines()


def tasks_in(lines: list[str]) -> list[str]:
    """Return the lines of excerpts, without what is between their columns."""
    return [" ".join(line.split()) for line in lines if line.lstrip("> ▸").startswith("task ")]


def test_a_clean_program() -> None:
    assert lines_of() == ["x.json: ok", "  all_gather fp32, 2 ranks, 11 tasks"]


def test_a_clean_sweep() -> None:
    report = Report.of("Mine", [], {}, cases=212, notes=("suits refused 31 cases",))
    assert format_report(report).splitlines() == [
        "Mine: ok",
        "  212 cases checked",
        "  note: suits refused 31 cases",
    ]


def test_the_verdict_counts_what_is_only_counted() -> None:
    report = report_of(
        finding(more=2), finding("UNALIGNED", severity=HINT), finding("RACE_WW", severity=WARNING)
    )
    assert format_verdict(report) == "3 errors, 1 warning, 1 hint"
    assert format_verdict(report_of(finding("UNALIGNED", severity=HINT))) == "ok, 1 hint"


def test_classes_come_worst_first_with_their_meaning() -> None:
    lines = lines_of(
        finding("UNALIGNED", severity=HINT),
        finding("OUTPUT_MISSING"),
        finding("REDUCE_ORDER_NONDET", severity=WARNING),
        finding("WAIT_WITHOUT_POST"),
    )
    heads = [line for line in lines if line.split(" ")[0] in CLASSES]
    assert heads == [
        "WAIT_WITHOUT_POST (1 error): a wait whose notify never gets enough posts",
        "OUTPUT_MISSING (1 error): output that was never written",
        "REDUCE_ORDER_NONDET (1 warning): unordered sums in floating point: the last bit",
        "UNALIGNED (1 hint): a slice off the product's preferred alignment",
    ]


def test_a_finding_says_where_why_and_what_now() -> None:
    found = finding(
        source="my_ring.py:14",
        hint="Wait for the Ack.",
        case="3 ranks, count 1",
        common="only odd rank counts",
        more=4,
    )
    assert lines_of(found)[4:] == [
        "  Both touch it.",
        "    at my_ring.py:14",
        "    smallest case: 3 ranks, count 1",
        "    in common: only odd rank counts",
        "    hint: Wait for the Ack.",
        "    and 4 more like this",
    ]


def test_what_has_no_class_counts_as_an_error_and_comes_first() -> None:
    failure = Failure("It raises.", "Do not.", "x.py:3", "2 ranks, count 0", "only without data")
    lines = lines_of(finding(), failures=(failure,))
    assert lines[0] == "x.json: 2 errors"
    assert lines[3:10] == [
        "recording (1 error): the executor raises, or gives another program rank by rank",
        "  It raises.",
        "    at x.py:3",
        "    smallest case: 2 ranks, count 0",
        "    in common: only without data",
        "    hint: Do not.",
        "",
    ]


def test_a_wrong_result_comes_last() -> None:
    schedule = Schedule(7, Adversary.LATE_WIRE)
    wrong = WrongResult("rank 1 element 0 of op 2: expected 3, found 4", schedule, case="2 ranks")
    lines = lines_of(finding(), numeric=NumericResult(5, wrong))
    assert lines[0] == "x.json: 2 errors"
    assert lines[-4:] == [
        "numeric (1 error): run with data, it goes wrong",
        "  rank 1 element 0 of op 2: expected 3, found 4",
        "    case: 2 ranks",
        "    interleaving: late-wire, seed 7",
    ]


def test_right_results_are_counted() -> None:
    lines = lines_of(numeric=NumericResult(40))
    assert lines[0] == "x.json: ok"
    assert lines[2:] == ["  40 runs of 1 program with data, all results right"]


def test_nothing_is_not_ok() -> None:
    report = Report.of("Mine", [], {}, cases=0, notes=("suits() refuses all 9 kinds of calls",))
    assert format_report(report).splitlines() == [
        "Mine: nothing was verified",
        "  note: suits() refuses all 9 kinds of calls",
    ]


def test_the_tasks_around_a_culprit() -> None:
    lines = lines_of(finding("RACE_RW", TaskAt(0, 0, 3)))
    assert lines[5:] == [
        "    rank 0 main",
        "        task 1  posts notify 0 of sub 0",
        "        task 2  posts Ack of rank 1",
        "      > task 3  waits for Ack from rank 1",
        "        task 4  copy CCL[0:4] to user_out[0:4]  far/away/my_ring.py:14",
        "        task 5  computes 1 us",
    ]


def test_both_tasks_of_a_race_are_shown() -> None:
    lines = lines_of(finding("RACE_RW", TaskAt(1, 0, 0), TaskAt(0, 1, 1)))
    assert [line.strip() for line in lines[5:]] == [
        "rank 1 main",
        "> task 0  computes 3 us",
        "task 1  posts Ack of rank 0",
        "task 2  waits for Ack from rank 0",
        "rank 0 sub 0",
        "task 0  waits for notify 0 of sub 0",
        "> task 1  computes 2 us",
    ]


def test_two_culprits_on_one_stream_share_an_excerpt() -> None:
    lines = lines_of(finding("RACE_RW", *(TaskAt(0, 0, k) for k in (5, 0, 1))))
    assert [line.strip() for line in lines[5:]] == [
        "rank 0 main",
        "> task 0  copy user_in[0:4] to CCL[0:4]   far/away/my_ring.py:10",
        "> task 1  posts notify 0 of sub 0",
        "task 2  posts Ack of rank 1",
        "...",
        "task 4  copy CCL[0:4] to user_out[0:4]  far/away/my_ring.py:14",
        "> task 5  computes 1 us",
    ]


def test_a_later_copy_of_the_op_counts_anew() -> None:
    lines = lines_of(finding("RACE_RW", TaskAt(1, 0, 3), repeat=2))
    assert lines[5] == "    shows in op 2: the same call again, right after op 1"
    assert tasks_in(lines) == [
        "task 1 posts Ack of rank 0",
        "task 2 waits for Ack from rank 0",
        "> task 0 of op 2 computes 3 us",
        "task 1 of op 2 posts Ack of rank 0",
        "task 2 of op 2 waits for Ack from rank 0",
    ]


def test_what_only_shows_between_calls_is_one_sentence() -> None:
    between = {"between_calls": True, "repeat": 2}
    inside = finding("RACE_RW", TaskAt(1, 0, 0), source="a.py:1")
    like_it = finding("RACE_RW", TaskAt(1, 0, 1), source="a.py:1", **between)
    others = [
        finding("NOTIFY_OVERRUN", TaskAt(1, 0, 1), source="a.py:2", more=3, **between),
        finding("RACE_RW", TaskAt(1, 0, 2), source="a.py:3", **between),
    ]
    lines = lines_of(*others, pen=Pen(width=200))
    assert lines == [
        "x.json: 5 errors",
        "  all_gather fp32, 2 ranks, 11 tasks",
        "",
        "Only between calls that follow each other without synchronisation: 4 NOTIFY_OVERRUN, "
        "1 RACE_RW at a.py:2, a.py:3; -v shows them",
    ]
    report = report_of(inside, like_it, *others)
    assert report.only_between_calls == tuple(others)
    assert "  likewise: rank 1 main task 1" in "\n".join(lines_of(inside, like_it))
    assert not report.ok
    in_full = lines_of(*others, pen=Pen(verbose=True))
    assert sum(line.split(" ")[0] in CLASSES for line in in_full) == 2
    assert [f["between_calls"] for f in report.document()["findings"]] == [True, False, True, True]


def test_nothing_is_shown_of_the_copy_after_the_last() -> None:
    assert tasks_in(lines_of(finding("RACE_RW", TaskAt(0, 1, 1))))[-1].startswith("> task 1 ")


def test_many_culprits_are_shown_without_their_neighbours() -> None:
    culprits = [TaskAt(0, 0, k) for k in range(6)] + [TaskAt(1, 0, k) for k in range(3)]
    lines = lines_of(finding("DEADLOCK_CYCLE", *culprits))
    shown = tasks_in(lines)
    assert len(shown) == 8
    assert all(line.startswith("> ") for line in shown)
    assert lines[-1] == "    and 1 task more"


def test_a_stream_without_tasks_has_no_excerpt() -> None:
    assert tasks_in(lines_of(finding("SILENT_RANK", TaskAt(1, 1, 0)))) == []


def test_only_the_first_findings_of_a_class_are_shown_in_full() -> None:
    found = [
        finding("RACE_RW", TaskAt(1, 0, 0), message=f"Number {k}.", source=f"x.py:{k}", more=k)
        for k in range(11)
    ]
    lines = lines_of(*found)
    assert sum(line.startswith("  Number") for line in lines) == 8
    assert sum(line.startswith("      > task") for line in lines) == 3
    assert lines[-1] == "  and 30 more at x.py:8, x.py:9, x.py:10; -v shows them"
    everything = lines_of(*found, pen=Pen(verbose=True))
    assert sum(line.startswith("  Number") for line in everything) == 11
    assert sum(line.startswith("      > task") for line in everything) == 11
    assert not any("-v" in line for line in everything)


def test_findings_at_one_line_are_told_once() -> None:
    found = [
        finding("RACE_RW", TaskAt(0, 0, 2 * k), message=f"Number {k}.", source="x.py:1", more=k)
        for k in range(4)
    ]
    lines = lines_of(*found, pen=Pen(100))
    assert sum(line.startswith("  Number") for line in lines) == 1
    places = "rank 0 main task 2, rank 0 main task 4, rank 0 main task 0 of op 2"
    assert lines[-1] == f"    likewise: {places} and 6 more"
    nowhere = lines_of(*(replace(one, source=None) for one in found))
    assert sum(line.startswith("  Number") for line in nowhere) == 4
    assert sum(line.startswith("      > task") for line in nowhere) == 3


def test_a_long_list_of_hints_becomes_one_line() -> None:
    found = [
        finding("REDUNDANT_SYNC", TaskAt(1, 0, 1), severity=HINT, message=f"{k} is implied.")
        for k in range(3)
    ]
    found = [replace(hint, source=f"x.py:{k // 2}", more=10) for k, hint in enumerate(found)]
    assert lines_of(*found)[3:] == [
        "REDUNDANT_SYNC (33 hints): a synchronisation that others imply",
        "  for example: 0 is implied.",
        "  and 32 more at x.py:0, x.py:1; -v shows them",
    ]
    assert len(tasks_in(lines_of(*found, pen=Pen(verbose=True)))) == 9


def test_two_hints_are_shown_without_their_tasks() -> None:
    found = [finding("DEAD_TRANSFER", TaskAt(1, 0, 1), severity=HINT)] * 2
    assert lines_of(*found)[4:] == ["  Both touch it."] * 2


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_lines_fit(width: int) -> None:
    found = finding(
        "RACE_RW",
        *(TaskAt(0, 0, 4), TaskAt(1, 0, 1)),
        message="A long story. " * 20 + "\n  with an indented part, " * 8,
        hint="what now? " * 20,
        source="a/very/long/path/" * 10 + "file.py:3",
    )
    lines = lines_of(found, pen=Pen(width))
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)


def test_long_source_lines_lose_their_folders_first() -> None:
    narrow = tasks_in(lines_of(finding("RACE_RW", TaskAt(0, 0, 4)), pen=Pen(62)))
    assert "> task 4 copy CCL[0:4] to user_out[0:4] my_ring.py:14" in narrow


def test_actions_that_do_not_fit_go_on_below() -> None:
    lines = lines_of(finding("RACE_RW", TaskAt(0, 0, 4)), pen=Pen(56))
    at = next(k for k, line in enumerate(lines) if "> task 4" in line)
    assert lines[at] == "      > task 4  copy CCL[0:4] to           my_ring.py:14"
    assert lines[at + 1] == "                  user_out[0:4]"


def test_source_lines_give_way_where_it_is_narrow() -> None:
    lines = lines_of(finding("RACE_RW", TaskAt(0, 0, 4)), pen=Pen(44))
    assert "      > task 4  copy CCL[0:4] to" in lines
    assert not any("my_ring" in line for line in lines)


def test_messages_keep_their_lines() -> None:
    found = finding("DEADLOCK_CYCLE", message="Two waits:\n  rank 0 waits\n  rank 1 waits")
    assert lines_of(found)[4:] == ["  Two waits:", "    rank 0 waits", "    rank 1 waits"]


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    evil = "\x1b[31mred\x07"
    program = program_of({"0": {"0": [["compute", 1, {"source": f"{evil}\n.py:1"}]]}})
    found = finding("RACE_RW", TaskAt(0, 0, 0), message=evil, source=evil, hint=evil)
    report = Report.of(f"{evil}.json", [found], {"": program}, notes=(evil,))
    text = format_report(report, Pen(verbose=True))
    assert all(line.isprintable() for line in text.splitlines())
    assert text.count("\\x1b[31mred\\x07") == 6
    assert "\\n.py:1" in text


@pytest.mark.parametrize("unicode", [True, False])
def test_plain_characters_where_there_are_no_others(unicode: bool) -> None:
    text = format_report(report_of(finding("RACE_RW", TaskAt(0, 0, 3))), Pen(unicode=unicode))
    assert ("▸ task 3" in text) == unicode
    assert text.isascii() != unicode


def test_culprits_and_verdicts_stand_out() -> None:
    styles = {line.text.strip(): line.style for line in draw_report(report_of(), Pen())}
    assert styles["x.json: ok"] == "bold green"
    report = report_of(finding("RACE_RW", TaskAt(0, 1, 1)))
    styles = {line.text.strip(): line.style for line in draw_report(report, Pen())}
    assert styles["x.json: 1 error"] == "bold red"
    assert styles["> task 1  computes 2 us"] == "bold"
    assert styles["task 0  waits for notify 0 of sub 0"] == "dim"
