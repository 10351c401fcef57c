"""A wheel built from the tree holds everything: it runs where nothing else of the project is."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.pages,
    pytest.mark.xdist_group("wheel"),  # one worker makes what they share
]

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Path:
    """An environment with the wheel, and the installed libraries but not this tree."""
    folder = wheel.parent
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), *install, str(wheel)]
    subprocess.run(pip, check=True)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries))  # their own .pth are not read
    return folder / "env"


def output(environment: Path, *command: str) -> str:
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("HCCL", "PYTHON"))}
    done = subprocess.run(
        [str(environment / "bin" / command[0]), *command[1:]],
        cwd=environment,
        env=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_packages_and_nothing_else_at_its_top(wheel: Path) -> None:
    check = [sys.executable, "-m", "check_wheel_contents", str(wheel)]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_packages_are_those_of_the_wheel(environment: Path) -> None:
    names = "hccl_py, hccl_executors, hccl_platform"
    files = output(environment, "python", "-c", f"import {names}; print({names}, sep='\\n')")
    assert files.count(str(environment / "lib")) == 3


def test_commands_run(environment: Path) -> None:
    listed = json.loads(output(environment, "hccl-py", "list", "--json"))
    assert len(listed["executors"]) > 80
    run = json.loads(output(environment, "hccl-py", "run", "all_gather", "-n", "1", "--json"))
    assert run["schema"] == "hccl-py.run/1"
    call = ["check", "AllGatherMeshOpbaseExecutor", "--ranks", "2"]
    assert "ok" in output(environment, "python", "-m", "hccl_py", *call)


def test_a_page_has_all_that_it_needs(environment: Path) -> None:
    output(environment, "hccl-py", "trace", "all_gather", "--html", "page.html")
    page = (environment / "page.html").read_text("utf-8")
    assert "hcclPage" in page
