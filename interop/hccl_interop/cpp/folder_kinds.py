"""Folders that are no custom op of the AICPU: what they are, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

_MOST_FILES, _MOST_BYTES = 200, 1 << 16
_SUFFIXES = (".cc", ".cpp", ".cxx", ".h", ".hpp", ".asc")

_KINDS = (
    (
        r'#include\s*[<"]kernel_operator\.h[>"]',
        "It has kernels for the vector cores (AIV), which are not recorded.",
    ),
    (
        r"\bint\s+main\s*\(.*\bHccl\w+\s*\(",
        "It is a program that calls HCCL, and no op: `hccl-py run` makes such calls.",
    ),
)


def kind_of_folder(folder: Path) -> str:
    """Return a sentence that says what a folder without op_host is; "" where that is not clear."""
    if (folder / "src" / "ops" / "op_common").is_dir():
        return (
            "It is HCCL's own source: its ops are no projects of their own. Name a folder of "
            "examples, such as examples/05_custom_ops_allgather/aicpu."
        )
    texts = list(_texts(folder))
    for pattern, sentence in _KINDS:
        if any(re.search(pattern, text, re.DOTALL) for text in texts):
            return sentence
    return ""


def _texts(folder: Path) -> Iterator[str]:
    """Yield the begins of sources, of so many that a large folder does not take long."""
    found = (path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    for path in islice(found, _MOST_FILES):
        with open(path, "rb") as file:
            yield file.read(_MOST_BYTES).decode("utf-8", errors="replace")
