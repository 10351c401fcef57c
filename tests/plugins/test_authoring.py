"""What an author does: `hccl-py new`, pip install, `hccl-py check`, pytest.

tests/scaffold/test_executors.py looks at the executors of all ops.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hccl_py.cli import main

pytestmark = [
    pytest.mark.pages,
    pytest.mark.xdist_group("authoring"),  # one worker makes what they share
]

OPS = (
    "all_reduce",
    *(pytest.param(op, marks=pytest.mark.long) for op in ("all_gather", "scatter", "all_to_all_v")),
)

Run = Callable[..., str]
"""Runs a command where a project is installed; returns what it prints."""


def run_in(folder: Path, environment: dict[str, str], *command: str) -> str:
    """Run one of the tools that are installed beside this Python; return what it prints."""
    tool = [sys.executable, "-m", command[0]]
    if command[0] in {"hccl-py", "ruff"}:
        tool = [str(Path(sys.executable).parent / command[0])]
    done = subprocess.run(
        [*tool, *command[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=OPS)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project for an op, installed into the folder `site` beside it."""
    op: str = request.param
    folder = tmp_path_factory.mktemp(op)
    name = f"My{op.title().replace('_', '')}"
    assert main(["new", "executor", name, "--op", op, "--path", str(folder / "project")]) == 0
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--no-build-isolation", "--disable-pip-version-check",
            "--target", folder / "site", folder / "project",
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return folder / "project"


@pytest.fixture
def run(project: Path, tmp_path: Path) -> Run:
    """Return a function that runs a command where the project is installed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HCCL", "PYTEST"))}
    environment["PYTHONPATH"] = str(project.parent / "site")
    return partial(run_in, tmp_path, environment)


def names(project: Path) -> tuple[str, str]:
    """Return executor and op."""
    op = project.parent.name.rstrip("0123456789")
    return f"My{op.title().replace('_', '')}", op


def test_it_is_listed_and_verified(project: Path, run: Run) -> None:
    name, op = names(project)
    listed = json.loads(run("hccl-py", "list", "--json"))
    assert (name, op) in {(e["name"], e["op"]) for e in listed["executors"]}
    assert listed["problems"] == []
    narrow = ("--ranks", "2,3", "--count", "1024", "-d", "int8,fp32")
    report = json.loads(run("hccl-py", "check", name, *narrow, "--json"))["reports"][0]
    assert report["ok"]
    assert report["findings"] == []
    assert report["cases"] > 3


def test_it_runs_and_draws(project: Path, run: Run) -> None:
    name, op = names(project)
    document = json.loads(run("hccl-py", "run", op, "--executor", name, "--ranks", "5", "--json"))
    assert document["rows"][0]["executor"] == name
    assert document["rows"][0]["check"] == "success"
    assert name in run("hccl-py", "trace", op, "--executor", name)


@pytest.mark.long  # that of one op runs with docs/authoring.md
def test_its_own_test_passes(project: Path, run: Run) -> None:
    assert "1 passed" in run("pytest", "-q", "--rootdir", str(project), str(project / "tests"))


def test_its_code_is_clean(project: Path, run: Run) -> None:
    run("ruff", "check", str(project))
    run("ruff", "format", "--check", str(project))


@pytest.mark.long  # mypy looks at numpy and at all of hccl-py first
def test_its_types_are_right(project: Path, run: Run) -> None:
    package = f"my_{names(project)[1]}"
    cache = str(project.parent / "mypy")
    run("mypy", "--strict", "--cache-dir", cache, str(project / package))


def test_its_readme_s_commands_are_those_of_the_tests(project: Path) -> None:
    name, op = names(project)
    text = (project / "README.md").read_text()
    for command in (
        'pip install -e ".[test]"',
        f"hccl-py check {name}",
        "pytest",
        f"hccl-py run {op} --executor {name} --ranks 4",
        f"hccl-py trace {op} --executor {name} --ranks 4",
    ):
        assert f"\n$ {command}\n" in text
