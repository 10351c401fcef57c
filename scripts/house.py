#!/usr/bin/env python3
"""Measure the house: lines by room, and what makes code hard to read; fail above the limits.

    scripts/house.py                the figures, each beside its limit
    scripts/house.py --list NAME    the places that a figure counts
    scripts/house.py --update       write the figures as the new limits, where they are lower

Limits are in scripts/house.toml. A figure only falls: a change that adds a room raises the limit of
that room's lines by its own budget, and its commit says so.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "scripts" / "house.toml"
PRODUCT = ("hccl_py", "executors", "platform", "interop")
LONG_FUNCTION, LONG_KERNEL, FEW_COMMENTS = 60, 25, 3

_OPENING = r"^(?:Return |Say |Tell |Yield )?(?:what|whether|who|which|whose|how|where|why)\b"
RELATIVE = re.compile(_OPENING, re.IGNORECASE)
VAGUE = re.compile(r"\b(?:nobody|somebody|whoever|whatever|everybody|anybody)\b", re.IGNORECASE)
PARTICIPLE = re.compile(
    r"^_?(?:[A-Z][a-z]+)?(?:Made|Judged|Touched|Kept|Stated|Watchful|Diagnosed|Noted|Given|Chosen|"
    r"Issued|Found|Wished|Counted)$"
)
KERNEL = re.compile(r"jit|compiled|kernel")

Places = dict[str, list[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files() -> list[Path]:
    """Return the Python files of the product, relative to the root."""
    found = (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in found)


def room_of(path: Path) -> str:
    """Return the room of a file: a package of hccl_py, its top level, or another source root."""
    parts = path.parts
    if parts[0] != "hccl_py":
        return parts[0]
    return f"hccl_py/{parts[1]}" if len(parts) > 2 else "hccl_py (top level)"


def comment_lines(text: str) -> list[int]:
    """Return the numbers of lines that have a comment for people."""
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    for_tools = re.compile(r"#\s*(?:type:|noqa|pragma|!)")
    return [
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and not for_tools.match(token.string)
    ]


def length(node: Function) -> int:
    """Return the lines of a function."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def is_kernel(node: Function) -> bool:
    """Return True for a function that is compiled."""
    return any(KERNEL.search(ast.unparse(one)) for one in node.decorator_list)


def places_of(path: Path, text: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (figure, place) for everything that a figure counts in one file."""
    comments = comment_lines(text) if "#" in text else []
    for number, line in enumerate(text.splitlines(), 1):
        for word in VAGUE.findall(line):
            yield "vague pronouns", f"{path}:{number} {word}: {line.strip()[:80]}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function):
            first = (ast.get_docstring(node) or "").split("\n")[0]
            if RELATIVE.match(first):
                place = f"{path}:{getattr(node, 'lineno', 1)} {first[:90]}"
                yield "docstrings that begin with a relative", place
        if isinstance(node, ast.ClassDef) and PARTICIPLE.match(node.name):
            yield "classes named by a participle", f"{path}:{node.lineno} {node.name}"
        if isinstance(node, Function):
            place = f"{path}:{node.lineno} {node.name} ({length(node)} lines)"
            if length(node) > LONG_FUNCTION:
                yield f"functions over {LONG_FUNCTION} lines", place
            inside = sum(node.lineno <= line <= (node.end_lineno or 0) for line in comments)
            if is_kernel(node) and length(node) > LONG_KERNEL and inside < FEW_COMMENTS:
                yield f"kernels without {FEW_COMMENTS} comments", place


def repeated(names: dict[str, list[Path]]) -> list[str]:
    """Return the names that several places have, with the places."""
    found = ((name, paths) for name, paths in sorted(names.items()) if len(paths) > 1)
    return [f"{name}: {', '.join(map(str, paths))}" for name, paths in found]


def measure() -> tuple[Counter[str], Places]:
    """Return the lines of every room, and the places that every other figure counts."""
    lines: Counter[str] = Counter()
    places: Places = {name: [] for name in tomllib.loads(LIMITS.read_text("utf-8"))["figures"]}
    files: dict[str, list[Path]] = defaultdict(list)
    classes: dict[str, list[Path]] = defaultdict(list)
    for path in python_files():
        text = (ROOT / path).read_text("utf-8")
        lines[room_of(path)] += text.count("\n")
        if path.name != "__init__.py":
            files[path.name].append(path)
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
        for figure, place in places_of(path, text, tree):
            places.setdefault(figure, []).append(place)
        for room, figure in (
            ("hccl_py (top level)", "modules at the top level of hccl_py"),
            ("hccl_py/cli", "files of hccl_py/cli"),
        ):
            if room_of(path) == room:
                places.setdefault(figure, []).append(str(path))
    places["file names used twice or more"] = repeated(files)
    places["class names used twice or more"] = repeated(classes)
    return lines, places


def sums(lines: Counter[str]) -> dict[str, int]:
    """Return the lines of the framework and of the product."""
    framework = sum(count for room, count in lines.items() if room.startswith("hccl_py"))
    return {"hccl_py in all": framework, "the product": sum(lines.values())}


def written(lines: dict[str, int], figures: dict[str, int]) -> str:
    """Return the text of a file of limits."""
    head = "# The limits of scripts/house.py. A commit that raises one says why.\n"
    tables = (("lines", lines), ("figures", figures))
    return head + "".join(
        f"\n[{title}]\n" + "".join(f'"{name}" = {limit}\n' for name, limit in table.items())
        for title, table in tables
    )


def main() -> int:
    """Print the figures; return 1 where one is above its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", metavar="NAME", help="a part of a figure's name")
    parser.add_argument("--update", action="store_true", help="lower the limits to the figures")
    options = parser.parse_args()
    limits = tomllib.loads(LIMITS.read_text("utf-8"))
    lines, places = measure()
    if options.list:
        for figure, found in places.items():
            if options.list in figure:
                print(*found, sep="\n")
        return 0
    counted = {"lines": sums(lines) | dict(sorted(lines.items()))}
    counted["figures"] = {figure: len(found) for figure, found in places.items()}
    if options.update:
        lowered = {
            table: {name: min(n, limits[table].get(name, n)) for name, n in counts.items()}
            for table, counts in counted.items()
        }
        LIMITS.write_text(written(lowered["lines"], lowered["figures"]), "utf-8")
        return 0
    too_many = []
    for table, counts in counted.items():
        for name, count in counts.items():
            limit = limits[table].get(name, 0)
            print(f"{count:7} of {limit:7}  {name}{'' if table == 'figures' else ': lines'}")
            if count > limit:
                too_many.append(f"{name}: {count}, and the limit is {limit}.")
    for sentence in too_many:
        print(sentence, file=sys.stderr)
    if too_many:
        print(
            "`scripts/house.py --list NAME` says where. Make the code smaller or plainer; a change "
            "that adds a room raises its line in scripts/house.toml, and its commit says by how "
            "much and why.",
            file=sys.stderr,
        )
    return bool(too_many)


if __name__ == "__main__":
    sys.exit(main())
