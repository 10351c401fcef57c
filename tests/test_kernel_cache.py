"""That workers find every kernel compiled."""

from pathlib import Path

import pytest

from tests.kernel_cache import HALVES, SOURCES, compile_half, is_cold, kernels_in


def test_both_halves_together_compile_every_kernel() -> None:
    running = [compile_half(half) for half in HALVES]
    compiled = [set(process.communicate()[0].split()) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    wanted = {name for folder in SOURCES for _, _, name in kernels_in(folder)}
    assert set.union(*compiled) == wanted
    assert set.intersection(*compiled) == {"run_tiles"}  # each half has types of its own


def test_a_folder_without_compiled_kernels_is_cold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert is_cold()


def test_kernels_are_found_with_the_line_of_their_decorator(tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    file.write_text(
        "@kernel\ndef plain(x): ...\n\n\n"
        "@kernel_calling(\n    lambda: (\n        _helper,\n    ),\n)\ndef calling(x): ...\n\n\n"
        "def kernel(function): ...\n"
    )
    assert list(kernels_in(tmp_path)) == [(file, 1, "plain"), (file, 5, "calling")]
