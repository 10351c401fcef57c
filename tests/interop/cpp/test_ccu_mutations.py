"""Random edits of projects for the CCU, of code and folders: each gives a verdict or a sentence."""

import random
import re
from pathlib import Path

import pytest

from hccl_interop.cpp import CustomOp, find_project
from hccl_interop.cpp.export.starting import starting_project
from hccl_py.errors import HcclError
from hccl_py.scaffold import write_project
from tests.interop.cpp.kit import builder, check
from tests.interop.cpp.test_ccu import SMALL, record

FILES = ("op_kernel_ccu/ccu_kernel.cc", "op_host/{op}.cc", "include/custom.h")
OPS = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "broadcast")


def edited(text: str, draw: random.Random) -> str:
    """Return a text with a token deleted, two numbers or two lines exchanged, or a line doubled."""
    kind = draw.randrange(4)
    if kind == 0:
        found = draw.choice(list(re.finditer(r"\w+|[^\w\s]", text)))
        return text[: found.start()] + text[found.end() :]
    if kind == 1:
        found = draw.choice(list(re.finditer(r"\b\d+\b", text)))
        number = draw.choice((0, 1, 3, 15, 16, 255, 1 << 31))
        return f"{text[: found.start()]}{number}{text[found.end() :]}"
    lines = text.splitlines(keepends=True)
    one, other = draw.sample([k for k, line in enumerate(lines) if line.strip()], 2)
    if kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines.insert(other, lines[one])
    return "".join(lines)


def changed_folder(files: dict[str, str], draw: random.Random) -> None:
    """Delete a file, empty it, cut it off, put noise into it, or give it another name."""
    path = draw.choice(sorted(files))
    kind, text = draw.randrange(5), files.pop(path)
    if kind == 1:
        files[path] = ""
    elif kind == 2:
        files[path] = text[: draw.randrange(len(text))]
    elif kind == 3:
        at = draw.randrange(len(text))
        files[path] = f"{text[:at]}\0\ufffd\N{RIGHT-TO-LEFT OVERRIDE}{text[at:]}"
    elif kind == 4:
        files[f"{path}.txt" if draw.random() < 0.5 else f"src/{path}"] = text


def judged(folder: Path, seed: int) -> str:
    draw = random.Random(seed)
    op = draw.choice(OPS)
    files = starting_project("mine", op, "ccu")
    if seed % 5 == 4:
        changed_folder(files, draw)
    else:
        for _ in range(draw.choice((1, 1, 2))):
            path = draw.choice(FILES).format(op=op)
            files[path] = edited(files[path], draw)
    write_project(files, folder / "mine")
    try:
        shop = CustomOp(find_project(str(folder / "mine")), builder())
        report = check(record(shop, SMALL, 4096))
    except HcclError as error:
        return str(error)
    sentences = [found.message for found in report.every()] + list(report.notes)
    return "ok" if report.ok else " ".join(sentences)


def see(seed: int, folder: Path) -> None:
    said = judged(folder, seed)
    assert said.strip()
    assert "Traceback" not in said
    assert "internal error" not in said


@pytest.mark.parametrize("seed", range(2))
def test_an_edit_gives_a_verdict_or_a_sentence(seed: int, tmp_path: Path) -> None:
    see(seed, tmp_path)


@pytest.mark.long
@pytest.mark.seeds(400)
def test_edits_give_a_verdict_or_a_sentence(seed: int, tmp_path: Path) -> None:
    see(seed, tmp_path)
