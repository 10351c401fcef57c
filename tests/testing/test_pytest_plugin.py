"""The pytest plugin, in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_py.testing import PROPERTIES, Suite
from hccl_py.testing.pytest_plugin import executors_of, suite_of
from tests.testing import authors

pytestmark = pytest.mark.xdist_group("pytest_plugin")  # one worker makes what they share

NARROW = """
Turns.suits = lambda self, op, topology: require(
    (topology.is_single_server and topology.size in (2, 3), "2 or 3 ranks"),
    (op.mode is Mode.OP_BASE and op.dtype.name == "FP32", "op-base mode and fp32"),
    (op.count in (1, 1001) or op.count > 8192, "little, and several rounds"),
)
"""
"""So few calls that a sweep takes a moment."""

AUTHORS = Path(authors.__file__).read_text("utf-8") + NARROW
"""A package's code: its EXECUTORS are Turns, which is right, and NoAcks, which is not."""

OUR_SETTINGS = """
[tool.pytest.ini_options]
addopts = ["-ra", "--strict-markers", "--import-mode=importlib"]
filterwarnings = ["error"]
"""


ALONE = ("-p", "hccl_py.testing.pytest_plugin")
"""The plugin without all others that are installed here: those take longer than the tests."""


def run_pytest(
    folder: Path, *arguments: str, plugins: tuple[str, ...] = ALONE
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, with the named plugins, or with those that it finds."""
    settings = ("PYTEST", "HCCL", "COLUMNS", "GITHUB", "CI")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(settings)}
    if plugins:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ("-p", "no:cacheprovider", "--color=no", *plugins)
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )


def write_package(folder: Path, name: str, code: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(code, "utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with packages and without tests."""
    folder = tmp_path_factory.mktemp("authors")
    write_package(folder, "my_package", AUTHORS)
    write_package(folder, "right", f"{AUTHORS}\nEXECUTORS = (Turns,)")
    write_package(folder, "refusing", f"{AUTHORS}\nEXECUTORS = (SuitsNothing,)")
    write_package(folder, "broken", "raise ValueError('on import')")
    write_package(folder, "empty", "")
    write_package(folder, "listing", f"{AUTHORS}\nEXECUTORS = [Turns]")
    write_package(folder, "odd", f"{AUTHORS}\nTurns.op = 'all_gathr'\nEXECUTORS = (Turns,)")
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    """The suite on both executors of a package, in a folder without tests."""
    return run_pytest(folder, "-v", "--hccl-executors", "my_package")


def test_one_test_per_executor_and_property(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 1, done.stdout
    wrong = {"semantics", "races", "deadlock", "numeric", "sync_deletion"}
    for chosen in PROPERTIES:
        assert f"my_package::Turns[{chosen.name}] PASSED" in done.stdout
        verdict = "FAILED" if chosen.name in wrong else "PASSED"
        assert f"my_package::NoAcks[{chosen.name}] {verdict}" in done.stdout
    assert f"collected {2 * len(PROPERTIES)} items" in done.stdout
    assert f"{len(wrong)} failed, " in done.stdout


def test_failures_are_reports_and_no_tracebacks(done: subprocess.CompletedProcess[str]) -> None:
    assert "NoAcks[races]: not so: accesses to the same memory are ordered." in done.stdout
    assert "hint: Post a notify after the write" in done.stdout
    assert "under Schedule(choices=" in done.stdout
    assert "Traceback" not in done.stdout
    assert "conformance.py" not in done.stdout, "no line of the suite's own code"
    assert done.stderr == ""


@pytest.mark.sweep
def test_warnings_as_errors_and_strict_settings(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(OUR_SETTINGS, "utf-8")
    write_package(tmp_path, "right", f"{AUTHORS}\nEXECUTORS = (Turns,)")
    done = run_pytest(tmp_path, "-q", "--hccl-executors=right")
    assert done.returncode == 0, done.stdout
    assert f"{len(PROPERTIES)} passed" in done.stdout


@pytest.mark.sweep
def test_several_packages_and_selection(folder: Path) -> None:
    options = ("--hccl-executors=my_package, right", "--hccl-executors=refusing")
    chosen = run_pytest(folder, "-q", "--collect-only", *options)
    lines = chosen.stdout.splitlines()
    assert lines[0] == "my_package::Turns[semantics]"
    assert sum("::" in line for line in lines) == 4 * len(PROPERTIES)
    done = run_pytest(folder, "-v", *options, "-k", "refusing or (right and deadlock)")
    assert "right::Turns[deadlock] PASSED" in done.stdout
    assert "refusing::SuitsNothing[races] FAILED" in done.stdout
    assert "nothing was verified" in done.stdout
    assert "my_package" not in done.stdout


@pytest.mark.sweep
def test_beside_tests_of_one_s_own(folder: Path, tmp_path: Path) -> None:
    write_package(tmp_path, "right", f"{AUTHORS}\nEXECUTORS = (Turns,)")
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass", "utf-8")
    done = run_pytest(tmp_path, "-q", "--hccl-executors", "right", "-k", "mine or resources")
    assert "2 passed, " in done.stdout


def test_a_property_without_a_case_is_skipped(tmp_path: Path) -> None:
    write_package(tmp_path, "one_round", f"{AUTHORS}\n{ONE_ROUND}EXECUTORS = (Graphs,)")
    done = run_pytest(tmp_path, "-rs", "--hccl-executors", "one_round", "-k", "rounds")
    assert done.returncode == 0, done.stdout
    assert "Graphs does everything in one round" in done.stdout


ONE_ROUND = """
class Graphs(Turns):
    def suits(self, op, topology):
        return super().suits(op, topology) and op.count < 100

"""


BAD_PACKAGES = {
    "nowhere": "nowhere: cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    "broken": "broken: cannot be imported: ValueError: on import",
    "empty": "empty has no executors: it needs EXECUTORS = (MyClass, ...), a tuple.",
    "listing": "listing has no executors: it needs EXECUTORS",
    "odd": "op 'all_gathr' is unknown.\nDid you mean all_gather",
}


@pytest.mark.parametrize(("package", "message"), BAD_PACKAGES.items())
def test_a_bad_package_is_a_usage_error(
    folder: Path, package: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(pytest.UsageError) as error:
        [suite_of(executor, package, Suite) for executor in executors_of(package)]
    assert str(error.value).startswith("--hccl-executors ")
    assert message in str(error.value)


def test_a_usage_error_is_a_sentence(folder: Path) -> None:
    done = run_pytest(folder, "--hccl-executors", "odd")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert done.stderr.startswith("ERROR: --hccl-executors ")
    assert BAD_PACKAGES["odd"] in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_unused_it_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    ours = {name for name in sys.modules if name.startswith('hccl_')}\n"
        "    assert ours == {'hccl_py', 'hccl_py.moved', 'hccl_py.testing',"
        " 'hccl_py.testing.pytest_plugin'}\n"
        "    assert 'numpy' not in sys.modules\n",
        "utf-8",
    )
    done = run_pytest(tmp_path, "-q", "-p", "no:hypothesispytest", plugins=())
    assert done.returncode == 0, done.stdout


def test_the_kit_needs_no_pytest() -> None:
    code = (
        "import sys, hccl_py.testing as kit; kit.check_executor; "
        "assert not {'pytest', 'hypothesis'} & {*sys.modules}; "
        "assert 'check_executor' in dir(kit); kit.chek"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "AttributeError: module 'hccl_py.testing' has no attribute 'chek'" in done.stderr
