#!/usr/bin/env python3
"""Functions of HCCL's programming API that our headers lack or declare otherwise.

    scripts/headers.py --against HCOMM
    scripts/headers.py --against HCOMM --used-by HCCL/src/ops HCCL/examples

HCOMM is a checkout of hcomm: its `include` and `pkg_inc` are read, without a compiler. With
--used-by only functions count that the sources there call, and the calls are counted. The exit
status is 1 where a function is missing or differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

OURS = Path(__file__).resolve().parents[1] / "interop" / "hccl_interop" / "cpp" / "include"
FOLDERS = ("include", "pkg_inc")
SKIPPED = ("legacy", "ccu", "hccl_ccu_res.h")
"""Older interfaces that new code does not call, and those of kernels that are no AICPU kernels."""

DECLARATION = re.compile(
    r"(?:^|[;{}])\s*((?:[\w*&]+\s+)+[*&]*)(Hccl\w+|Hcomm\w+)\s*\(([^(){};]*)\)"
    r"\s*(?:__attribute__\s*\(\([^()]*\)\)\s*|[A-Z_]+\s*)*(?=[;{])"
)


def plain(text: str) -> str:
    """Return a header without comments, directives and blocks of C linkage."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", " ", text, flags=re.MULTILINE)
    return re.sub(r'extern\s+"C"(\s*\{)?', ";", text)


def parameter(text: str) -> str:
    """Return the type of a parameter, without its name and default."""
    text = re.sub(r"=.*", "", text).strip()
    text = re.sub(r"\s*([*&\[\]])\s*", r" \1 ", text)
    words = [word for word in text.split() if word not in ("struct", "enum")]
    stars = [word for word in words if word in ("*", "[")]
    names = [word for word in words if re.fullmatch(r"\w+", word) and word != "const"]
    return (names[0] if names else "...") + "*" * len(stars)


def declared(folder: Path) -> dict[str, tuple[str, str]]:
    """Return functions by name: the header, and the types of the parameters."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.rglob("*.h")):
        place = path.relative_to(folder)
        if any(part in SKIPPED for part in place.parts):
            continue
        for match in DECLARATION.finditer(plain(path.read_text("utf-8", errors="replace"))):
            if "typedef" in match[1] or "return" in match[1]:
                continue
            types = [
                parameter(one) for one in match[3].split(",") if one.strip() not in ("", "void")
            ]
            found.setdefault(match[2], (str(place), ", ".join(types)))
    return found


def calls(folders: Iterable[Path]) -> Counter[str]:
    """Return how often sources call each function."""
    found: Counter[str] = Counter()
    for folder in folders:
        for path in folder.rglob("*"):
            if path.suffix in (".cc", ".cpp", ".h", ".hpp", ".c") and path.is_file():
                text = plain(path.read_text("utf-8", errors="replace"))
                found.update(re.findall(r"\b(Hccl\w+|Hcomm\w+)\s*\(", text))
    return found


def main() -> int:
    """Compare, and print what is missing or differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", type=Path, required=True, help="a checkout of hcomm")
    parser.add_argument("--used-by", type=Path, nargs="*", help="folders with sources")
    options = parser.parse_args()
    theirs: dict[str, tuple[str, str]] = {}
    for name in FOLDERS:
        theirs |= declared(options.against / name)
    if not theirs:
        print(f"{options.against} has no functions below {' and '.join(FOLDERS)}.")
        return 2
    ours = declared(OURS)
    used = calls(options.used_by or ())
    wanted = sorted(name for name in theirs if options.used_by is None or used[name])
    missing = [name for name in wanted if name not in ours]
    differing = [name for name in wanted if name in ours and ours[name][1] != theirs[name][1]]
    for name in missing:
        times = f", called {used[name]} times" if used[name] else ""
        print(f"missing    {theirs[name][0]}: {name}({theirs[name][1]}){times}")
    for name in differing:
        print(
            f"differs    {theirs[name][0]}: {name}({theirs[name][1]}), ours has ({ours[name][1]})"
        )
    print(f"{len(wanted)} functions, {len(missing)} missing, {len(differing)} that differ")
    return 1 if missing or differing else 0


if __name__ == "__main__":
    sys.exit(main())
