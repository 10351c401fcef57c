"""When a kernel runs compiled, and that helpers come along."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_py.program.kernels import COLD, WORTH_CALLING, WORTH_COMPILING, Kernel, reading
from hccl_py.verifier.analysis.clocks.loop import run_clocks


def doubled(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    total = 0
    for value in values:
        total += twice(int(value))
    return total


def twice(value: int) -> int:
    return 2 * value


def fresh(*, allocates: bool = True) -> Kernel[..., int]:
    return Kernel(doubled, lambda: (twice,), allocates=allocates)


@pytest.mark.parametrize("allocates", [True, False])
def test_the_compiled_form_means_the_same(allocates: bool) -> None:
    kernel, values = fresh(allocates=allocates), np.arange(100)
    assert kernel.compiled(values) == kernel.plain(values) == 9900


def test_what_cannot_be_kept_on_disk_is_compiled_all_the_same() -> None:
    scope: dict[str, Any] = {"__name__": "made"}
    exec("def doubled(value):\n    return 2 * value", scope)  # from no file: nowhere to keep it
    kernel: Kernel[..., int] = Kernel(scope["doubled"])
    assert kernel.sized(1 << 40)(21) == 42
    assert "compiled" in vars(kernel)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which numba keeps compiled code: empty."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def keep_on_disk(cache: Path) -> None:
    """Write the index that numba writes when it has compiled the kernel of these tests."""
    code, version = doubled.__code__, f"py{sys.version_info[0]}{sys.version_info[1]}"
    name = f"test_kernels.doubled-{code.co_firstlineno}.{version}{sys.abiflags}.nbi"
    (cache / "program_0").mkdir()
    (cache / "program_0" / name).touch()


def test_small_loops_run_plain_until_they_have_cost_as_much_as_loading(cache: Path) -> None:
    keep_on_disk(cache)
    kernel, part = fresh(), WORTH_COMPILING // 10
    for _ in range(10):
        assert kernel.sized(part - 1) is kernel.plain
    assert kernel.sized(part) is kernel.compiled
    assert kernel.sized(1) is kernel.compiled


def compiles(kernel: Kernel[..., int], steps: int) -> bool:
    """Run a loop that counts as so many steps; return whether its compiled form is there then."""
    assert kernel.sized(steps)(np.arange(100)) == 9900
    return "compiled" in vars(kernel)


@pytest.mark.usefixtures("cache")
def test_what_is_not_on_disk_is_compiled_when_plain_runs_have_cost_as_much() -> None:
    kernel = fresh()
    part = int(WORTH_COMPILING * COLD * kernel.seconds_to_compile) // 10
    assert not any(compiles(kernel, part - 1) for _ in range(10))
    assert compiles(kernel, part)


@pytest.mark.usefixtures("cache")
def test_one_process_compiles_while_others_run_plain() -> None:
    code = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'rb')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        kernel, much = fresh(), 1 << 40
        assert not compiles(kernel, much)
        other.communicate()
    assert compiles(kernel, much)


def test_what_compiles_says_for_what_and_how_long(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(cache))
    caplog.set_level(logging.INFO, "hccl_py.program.kernels")
    for _ in range(2):  # the second loads
        fresh().compiled(np.arange(100))
    said = ["compiling a loop of tests.program for this machine, once: about 1 s"]
    assert caplog.messages == said


def test_larger_code_takes_longer_to_compile() -> None:
    assert 1 < fresh().seconds_to_compile < 1.2
    assert 6 < run_clocks.seconds_to_compile < 12


class Pair(NamedTuple):
    left: np.ndarray[tuple[int], np.dtype[np.int64]]
    factor: int


class Nested(NamedTuple):
    pair: Pair
    right: np.ndarray[tuple[int], np.dtype[np.int64]]


def weighed(nested: Nested, pair: Pair) -> int:
    for k in range(len(nested.right)):
        nested.right[k] += product(nested.pair, k) + pair.factor
    return int(nested.right.sum())


def product(pair: Pair, k: int) -> int:
    return int(pair.left[k]) * pair.factor


def test_tuples_of_columns_in_one_another_mean_the_same_compiled() -> None:
    kernel: Kernel[..., int] = Kernel(weighed, lambda: (product,), allocates=False)
    results = []
    for run in (kernel.plain, kernel.compiled):
        pair, right = Pair(np.arange(4), 3), np.ones(4, np.int64)
        results.append((run(Nested(pair, right), pair), right.tolist()))
    assert results[0] == results[1] == (34, [4, 7, 10, 13])


def test_what_is_loaded_is_used_for_small_loops_too() -> None:
    kernel = fresh()
    kernel.compiled(np.arange(3))
    assert kernel.sized(WORTH_CALLING) is kernel.compiled
    assert kernel.sized(WORTH_CALLING - 1) is kernel.plain


@pytest.mark.parametrize(
    "line",
    [
        "trace all_reduce -b 64M",
        "simulate all_reduce -b 64M --network contended",
        "run all_reduce -b 16K",
    ],
)
def test_programs_of_5_000_tasks_compile_nothing(cache: Path, line: str) -> None:
    options = "--servers 3 --devices 8 --executor AllReduceMeshExecutor"
    done = subprocess.run(
        [sys.executable, "-m", "hccl_py", *line.split(), *options.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "compiling" not in done.stderr
    assert not list(cache.rglob("*.nbi"))


def summed(values: np.ndarray[tuple[int], np.dtype[Any]]) -> float:
    return float(values.sum())


def test_processes_that_compile_at_once_for_different_types_keep_both_apart(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has looked at the index before the first wrote it, and is done in between."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(cache))
    first, second, later = (Kernel[..., float](summed) for _ in range(3))
    kept = [kernel.compiled._cache._cache_file for kernel in (first, second)]  # type: ignore[attr-defined]
    floats, whole, save = np.full(4, 0.5), np.arange(4), kept[0]._save_data

    def save_late(name: str, data: object) -> None:
        assert second.compiled(whole) == 6
        save(name, data)

    monkeypatch.setattr(kept[0], "_save_data", save_late)
    monkeypatch.setattr(kept[1], "_load_index", dict)
    assert first.compiled(floats) == 2
    assert later.compiled(floats) == 2
    assert later.compiled(whole) == 6


def test_numba_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", True)
    kernel = fresh()
    assert kernel.compiled is kernel.plain


def test_arrays_that_are_only_read_are_of_one_type() -> None:
    plain = np.arange(8)
    frozen, strided = plain.copy(), np.arange(16)[::2]
    frozen.flags.writeable = False
    taken = [reading(array) for array in (plain, frozen, strided)]
    assert [array.flags.writeable for array in taken] == [False] * 3
    assert all(array.flags.c_contiguous for array in taken)
    assert plain.flags.writeable
    assert (taken[2] == strided).all()


def test_what_is_in_other_files_makes_what_is_cached_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own each time, as numba keeps what it has compiled."""
    (tmp_path / "loops.py").write_text(
        "from hccl_py.program.kernels import Kernel\n"
        "from numbers_of_steps import LEAST\n"
        "from steps import step\n"
        "def stepped(value):\n    return max(LEAST, step(value))\n"
        "print(Kernel(stepped, lambda: (step,)).compiled(20))\n"
    )
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def printed(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        command = [sys.executable, "-B", "loops.py"]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    (tmp_path / "numbers_of_steps.py").write_text("LEAST = 0\n")
    assert printed("steps.py", "def step(value):\n    return value + 1\n") == "21"
    assert list((tmp_path / "cache").rglob("*.nbi")), "nothing was kept"
    assert printed("steps.py", "def step(value):\n    return value + 111\n") == "131"
    assert printed("numbers_of_steps.py", "LEAST = 200\n") == "200"
