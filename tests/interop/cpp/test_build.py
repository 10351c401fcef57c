"""What is compiled, what comes from the cache, and what a compiler's refusal looks like."""

import os
import subprocess
from pathlib import Path

import pytest

from hccl_interop.cpp import CustomOp, find_project
from hccl_interop.cpp.build import INCLUDE, RECORDER, Builder, CompilerError
from hccl_py.errors import NotSupportedError, ParameterError
from tests.interop.cpp.kit import (
    DEMANDED,
    OPS,
    builder,
    compiler,
    copy_of,
    custom_op,
    folder_of_builds,
    record,
)

HOST, KERNEL = "op_host/op.cc", "op_kernel_aicpu/kernel.cc"


def cache_with_ours(cache: Path) -> Path:
    """A cache with the recorder and the header, which are built already, and nothing else."""
    _ = custom_op("all_reduce_ring").built
    cache.mkdir()
    for ours in folder_of_builds().glob("[cr]*-*"):
        (cache / ours.name).symlink_to(ours)
    return cache


def compiled(folder: Path, cache: Path) -> list[str]:
    """Build a project; return which of its files were compiled."""
    using = builder(cache)
    _ = CustomOp(find_project(str(folder)), using).built
    return sorted(name for name in using.compiled if name in (HOST, KERNEL))


def test_only_what_has_changed_is_compiled(tmp_path: Path) -> None:
    cache = cache_with_ours(tmp_path / "cache")
    folder = copy_of("all_reduce_ring", tmp_path / "one")
    assert compiled(folder, cache) == [HOST, KERNEL]
    assert compiled(folder, cache) == []
    assert compiled(copy_of("all_reduce_ring", tmp_path / "two"), cache) == []
    kernel = folder / KERNEL
    kernel.write_text(kernel.read_text() + "// more\n")
    assert compiled(folder, cache) == [KERNEL]
    header = folder.parent / "common" / "include" / "op_args.h"
    header.write_text(header.read_text() + "// more\n")
    assert compiled(folder, cache) == [HOST, KERNEL]


def test_whatever_a_file_includes_counts(tmp_path: Path) -> None:
    cache = cache_with_ours(tmp_path / "cache")
    folder = copy_of("all_reduce_ring", tmp_path)
    part = folder / "parts" / "more of it.ipp"  # in no folder of headers
    part.parent.mkdir()
    part.write_text("")
    kernel = folder / KERNEL
    kernel.write_text(f'#include "../parts/{part.name}"\n' + kernel.read_text())
    assert compiled(folder, cache) == [HOST, KERNEL]
    part.write_text("static int more;\n")
    assert compiled(folder, cache) == [KERNEL]
    part.write_text("")
    assert compiled(folder, cache) == []


def test_what_is_old_goes(tmp_path: Path) -> None:
    """Of what is ours four stay, those used last, and of projects' files 300 where 600 are more."""
    cache = cache_with_ours(tmp_path / "cache")
    for age in range(1, 8):
        made = cache / f"common-{age}"
        made.mkdir()
        (made / "common.h").touch()
        os.utime(made, (age, age))
    for age in range(700):
        os.utime(_touched(cache / f"{age}.o"), (age, age))
    os.utime(_touched(cache / "new-killed"), (1, 1))
    _touched(cache / "new-building")
    compiled(copy_of("all_reduce_ring", tmp_path), cache)
    headers = {path.name for path in cache.glob("common-*")}
    assert len(headers) == 4
    assert not headers & {"common-1", "common-2", "common-3", "common-4"}  # one, at least, is used
    objects = [path for path in cache.iterdir() if path.suffix in (".o", ".so", ".d")]
    assert len(objects) == 300
    assert not (cache / "10.o").exists()
    assert {path.name for path in cache.glob("new-*")} == {"new-building"}


def _touched(path: Path) -> Path:
    path.touch()
    return path


def test_a_refusal_shows_what_the_compiler_says(tmp_path: Path) -> None:
    folder = copy_of("all_reduce_ring", tmp_path)
    (folder / KERNEL).write_text('extern "C" unsigned Kernel() { return HcommNoSuchCall(); }\n')
    with pytest.raises(CompilerError, match="1 of 2 files cannot be compiled") as caught:
        _ = CustomOp(find_project(str(folder)), builder()).built
    assert "HcommNoSuchCall" in caught.value.output
    assert f"{KERNEL}:1:" in caught.value.output


