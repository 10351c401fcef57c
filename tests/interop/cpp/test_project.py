"""Folders that are no project of an op say so in a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hccl_interop.cpp import find_project
from hccl_interop.cpp.lines import _function, _line
from hccl_py.errors import HcclError

HOST, KERNEL = "op_host/a.cc", "op_kernel_aicpu/b.cc"


def made(folder: Path, *files: str, settings: str | None = None) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    if settings is not None:
        (folder / "hccl-py.toml").write_text(settings)
    return folder


def test_the_usual_layout(tmp_path: Path) -> None:
    files = (HOST, "op_host/z.cpp", KERNEL, "inc/op.h", "op_kernel_aicpu/old.asc")
    project = find_project(str(made(tmp_path, *files)))
    assert project.host == (HOST, "op_host/z.cpp")
    assert project.device == (KERNEL,)
    assert project.include == ("inc", "op_host", "op_kernel_aicpu", ".")


def test_settings_name_other_places(tmp_path: Path) -> None:
    text = (
        'op = "all_reduce"\nentry = "Mine"\nkernel = "Run"\nhost = ["h/*.cc"]\n'
        'device = ["d/k.cc"]\ninclude = ["h"]\ndefines = ["A=1"]\n'
    )
    project = find_project(str(made(tmp_path, "h/x.cc", "d/k.cc", settings=text)))
    assert (project.host, project.device, project.include) == (("h/x.cc",), ("d/k.cc",), ("h",))
    assert (project.op, project.entry, project.kernel) == ("all_reduce", "Mine", "Run")
    assert project.defines == ("A=1",)


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    text = f'host = ["{HOST}", "op_host/*.cc"]'
    assert find_project(str(made(tmp_path, HOST, KERNEL, settings=text))).host == (HOST,)


def test_folders_are_no_sources(tmp_path: Path) -> None:
    (tmp_path / "op_host" / "old.cc").mkdir(parents=True)
    assert find_project(str(made(tmp_path, HOST, KERNEL))).host == (HOST,)


@pytest.mark.parametrize(
    ("settings", "said", "hint"),
    [
        ("op = ", "hccl-py.toml: the text is not TOML", "Write keys as in docs/cpp.md."),
        ("kernal = 'x'", "hccl-py.toml: kernal: expected a key", "kernel"),
        ("op = 3", "hccl-py.toml: op: expected a string, found 3.", "Write a string here."),
        ("host = 'a'", "hccl-py.toml: host: expected a list", "Write a list here."),
        ("host = ['x/*.cc']", "hccl-py.toml: host[0]: expected files of the folder", "relative"),
        ("host = []", "hccl-py.toml: host: expected a list of files", "Name the sources."),
        ('kernel = "a\\nb"', "hccl-py.toml: kernel: expected a name, found 'a\\nb'", "printable"),
        ('defines = ["A", ""]', "hccl-py.toml: defines[1]: expected a name", "printable"),
        ("host = ['/x.cc']", "hccl-py.toml: host[0]: expected files of the folder", "relative"),
    ],
)
def test_wrong_settings(settings: str, said: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(HcclError) as caught:
        find_project(str(made(tmp_path, HOST, KERNEL, settings=settings)))
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "gone", "There is no folder"),
        (lambda folder: made(folder), "has no sources in op_host/."),
        (lambda folder: made(folder, HOST), "has no sources in op_kernel_aicpu/."),
    ],
)
def test_no_project(make: Callable[[Path], Path], said: str, tmp_path: Path) -> None:
    with pytest.raises(HcclError, match=said):
        find_project(str(make(tmp_path)))


def test_what_is_no_folder(tmp_path: Path) -> None:
    file, loop = tmp_path / "a\nb.json", tmp_path / "loop"
    file.touch()
    loop.symlink_to(loop)
    said = {
        str(file): r"/a\nb.json' is no folder.",
        str(loop): "/loop' is no folder.",
        "": "There is no folder ''.",
        "x" * 5000: f"There is no folder '{'x' * 200}'.",
    }
    for name, sentence in said.items():
        with pytest.raises(HcclError) as caught:
            find_project(name)
        assert caught.value.message.endswith(sentence)


def test_a_folder_of_projects_names_one(tmp_path: Path) -> None:
    inside = made(tmp_path / "inside", HOST, KERNEL)
    with pytest.raises(HcclError, match="has no sources in op_host/") as caught:
        find_project(str(inside.parent))
    assert caught.value.hint == f"Name the folder inside: {inside}."


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Run(OpArgs const&)", "Run"),
        ("(anonymous namespace)::Fetch(OpArgs const&, unsigned int)", "Fetch"),
        ("int ops::Step<float, (Kind)3>::run<int>(int)", "run"),
        ("HcclAllReduce", "HcclAllReduce"),
        ("ops::Step::run(int) const", "run"),
        ("ops::name[abi:cxx11](int const&) const &", "name"),
        (
            "(anonymous namespace)::Run(int)::{lambda(int)#1}::operator()(int) const",
            "lambda in Run",
        ),
    ],
)
def test_functions_are_named_as_their_authors_name_them(name: str, plain: str) -> None:
    assert _function(name) == plain


def test_a_line_of_a_file_with_blanks_in_its_name(tmp_path: Path) -> None:
    project = find_project(str(made(tmp_path, HOST, KERNEL)))
    found = _line("./op_host/my op.cc:12 (discriminator 3)", project)
    assert found == f"{tmp_path}/op_host/my op.cc:12"
