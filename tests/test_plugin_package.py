"""A third-party package, installed with pip, brings executors without touching the project.

The package is that of `authors_package/`: an author's code against the public API of version 0.1.0,
which has to go on working as it stands. Broken packages lie beside it where it is installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.pages,
    pytest.mark.xdist_group("plugin_package"),  # one worker makes what they share
]

PACKAGE = Path(__file__).parent / "authors_package"

SAID = {
    "from hccl_py.simulate import": (
        "from hccl_py.simulator import",
        "write `from hccl_py.simulator import ...`",
    ),
    "from hccl_py.verify import": (
        "from hccl_py.verifier import",
        "write `from hccl_py.verifier import ...`",
    ),
    "from hccl_py.verify.sweeps.cases import": (
        "from hccl_py.verifier.sweeps.cases import",
        "write `from hccl_py.verifier import ...`",
    ),
    "simulate_tasks(plan.program, CostModel": (
        "simulate_tasks(plan.program, comm.topology, CostModel",
        "missing 1 required positional argument: 'cost'",
    ),
}
"""What an author must write anew, and the error at the old text that says so."""

BROKEN = {
    "raises_plugin": ("raise ValueError('broken on import')", "broken on import"),
    "empty_plugin": ("", "has no tuple EXECUTORS"),
    "list_plugin": ("EXECUTORS = []", "EXECUTORS is no tuple, but a list."),
    "exits_plugin": ("print('hi'); import sys; sys.exit(4)", "SystemExit: 4"),
    "getattr_plugin": ("def __getattr__(name): raise RuntimeError(name)", "RuntimeError"),
    "odd_plugin": (
        "from neighbourly.gather import Turns\n"
        "class Odd(Turns): op = 'all_gathr'\n"
        "EXECUTORS = (Odd,)",
        "Did you mean all_gather",
    ),
}
"""Code of packages, and what is said of them."""


def obey(project: Path) -> None:
    """Change an author's files as errors have told them to."""
    for path in project.rglob("*.py"):
        text = path.read_text("utf-8")
        for old, (new, _) in SAID.items():
            text = text.replace(old, new)
        path.write_text(text, "utf-8")


def lay_out(site: Path, name: str, code: str) -> None:
    """Write what pip leaves of a package whose module is an entry point."""
    information = site / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[hccl_py.executors]\n{name} = {name}\n")
    (site / f"{name}.py").write_text(code)


def run(site: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment with the packages of `site` installed."""
    outside = ("HCCL", "PYTEST")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(outside)}
    environment["PYTHONPATH"] = str(site)
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer than the tests
    words = [str(Path(sys.executable).parent / command[0]), *command[1:]]
    return subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, env=environment, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one good package and several broken ones are installed."""
    folder = tmp_path_factory.mktemp("plugins")
    project, site = folder / "project", folder / "site"
    shutil.copytree(PACKAGE, project)
    obey(project)
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--no-build-isolation", "--disable-pip-version-check", "--target", site, project,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    for name, (code, _) in BROKEN.items():
        lay_out(site, name, code)
    return site


def test_what_has_to_be_written_anew_is_said(site: Path) -> None:
    project = site.parent / "project"
    text = (project / "tests" / "test_neighbourly.py").read_text("utf-8")
    old_tests = site.parent / "old_tests"
    old_tests.mkdir()
    for number, (old, (new, _)) in enumerate(SAID.items()):
        assert new in text, f"the author does not write {old}"
        (old_tests / f"test_{number}.py").write_text(text.replace(new, old), "utf-8")
    options = ("-q", "-p", "no:cacheprovider", "-k", "front_door")
    done = run(site, "pytest", *options, "--continue-on-collection-errors", cwd=old_tests)
    for _, sentence in SAID.values():
        assert sentence in done.stdout
    assert not re.search(r"\d+ passed", done.stdout)


def test_what_an_author_tests_passes(site: Path) -> None:
    project = site.parent / "project"
    command = ("pytest", "-q", "-p", "no:cacheprovider")
    done = run(site, *command, "-W", "default::DeprecationWarning", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    sentence = "hccl_py.executor is hccl_py.plugins.executor now: write `from hccl_py.plugins."
    assert sentence in done.stdout, "modules that have moved work, with a warning"
    strict = run(site, *command, cwd=project)  # the author's settings make warnings errors
    assert sentence in strict.stdout


def test_list_shows_the_plugin_and_what_is_broken(site: Path) -> None:
    done = run(site, "hccl-py", "list", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    package = {e["name"]: e["package"] for e in document["executors"]}
    assert {package[name] for name in ("Turns", "RingAllReduce", "Letters")} == {"neighbourly"}
    assert package["AllGatherMeshOpbaseExecutor"] == "hccl_executors"
    problems = json.dumps(document["problems"])
    for _, words in BROKEN.values():
        assert words in problems


@pytest.mark.parametrize("ranks", ["1", "5"])
def test_run_takes_the_plugin_s_executor(site: Path, ranks: str) -> None:
    done = run(
        site, "hccl-py", "run", "all_gather", "--ranks", ranks, "--executor", "Turns", "--json"
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["rows"][0]
    assert row["executor"] == "Turns"
    assert row["check"] == "success"


def test_without_being_named_it_is_not_chosen(site: Path) -> None:
    done = run(site, "hccl-py", "explain", "all_gather", "--ranks", "4", "--json")
    document = json.loads(done.stdout)
    assert document["executor"] == "AllGatherMeshOpbaseExecutor"
    reasons = {r["executor"]: r["reason"] for r in document["rejected"]}
    assert "no row of" in reasons["Turns"]
