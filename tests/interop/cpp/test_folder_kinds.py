"""Folders that are no custom op of the AICPU get a sentence that says what they are."""

from pathlib import Path

import pytest

from hccl_interop.cpp import find_project
from hccl_py.errors import ParameterError

KERNEL = '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void Add() {}\n'
PROGRAM = "int main()\n{\n    HcclCommInitRootInfo(2, &info, 0, &comm);\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("kernels/add.asc", KERNEL, "kernels for the vector cores"),
        ("main.cc", PROGRAM, "It is a program that calls HCCL, and no op"),
        ("src/ops/op_common/op.cc", "", "It is HCCL's own source"),
        ("notes.cc", "int main() {}", "A custom op has op_host"),
    ],
)
def test_the_hint_says_what_a_folder_is(
    tmp_path: Path, path: str, text: str, sentence: str
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    with pytest.raises(ParameterError, match="has no sources in op_host") as error:
        find_project(str(tmp_path))
    assert sentence in (error.value.hint or "")
