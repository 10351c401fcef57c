#!/usr/bin/env python3
"""Make subtle mutants of modules and run the tests that mirror them: survivors show missing tests.

    scripts/mutate.py hccl_py/formats/json_read.py --count 20 --seed 7
    scripts/mutate.py hccl_py/formats --count 40 --tests tests/formats

A mutant changes one place: a comparison, a number by one, `and` for `or`, a
condition, an argument, a statement that is left out. It is made in a copy of the checkout,
so the working tree stays as it is. Docstrings, annotations, decorators, messages of errors, logging
and `TYPE_CHECKING` blocks are left alone, and so is the order of arguments where it means nothing.

Tests are those of the module's name in the folder that mirrors it, then the others of that folder;
a mutant that takes far longer than the module itself is killed too. The report lists every mutant
with file, line and change, and the tests that kill it; the status is 1 where the share of killed
mutants is below `--least`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("executors", "platform", "interop")
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}

LEFT_ALONE = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)
LOGGING = {"debug", "info", "warning", "warn", "exception"}
IN_ANY_ORDER = {"min", "max", "gcd", "lcm", "minimum", "maximum"}

SLOWER, AT_LEAST_S = 4, 30
"""Tests may take so many times as long on a mutant as without one, and these seconds anyway."""

Change = Callable[[ast.AST], None]


class Mutant(NamedTuple):
    """One change of a module: the place of the node among all nodes, and the change."""

    path: Path
    place: int
    line: int
    change: Change
    what: str


def kept_alone(tree: ast.Module) -> set[int]:
    """Return ids of nodes that no test could or should judge: texts, types, messages."""
    found: set[int] = set()

    def leave(node: ast.AST | None) -> None:
        found.update(id(inner) for inner in ast.walk(node)) if node is not None else None

    for node in ast.walk(tree):
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if is_for_types or is_unjudged(node) or isinstance(node, LEFT_ALONE):
            leave(node)
        elif isinstance(node, ast.AnnAssign | ast.arg):
            leave(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            leave(getattr(node, "returns", None))
            for decorator in node.decorator_list:
                leave(decorator)
    return found


def is_unjudged(node: ast.AST) -> bool:
    """Return True for a statement that is a text, or a message of logging or a warning."""
    if not isinstance(node, ast.Expr):
        return False
    return isinstance(node.value, ast.Constant) or called_name(node.value) in LOGGING


def called_name(node: ast.AST) -> str:
    """Return the last name of a call's function, or nothing."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def set_field(name: str, value: object) -> Change:
    """Return a change that sets a field of a node."""
    return lambda node: setattr(node, name, value)


def changes_of(node: ast.AST) -> Iterator[tuple[Change, str]]:
    """Yield the changes of a node, each with a word for it."""
    if isinstance(node, ast.Compare):
        other = COMPARISONS.get(type(node.ops[0]))
        if other is not None:
            yield set_field("ops", [other(), *node.ops[1:]]), f"compare by {other.__name__}"
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield set_field("op", other_op), "and for or"
        for k in range(len(node.values)):
            rest = [value for j, value in enumerate(node.values) if j != k]
            if len(rest) > 1:
                yield set_field("values", rest), f"without condition {k + 1}"
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        found = OPERATORS.get(type(node.op))
        if found is not None:
            yield set_field("op", found()), f"compute by {found.__name__}"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield set_field("value", not node.value), f"{not node.value}"
        elif isinstance(node.value, int):
            for step in (1, -1):
                yield set_field("value", node.value + step), f"{node.value + step}"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield set_field("op", ast.UAdd()), "without not"
    elif isinstance(node, ast.IfExp):
        yield set_field("test", ast.Constant(True)), "the first alternative always"
    elif isinstance(node, ast.If):
        yield set_field("test", ast.Constant(False)), "never"
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        first, second, *others = node.args
        is_order = ast.dump(first) != ast.dump(second) and called_name(node) not in IN_ANY_ORDER
        if is_order and not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
            yield set_field("args", [second, first, *others]), "two arguments change places"
    if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.With | ast.If):
        for k, statement in enumerate(node.body):
            if isinstance(statement, ast.Expr | ast.AugAssign) and len(node.body) > 1:
                rest_of_body = [other for j, other in enumerate(node.body) if j != k]
                if not is_unjudged(statement):
                    yield set_field("body", rest_of_body), f"without {ast.unparse(statement):.60}"


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a module."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    alone, found = kept_alone(tree), []
    for index, node in enumerate(ast.walk(tree)):
        if id(node) not in alone:
            line = getattr(node, "lineno", 0)
            found += [Mutant(path, index, line, *change) for change in changes_of(node)]
    return found


