"""When a kernel runs compiled, and that helpers come along."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hccl_py.program.kernels import COLD, WORTH_CALLING, WORTH_COMPILING, Kernel, reading


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
    assert kernel.compiled(21) == 42


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


@pytest.mark.parametrize(("is_kept", "worth"), [(True, 1), (False, COLD)])
def test_small_loops_run_plain_until_they_have_cost_as_much_as_compiling(
    cache: Path, is_kept: bool, worth: int
) -> None:
    if is_kept:
        keep_on_disk(cache)
    kernel, part = fresh(), WORTH_COMPILING * worth // 10
    for _ in range(10):
        assert kernel.sized(part - 1) is kernel.plain
    assert kernel.sized(part) is kernel.compiled
    assert kernel.sized(1) is kernel.compiled


def test_what_is_loaded_is_used_for_small_loops_too() -> None:
    kernel = fresh()
    assert kernel.sized(WORTH_COMPILING * COLD) is kernel.compiled
    assert kernel.sized(WORTH_CALLING) is kernel.compiled
    assert kernel.sized(WORTH_CALLING - 1) is kernel.plain


def test_numba_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", True)
    kernel = fresh()
    assert kernel.sized(1 << 40) is kernel.plain


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
