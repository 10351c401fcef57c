"""The fake runtime is built once for each state of its sources, or tests say why not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platform.npu import runtime

pytestmark = pytest.mark.npu

ROOT = Path(__file__).parents[3]


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(runtime.DEMANDED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no g\+\+ to build"):
        runtime.library()
    monkeypatch.setenv(runtime.DEMANDED, "1")
    with pytest.raises(pytest.fail.Exception, match=r"no g\+\+ to build"):
        runtime.library()


def test_each_state_of_the_sources_has_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = shutil.which("g++") or sys.executable  # any program that tells its version
    sources = Path(shutil.copytree(runtime.SOURCES, tmp_path / "fake"))
    before = runtime.state(compiler)
    monkeypatch.setattr(runtime, "SOURCES", sources)
    assert runtime.state(compiler) == before
    (sources / "knobs.hpp").write_text("")
    assert runtime.state(compiler) != before


COUNTING = """#!/bin/sh
[ "$1" = --version ] && exec g++ --version
echo >>{log}
exec g++ "$@"
"""
BUILDING = """
import sys
from pathlib import Path
from tests.platform.npu import runtime
runtime.SOURCES = Path(sys.argv[2])
print(runtime.built(sys.argv[1]))
"""


def test_of_several_processes_one_builds(tmp_path: Path) -> None:
    runtime.library()
    compiler, log, sources = tmp_path / "compiler", tmp_path / "log", tmp_path / "fake"
    compiler.write_text(COUNTING.format(log=log))
    compiler.chmod(0o755)
    sources.mkdir()
    (sources / "nothing.cpp").write_text("int nothing;\n")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", BUILDING, str(compiler), str(sources)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    folders = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    (folder,) = map(Path, folders)
    assert folder.is_relative_to(tmp_path / "cache")
    assert (folder / "libacl_op_compiler.so").resolve() == folder / "libascendcl.so"
    assert len(log.read_text()) == 1 + len(runtime.EMPTY)
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, "lock"}


def test_nothing_is_built_in_the_tree() -> None:
    assert not runtime.cache().is_relative_to(ROOT)