def text_of(mutant: Mutant) -> str:
    """Return the text of a mutant's module."""
    tree = copy.deepcopy(ast.parse((ROOT / mutant.path).read_text("utf-8")))
    for index, node in enumerate(ast.walk(tree)):
        if index == mutant.place:
            mutant.change(node)
            break
    return ast.unparse(ast.fix_missing_locations(tree))


def tests_for(path: Path) -> list[str]:
    """Return the tests that mirror a module: by its name first, then those of the folder."""
    parts = path.parts
    inner = parts[2:-1] if parts[0] in SOURCE_ROOTS else parts[1:-1]
    first = {"platform": ("platform",), "interop": ("interop",), "executors": ("executors",)}
    folder = Path("tests", *first.get(parts[0], ()), *inner)
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    named = sorted((ROOT / folder).glob(f"**/test_{path.stem}*.py"))
    names = [test.relative_to(ROOT).as_posix() for test in named]
    return [*names, folder.as_posix()]


class Runner(NamedTuple):
    """The copy of the checkout in which tests run, and pytest's options."""

    checkout: Path
    options: list[str]

    def failing(self, tests: list[str], limits: Mapping[str, float] | None = None) -> str:
        """Return the first test of some files or folders that fails, or the first of these that
        takes longer than its seconds in `limits`, or nothing.
        """
        roots = [self.checkout, *(self.checkout / name for name in SOURCE_ROOTS)]
        paths = [*map(str, roots), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *self.options]
        for k, test in enumerate(tests):
            done_already = [f"--ignore={other}" for other in tests[:k]]
            try:
                done = subprocess.run(
                    [*command, *done_already, test],
                    cwd=self.checkout,
                    env=environment,
                    timeout=limits[test] if limits else None,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"{test}, which takes too long"
            if done.returncode not in (0, 5):  # 5: no test was selected
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
                return failed[1] if failed else test
        return ""

    def limit(self, tests: str) -> float:
        """Return the seconds that tests may take on a mutant; without one they have to pass."""
        begin = time.monotonic()
        if test := self.failing([tests]):
            sys.exit(f"{test} fails without a mutant.")
        return AT_LEAST_S + SLOWER * (time.monotonic() - begin)

    def killer(self, mutant: Mutant, tests: list[str], limits: Mapping[str, float]) -> str:
        """Return the tests that fail on a mutant, or nothing."""
        target = self.checkout / mutant.path
        original = target.read_text("utf-8")
        target.write_text(text_of(mutant), "utf-8")
        try:
            return self.failing(tests, limits)
        finally:
            target.write_text(original, "utf-8")


def main() -> int:
    """Run the mutants and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, help="modules, or folders of modules")
    parser.add_argument("--count", type=int, default=20, help="mutants in all")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--tests", nargs="*", help="run these tests, not those that mirror")
    parser.add_argument("--mark", help="pytest's -m, such as 'processes and not long'")
    parser.add_argument("--least", type=float, default=0.0, help="percent that must be killed")
    options = parser.parse_args()
    modules = [
        module.resolve().relative_to(ROOT)
        for path in options.paths
        for module in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    every = [mutant for module in modules for mutant in mutants_of(module)]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    print(f"seed {options.seed}: {len(chosen)} of {len(every)} mutants")
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".venv", ".git"))
        for module in {mutant.path for mutant in chosen}:  # a mutant's text has no comments either
            text = ast.unparse(ast.parse((ROOT / module).read_text("utf-8")))
            (checkout / module).write_text(text, "utf-8")
        runner = Runner(checkout, ["-m", options.mark] if options.mark else [])
        limits: dict[str, float] = {}
        for mutant in chosen:
            tests = options.tests or tests_for(mutant.path)
            limits |= {test: runner.limit(test) for test in tests if test not in limits}
            killer = runner.killer(mutant, tests, limits)
            verdict = f"killed by {killer}" if killer else "alive"
            print(f"{mutant.path}:{mutant.line}  {mutant.what}: {verdict}", flush=True)
            killed += bool(killer)
    share = 100 * killed / max(len(chosen), 1)
    print(f"killed {killed} of {len(chosen)} ({share:.0f} %)")
    return int(share < options.least)


if __name__ == "__main__":
    sys.exit(main())