def test_a_refusal_quotes_code_of_any_encoding(tmp_path: Path) -> None:
    folder = copy_of("all_reduce_ring", tmp_path)
    (folder / KERNEL).write_bytes('int x = "中";\n'.encode("gbk"))
    with pytest.raises(CompilerError) as caught:
        _ = CustomOp(find_project(str(folder)), builder()).built
    assert r'int x = "\xd6\xd0";' in caught.value.output


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    folder = copy_of("all_reduce_ring", tmp_path)
    (folder / "op_host" / "gone.cc").symlink_to("nowhere")
    with pytest.raises(CompilerError, match=r"1 of 3 files .*gone\.cc") as caught:
        _ = CustomOp(find_project(str(folder)), builder()).built
    assert caught.value.output == "op_host/gone.cc: No such file or directory\n"


def test_what_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    folder = copy_of("all_reduce_ring", tmp_path)
    kernel = folder / KERNEL
    kernel.write_text("extern int nobody; int* somebody = &nobody;\n" + kernel.read_text())
    with pytest.raises(ParameterError, match=r"The op cannot be loaded: .*nobody"):
        record(CustomOp(find_project(str(folder)), builder()), ranks=2)


def test_an_entry_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="has no HcclAllGather for all_gather; it has HcclAll"):
        record("all_reduce_ring", op="all_gather", ranks=2)
    folder = copy_of("all_reduce_ring", tmp_path, entry="Mine")
    with pytest.raises(ParameterError, match="has no Mine for all_reduce"):
        record(CustomOp(find_project(str(folder)), builder()), op="all_reduce", ranks=2)
    with pytest.raises(NotSupportedError, match="barrier cannot be recorded from C\\+\\+"):
        record("all_reduce_ring", op="barrier", ranks=2)


def test_the_compiler_is_that_of_the_environment(tmp_path: Path) -> None:
    found = Builder.from_environment({"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert found.compiler == ("g++",)
    assert found.cache == tmp_path / "hccl-py" / "cpp"
    with pytest.raises(NotSupportedError, match="no-such-compiler is not on the path"):
        Builder.from_environment({"CXX": "no-such-compiler"})
    with pytest.raises(ParameterError, match="CXX is no command: No closing quotation"):
        Builder.from_environment({"CXX": "g++ '"})


def test_compilers_and_caches_that_are_none(tmp_path: Path) -> None:
    project = find_project(str(copy_of("all_reduce_ring", tmp_path)))
    script = tmp_path / "script"
    script.write_text("no program")
    script.chmod(0o755)
    with pytest.raises(NotSupportedError, match="script cannot be run: Exec format error"):
        Builder((str(script),), tmp_path / "cache").build(project)
    with pytest.raises(CompilerError, match="true cannot compile the recorder"):
        Builder(("true",), tmp_path / "cache").build(project)
    with pytest.raises(ParameterError, match=r"Nothing can be kept in .*: Not a directory"):
        Builder(("true",), script / "cache").build(project)


@pytest.mark.long
@pytest.mark.parametrize("part", ["recorder", "probe/op_host/op.cc"])
def test_nothing_warns(part: str) -> None:
    files = {"recorder": RECORDER / "recorder.cpp"}
    ours = ["-I", str(INCLUDE), "-I", str(OPS / "common" / "include")]
    command = [compiler(), "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *ours]
    subprocess.run([*command, str(files.get(part, OPS / part))], check=True)


@pytest.mark.parametrize("header", ["hccl/hccl_rank_graph.h", "hcomm_primitives.h"])
def test_headers_of_kernels_stand_alone(header: str, tmp_path: Path) -> None:
    (tmp_path / "x.cc").write_text(f"#include <{header}>\n")
    command = [compiler(), "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-I", str(INCLUDE), str(tmp_path / "x.cc")], check=True)


def test_without_a_compiler_tests_are_skipped_unless_they_are_demanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.delenv(DEMANDED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no g\\+\\+"):
        compiler()
    monkeypatch.setenv(DEMANDED, "1")
    with pytest.raises(pytest.fail.Exception, match="no g\\+\\+"):
        compiler()
