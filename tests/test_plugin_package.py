"""A third-party package, installed with pip, brings an executor without touching the project."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "1.0"
[project.entry-points."hccl_py.executors"]
{name} = "{name}"
"""

CHAIN = '''
"""AllGather by asking every rank in turn."""
from hccl_py.executor import PlaneRequest, ResourceRequest
from hccl_py.orchestration import exchange


class AllGatherTurns:
    """Every rank reads one peer after the other on its main stream."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op, topology):
        return True

    def resources(self, op, rank):
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op, rank):
        n, links = rank.size, rank.flat
        staged = rank.ccl_in.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], staged)
        for k in range(1, n):
            to, frm = (rank.id + k) % n, (rank.id - k) % n
            exchange(rank.main, links[to], links[frm], staged, rank.user_out[frm],
                     source=rank.ccl_in, land=rank.ccl_out)


EXECUTORS = (AllGatherTurns,)
'''


def install(folder: Path, name: str, code: str) -> None:
    """Build a package and pip-install it into `folder`/site."""
    project = folder / name
    (project / name).mkdir(parents=True)
    (project / "pyproject.toml").write_text(PYPROJECT.format(name=name))
    (project / name / "__init__.py").write_text(code)
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--no-build-isolation", "--disable-pip-version-check",
            "--target", folder / "site", project,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip


def hccl_py(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with the folder's packages installed."""
    command = [str(Path(sys.executable).parent / "hccl-py"), *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HCCL")}
    environment["PYTHONPATH"] = str(folder / "site")
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One good package and several broken ones."""
    folder = tmp_path_factory.mktemp("plugins")
    install(folder, "turns_plugin", CHAIN)
    install(folder, "raises_plugin", "raise ValueError('broken on import')")
    install(folder, "empty_plugin", "")
    install(folder, "exits_plugin", "print('hi'); import sys; sys.exit(4)")
    install(folder, "getattr_plugin", "def __getattr__(name): raise RuntimeError(name)")
    install(folder, "odd_plugin", CHAIN.replace('op = "all_gather"', 'op = "all_gathr"'))
    return folder


def test_list_shows_the_plugin_and_what_is_broken(plugins: Path) -> None:
    done = hccl_py(plugins, "list", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    mine = [e for e in document["executors"] if e["name"] == "AllGatherTurns"]
    assert [e["package"] for e in mine] == ["turns_plugin"]
    assert "AllGatherMeshOpbaseExecutor" in {e["name"] for e in document["executors"]}
    problems = json.dumps(document["problems"])
    for words in (
        "broken on import",
        "has no tuple EXECUTORS",
        "Did you mean all_gather",
        "SystemExit: 4",
        "RuntimeError",
    ):
        assert words in problems


@pytest.mark.parametrize("ranks", ["1", "5", "12"])
def test_run_takes_the_plugin_s_executor(plugins: Path, ranks: str) -> None:
    done = hccl_py(
        plugins, "run", "all_gather", "--ranks", ranks, "--executor", "AllGatherTurns", "--json"
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["rows"][0]
    assert row["executor"] == "AllGatherTurns"
    assert row["check"] == "success"


def test_without_being_named_it_is_not_chosen(plugins: Path) -> None:
    done = hccl_py(plugins, "explain", "all_gather", "--ranks", "4", "--json")
    document = json.loads(done.stdout)
    assert document["executor"] == "AllGatherMeshOpbaseExecutor"
    reasons = {r["executor"]: r["reason"] for r in document["rejected"]}
    assert "no row of" in reasons["AllGatherTurns"]
