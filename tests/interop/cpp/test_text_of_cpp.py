"""Formulas and lines of C++ as they are written: brackets, sums, names, and lines that are long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_interop.cpp.export.formulas import (
    RANK,
    RANKS,
    Binary,
    Either,
    Formula,
    Number,
    Spelling,
    Table,
    entries,
    minus,
    plus,
    text_of,
    times,
    variables,
)
from hccl_interop.cpp.export.text import (
    WIDTH,
    CppLines,
    camel_case,
    comment,
    listed,
    project_files,
    size_text,
)

NAMES = {"rank": "rank", "ranks": "kRanks", "loop0": "step"}
NUMBERS = Table((3, 1, 2), (3,), (RANK,))


def text(formula: Formula) -> str:
    return text_of(formula, Spelling(NAMES, lambda table: "kTable"))


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        (Binary("-", Binary("-", RANK, Number(1)), Number(2)), "rank - 1 - 2"),
        (Binary("-", RANK, Binary("-", RANKS, Number(2))), "rank - (kRanks - 2)"),
        (Binary("*", Binary("+", RANK, Number(1)), RANKS), "(rank + 1) * kRanks"),
        (Binary("+", RANK, Binary("*", RANKS, Number(2))), "rank + kRanks * 2"),
        (Binary("%", Binary("*", RANK, Number(2)), RANKS), "rank * 2 % kRanks"),
        (Binary("%", RANK, Binary("*", RANKS, Number(2))), "rank % (kRanks * 2)"),
        (Binary("^", RANK, Binary("<<", Number(1), RANKS)), "rank ^ (1 << kRanks)"),
        (Binary("<<", Number(1), Binary("-", RANK, Number(1))), "1 << (rank - 1)"),
        (Binary("<", Binary("+", RANK, Number(1)), RANKS), "rank + 1 < kRanks"),
        (Binary("==", Binary("^", RANK, Number(1)), RANKS), "(rank ^ 1) == kRanks"),
        (Binary(">=", Binary("<<", Number(1), RANK), RANKS), "(1 << rank) >= kRanks"),
        (Binary("/", NUMBERS, Number(2)), "kTable[rank] / 2"),
        (Either(Binary("<", RANK, Number(2)), Number(1), RANKS), "rank < 2 ? 1 : kRanks"),
        (Table((1, 2), (1, 2), (Number(0), Binary("+", RANK, Number(1)))), "kTable[0][rank + 1]"),
    ],
)
def test_brackets_stand_where_they_are_needed_or_help(formula: Formula, words: str) -> None:
    assert text(formula) == words


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (plus(RANK, Number(0)), "rank"),
        (plus(Number(0), RANK), "rank"),
        (plus(Number(2), Number(-5)), "-3"),
        (plus(plus(RANK, Number(3)), Number(-5)), "rank - 2"),
        (plus(Binary("-", RANK, Number(3)), Number(5)), "rank + 2"),
        (plus(Binary("-", RANK, Number(3)), Number(3)), "rank"),
        (plus(Binary("*", RANK, Number(3)), Number(5)), "rank * 3 + 5"),
        (plus(RANK, Number(-2)), "rank - 2"),
        (plus(RANKS, Binary("-", RANK, Number(2))), "kRanks + rank - 2"),
        (minus(RANK, Number(2)), "rank - 2"),
        (minus(RANK, Number(-2)), "rank + 2"),
        (minus(RANKS, RANK), "kRanks - rank"),
        (times(RANK, Number(1)), "rank"),
        (times(Number(1), RANK), "rank"),
        (times(Number(0), RANK), "0"),
        (times(Number(3), Number(4)), "12"),
        (times(RANK, Number(4)), "rank * 4"),
    ],
)
def test_sums_and_products_are_short(made: Formula, words: str) -> None:
    assert text(made) == words


def test_what_a_formula_holds() -> None:
    whole = Either(Binary("<", RANK, Number(2)), NUMBERS, Binary("+", NUMBERS, RANKS))
    assert variables(whole) == {"rank", "ranks"}
    assert (entries(whole), entries(RANK)) == (6, 0)


def test_long_lines_are_broken_behind_commas() -> None:
    assert listed("f(", [], ");", 4) == ["f();"]
    assert listed("f(", ["a", "b"], ");", 4) == ["f(a, b);"]
    first, second = "a" * 60, "b" * (WIDTH - 2 - 60 - 2 - 2)
    assert listed("f(", [first, second], ");", 4) == [f"f({first}, {second});"]
    assert len(f"f({first}, {second});") == WIDTH
    assert listed("f(", [first, f"{second}b"], ");", 4) == [f"f({first},", f"    {second}b);"]
    assert listed("f(", [first, f"{second}b", "c"], ");", 4) == [
        f"f({first}, {second}b,",
        "    c);",
    ]


def test_lines_have_an_indentation() -> None:
    lines = CppLines(1)
    lines.add("one")
    lines.add()
    inner = lines.deeper()
    inner.checked("Call", ["main", "x" * 100])
    inner.set("a", "b")
    lines.extend(inner)
    assert str(lines) == (
        f"    one\n\n        CHK_RET(Call(main,\n{' ' * 21}{'x' * 100}));\n        a = b\n"
    )


@pytest.mark.parametrize(("size", "count"), [(WIDTH - 8, 1), (WIDTH - 7, 2)])
def test_an_assignment_has_one_line_or_two(size: int, count: int) -> None:
    lines = CppLines(1)
    lines.set("a", "b" * size)
    written = str(lines).splitlines()
    assert written == [f"    a = {'b' * size}", f"    a =\n        {'b' * size}"][count - 1].split(
        "\n"
    )


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("reduce-scatter", "ReduceScatter"),
        ("ALL GATHER", "Allgather"),
        ("step 2 of 3", "Step2Of3"),
        ("2nd", "Phase2nd"),
        ("hccl copy", "PhaseHcclCopy"),
        ("communicate", "PhaseCommunicate"),
        ("第一", "Phase"),
        ("allGather", "AllGather"),
    ],
)
def test_labels_become_names(label: str, name: str) -> None:
    assert camel_case(label) == name


@given(st.text())
def test_a_comment_ends_no_comment_and_no_line(words: str) -> None:
    shown = comment(words)
    assert all(" " <= c <= "~" and c != "\\" for c in shown)
    assert "*/" not in shown
    assert "/*" not in shown
    assert "??" not in shown


def test_what_can_be_read_stays_in_a_comment() -> None:
    assert comment("rank ~ 2 */ é\\\n") == "rank ~ 2 * / ? ? ?"
    assert comment("/*/ ok?") == "/ * / ok?"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (1 << 20, "1ULL << 20"),
        (200 << 20, "200ULL << 20"),
        ((1 << 20) + 1, "1048577"),
        (512, "512"),
    ],
)
def test_megabytes_are_shifted(number: int, words: str) -> None:
    assert size_text(number) == words


def test_a_project_has_six_files() -> None:
    made = project_files("mine", "all_reduce", "header", "host", "kernel", "--ranks 4")
    assert {path: made[path] for path in sorted(made)[2:5]} == {
        "include/custom.h": "header",
        "op_host/all_reduce.cc": "host",
        "op_kernel_aicpu/exec_op.cc": "kernel",
    }
    assert "project(mine LANGUAGES CXX)" in made["CMakeLists.txt"]
    assert made["hccl-py.toml"] == 'op = "all_reduce"\n'
    assert "hccl-py check . --ranks 4\n" in made["test/check.sh"]
