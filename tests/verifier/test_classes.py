"""Every class of findings is triggered by a program file and by an executor; the same ones with one
detail put right are clean.
"""

import re
from pathlib import Path

import pytest

from hccl_py.verifier import CLASSES, Report, Severity
from hccl_py.verifier.classes import IMPORTING, RECORDING
from hccl_py.verifier.sweeps.sweep import verify_executor
from tests.verifier.broken_executors import EXECUTORS
from tests.verifier.broken_files import FILES
from tests.verifier.programs import PRODUCT


def of_file(name: str, wrong: bool) -> Report:
    return FILES[name](wrong).report(product=PRODUCT)


def of_executor(name: str, wrong: bool) -> Report:
    executor = EXECUTORS[name](wrong)
    return verify_executor(executor, executor.cases, executor.options)


def test_every_class_has_a_file_and_an_executor() -> None:
    of_programs = set(CLASSES) - {*RECORDING, *IMPORTING}  # those of tests/cpp, tests/msccl
    assert set(FILES) == of_programs
    assert set(EXECUTORS) == of_programs - {"WAITS_UNORDERED"}  # no executor's notifies count


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_shows_its_class(name: str) -> None:
    found = of_file(name, True).of_class(name)
    assert found
    assert {finding.severity for finding in found} == {CLASSES[name].severity}
    assert all(finding.message and finding.hint for finding in found)


@pytest.mark.parametrize("name", FILES)
def test_the_same_file_put_right_is_clean(name: str) -> None:
    report = of_file(name, False)
    assert not report.of_class(name)
    assert not report.errors


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_broken_executor_shows_its_class_at_a_line(name: str) -> None:
    report = of_executor(name, True)
    found = report.of_class(name)
    assert found
    assert not report.failures
    for finding in found:
        assert finding.case
        assert bool(finding.source) == (name not in WITHOUT_LINE)


WITHOUT_LINE = {"SILENT_RANK", "OUTPUT_MISSING", "RESOURCE_UNUSED", "RESOURCE_EXCEEDED"}
"""What is about tasks that are not there."""


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_same_executor_put_right_is_clean(name: str) -> None:
    report = of_executor(name, False)
    assert report.ok
    assert not report.of_class(name)


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_shows_little_else(name: str) -> None:
    """One mistake is not a page of errors: what follows from it is left out, or belongs to it."""
    errors = {finding.name for finding in of_file(name, True).errors}
    if CLASSES[name].severity is Severity.ERROR:
        assert errors - ALSO.get(name, set()) == {name}
    else:
        assert not errors


def test_the_documentation_lists_every_class() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verifier.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\w+) \| (.*) \| .+ \|$", page, re.MULTILINE)
    assert rows == [(c.name, c.severity.spelling, c.meaning) for c in CLASSES.values()]


ALSO = {
    "OUT_OF_BOUNDS": {"OUTPUT_MISSING"},
    "SILENT_RANK": {"WAIT_WITHOUT_POST", "UNMATCHED_POST"},
    "SLICE_LEN_MISMATCH": {"OUTPUT_MISSING"},
}
