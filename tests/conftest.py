"""What all tests share: the same surroundings everywhere, the hypothesis profiles, the smoke tests,
and no traces of what a test imports.
"""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.statistics import collector

from tests.kernel_cache import compiled_anew, is_cold, warm_up
from tests.smoke import SMOKE

# The same surroundings wherever the tests run; processes that they start inherit them.
OUTSIDE = ("HCCL_", "COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "PY_COLORS", "LC_")
TOLD = "HCCL_PY_DEMAND_"  # tests themselves: what must not be skipped
for variable in [name for name in os.environ if name.startswith((*OUTSIDE, "GITHUB_ACTIONS"))]:
    if not variable.startswith(TOLD):
        del os.environ[variable]
os.environ["LC_ALL"] = "C.UTF-8"
os.umask(0o022)

# What one process has compiled, and whose asserts it has rewritten, all others load.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as in a shell's background job
if ignored and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Which test is first to compile a kernel depends on the machine's cache; no test here looks at it.
logging.getLogger("hccl_py.program.kernels").setLevel(logging.WARNING)

# "ci" finds the same examples in every run and never fails because a machine is slow.
# "long" takes more of them, other ones under every seed (scripts/check --all).
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=25,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

collect_ignore = ["authors_package"]  # an author's project: test_plugin_package.py runs its tests

HERE = Path(__file__).parent

FEW_EXAMPLES = 6
"""Fewer examples than these say nothing about how many are thrown away."""

PROCESSES = ("interop/cpp/", "platform/distributed/", "cli/test_run_processes.py")
"""Where every rank is a process, or C++ is compiled: a run of its own, marked `processes`."""


def asks_for_smoke(config: pytest.Config) -> bool:
    return str(config.option.markexpr) == "smoke"


def pytest_configure(config: pytest.Config) -> None:
    """Run the smoke tests in plain Python; compile the kernels once before workers start."""
    if asks_for_smoke(config):
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    elif shares_kernels(config) and is_cold():
        warm_up()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start a worker more than there are processors: tests of processes wait a lot."""
    return (yield) + 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Call a test marked `seeds` with so many seeds, other ones under every `--hypothesis-seed`."""
    marker = metafunc.definition.get_closest_marker("seeds")
    if marker is not None:
        (number,) = marker.args
        first = number * int(metafunc.config.getoption("hypothesis_seed") or 0)
        metafunc.parametrize("seed", range(first, first + number))


def shares_kernels(config: pytest.Config) -> bool:
    """Whether several workers are about to run whole folders of tests."""
    asked = config.option
    has_workers = bool(getattr(asked, "tx", ())) and not hasattr(config, "workerinput")
    is_part = asked.keyword or asked.collectonly or "NUMBA_DISABLE_JIT" in os.environ
    return has_workers and not is_part and any(Path(argument).is_dir() for argument in config.args)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let every worker tell the controller which kernels it has compiled for itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compiled"] = compiled_anew()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Name the kernels that a worker has compiled: tests/compile_kernels.py should have."""
    compiled = getattr(node, "workeroutput", {}).get("compiled")
    if compiled:
        names = ", ".join(compiled)
        node.config.pluginmanager.get_plugin("terminalreporter").write_line(
            f"{node.gateway.id} compiled {names}", yellow=True
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what has no smoke test."""
    if not asks_for_smoke(config) or collection_path.suffix != ".py":
        return None
    return True if collection_path.relative_to(HERE).as_posix() not in SMOKE else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let every second worker begin with the last file: what one has compiled, others load."""
    report = yield
    if isinstance(collector, pytest.Directory) and _begins_at_the_end(collector.config):
        report.result = report.result[::-1]
    return report


def _begins_at_the_end(config: pytest.Config) -> bool:
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return int(worker.removeprefix("gw")) % 2 == 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests into the order of their files, the same in every worker; mark those of a kind."""
    items.sort(key=lambda item: item.path.parts)
    for item in items:
        file = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        if file in SMOKE and item.get_closest_marker("long") is None:
            item.add_marker("smoke")
        if file.startswith(PROCESSES):
            item.add_marker("processes")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a property test that throws away more than a third of its examples."""
    stages: list[dict[str, Any]] = []
    with collector.with_value(stages.append):  # type: ignore[arg-type]
        yield
    cases = [case["status"] for stage in stages for case in cases_of(stage)]
    thrown_away = sum(status == "invalid" for status in cases)
    if len(cases) >= FEW_EXAMPLES and thrown_away > len(cases) / 3:
        pytest.fail(
            f"{thrown_away} of {len(cases)} examples end early: draw what suits, such as by "
            "tests/suited.py, in place of `assume` and filters."
        )


def cases_of(stage: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the examples of a test that hypothesis has made, without those of other phases."""
    found: list[dict[str, Any]] = stage.get("generate-phase", {}).get("test-cases", [])
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector rest: nearly all that is made now stays till the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Spare the collector what stays till the end, which it would look at again and again, and let
    it look seldom: a recording makes many thousand objects that none refers to in a circle.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True)
def authors_leave_no_trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Take back what a test has imported from its folder: otherwise it stays for all tests."""
    path, last = list(sys.path), next(reversed(sys.modules))
    yield
    sys.path[:] = path
    folder = str(tmp_path_factory.getbasetemp())
    for name in list(takewhile(lambda name: name != last, reversed(sys.modules))):
        if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
            del sys.modules[name]
