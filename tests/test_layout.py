"""platform/ and executors/ are source roots, never packages; imports point one way."""

import ast
import importlib
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest

from hccl_executors import EXECUTORS
from hccl_py.operators import OPERATORS, make_operator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = {"platform": "hccl_platform", "executors": "hccl_executors"}
PACKAGES = {
    "hccl_py": ROOT / "hccl_py",
    "hccl_executors": ROOT / "executors" / "hccl_executors",
    "hccl_platform": ROOT / "platform" / "hccl_platform",
}

# hccl_executors -> hccl_py <- hccl_platform, and hccl_py finds both by entry point.
FORBIDDEN = {
    "hccl_py": {"hccl_executors", "hccl_platform"},
    "hccl_executors": {"hccl_platform"},
    "hccl_platform": {"hccl_executors"},
}

# Start-up must not pay for these; whoever needs one imports it inside a function.
HEAVY = {"mpi4py", "networkx", "numba", "rich", "torch"}
NEVER_AT_MODULE_LEVEL = {"mpi4py", "networkx", "numba", "torch", "torch_npu"}
# Modules that exist for one heavy library and are themselves imported inside a function:
# {"hccl_platform/npu/memory.py": {"torch"}}
DEDICATED: dict[str, set[str]] = {}

# From the ground up: a module imports from its own layer and from those below, wherever in the
# module the import stands. The longest name that fits says in which layer a module is.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "lines", "printable"),
    ("algo", "cost", "documents", "enums", "stragglers", "values"),
    ("op_param", "resources"),
    ("program",),
    ("topology",),
    ("config", "formats", "orchestration"),
    ("executor", "operators", "platforms"),
    ("arrays", "data", "discovery", "simulator"),
    ("orchestration.author_errors", "orchestration.record"),
    ("collectives", "scaffold", "selection", "verifier"),
    ("planning", "testing", "trace"),
    ("tuning",),
    ("communicator", "groups", "jobs"),
    ("", "simulate", "verify"),
    ("__main__", "cli"),
)
# The one import upwards, and late: `Program.save` asks the leaf that knows files.
DOORS = {("hccl_py.program.program", "hccl_py.formats")}

NOT_OURS = {".coverage", ".git", "__pycache__", "build", "dist", "venv"}
MACHINE_PATH = re.compile(r"(?<![\w.<])/(?:home|root|tmp|work)\b")
REGISTRY = re.compile(r"pypi\.(?:org|\w+\.edu)|pythonhosted\.|registry\.npm|index[-_]url")


def run_python(code: str, folder: Path) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("folder", "package"), SOURCE_ROOTS.items())
def test_source_root_holds_one_package(folder: str, package: str) -> None:
    names = {path.name for path in (ROOT / folder).iterdir()}
    extra = names - {package, "README.md", "__pycache__"}
    assert not extra, f"{folder}/ is a source root: put {sorted(extra)} inside {folder}/{package}/"


@pytest.mark.parametrize("folder", [".", "platform", "executors", "hccl_py", "tests"])
def test_stdlib_platform_wins_everywhere(folder: str) -> None:
    code = "import platform; print(platform.__file__); print(platform.python_version())"
    file = Path(run_python(code, ROOT / folder).splitlines()[0])
    assert file.parent == Path(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_typed(package: str) -> None:
    assert (PACKAGES[package] / "__init__.py").is_file()
    assert (PACKAGES[package] / "py.typed").is_file()


def test_entry_points_resolve() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    declared = {
        EntryPoint(name, value, group)
        for group, points in groups.items()
        for name, value in points.items()
    }
    installed = set(distribution("hccl-py").entry_points)
    assert installed == declared, "what is installed is old: run pip install -e . once more"
    for point in installed:
        assert point.load() is not None


def imported(source: str, *, at_import: bool = False) -> Iterator[tuple[str, int]]:
    """Libraries a module names in imports, with lines; at_import leaves out what runs later."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0], node.lineno
        elif not (at_import and runs_later_or_never(node)):
            waiting.extend(ast.iter_child_nodes(node))


def runs_later_or_never(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in {getattr(node.test, "id", ""), getattr(node.test, "attr", "")}
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def offences(package: str, forbidden: set[str], *, at_import: bool) -> list[str]:
    found = []
    for path in sorted(PACKAGES[package].rglob("*.py")):
        name = f"{package}/{path.relative_to(PACKAGES[package]).as_posix()}"
        allowed = DEDICATED.get(name, set()) if at_import else set()
        for library, line in imported(path.read_text("utf-8"), at_import=at_import):
            if library in forbidden - allowed:
                found.append(f"{name}:{line} imports {library}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_dependencies_point_one_way(package: str) -> None:
    found = offences(package, FORBIDDEN[package], at_import=False)
    assert not found, "\n".join(found)


def modules_of(package: str) -> dict[str, ast.Module]:
    """Return the modules of a package by full name, parsed."""
    found = {}
    for path in sorted(PACKAGES[package].rglob("*.py")):
        parts = path.relative_to(PACKAGES[package].parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imports_of(tree: ast.AST, known: Iterable[str], *, typing: bool) -> Iterator[tuple[str, int]]:
    """Yield the modules that a module imports, lazily too, and the lines; with `typing` also those
    that only annotations need.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not typing:
            continue
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module, node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        yield from imports_of(node, known, typing=typing)


def layer_of(module: str) -> int:
    """Return the number of a module's layer, from the ground up; -1 for one that is in none."""
    own = module.removeprefix("hccl_py").removeprefix(".")
    fits = {
        name: number
        for number, names in enumerate(LAYERS)
        for name in names
        if own == name or (name and own.startswith(f"{name}."))
    }
    return fits[max(fits, key=len)] if fits else -1


def test_every_module_is_in_a_layer() -> None:
    assert [name for name in modules_of("hccl_py") if layer_of(name) < 0] == []


def test_imports_go_down_the_layers() -> None:
    modules = modules_of("hccl_py")
    found = [
        f"{name}:{line} imports {other} from a layer above"
        for name, tree in modules.items()
        for other, line in imports_of(tree, modules, typing=True)
        if other in modules and layer_of(other) > layer_of(name) and (name, other) not in DOORS
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_goes_round_in_a_circle(package: str) -> None:
    modules = modules_of(package)
    ahead = {
        name: {m for m, _ in imports_of(tree, modules, typing=False) if (name, m) not in DOORS}
        for name, tree in modules.items()
    }
    while free := {name for name, needs in ahead.items() if not needs & ahead.keys() - {name}}:
        ahead = {name: needs for name, needs in ahead.items() if name not in free}
    assert not ahead, f"in a circle, or above one: {', '.join(sorted(ahead))}"


def test_the_framework_names_no_executor() -> None:
    names = {e.__name__ for e in EXECUTORS} - {type(make_operator(op)).__name__ for op in OPERATORS}
    word = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
    found = [
        f"{path.relative_to(ROOT)}:{number} {match[0]}"
        for path in sorted(PACKAGES["hccl_py"].rglob("*.py"))
        if path.parent != PACKAGES["hccl_py"] / "selection" / "tables"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        for match in word.finditer(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_heavy_libraries_are_imported_inside_functions(package: str) -> None:
    found = offences(package, NEVER_AT_MODULE_LEVEL, at_import=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_import_loads_no_heavy_library(package: str) -> None:
    loaded = HEAVY.intersection(
        run_python(f"import {package}, sys; print(*sys.modules)", ROOT).split()
    )
    assert not loaded, f"import {package} loads {sorted(loaded)}"


def test_imported_sees_what_runs_at_import() -> None:
    source = """
import numpy.linalg, torch
from . import sibling
if TYPE_CHECKING:
    import mpi4py
try:
    from numba.core import types
except ImportError:
    pass
def later():
    import networkx
"""
    at_import = {("numpy", 2), ("torch", 2), ("numba", 7)}
    assert set(imported(source, at_import=True)) == at_import
    assert set(imported(source)) == at_import | {("mpi4py", 5), ("networkx", 11)}


def test_layout_page_lists_what_exists() -> None:
    page = (ROOT / "docs" / "layout.md").read_text("utf-8")
    paths = re.findall(r"`((?:hccl_py|executors|platform)/[\w./]*)`", page)
    named = {path.rstrip("/") for path in paths}
    gone = {name for name in named if not (ROOT / name).exists()}
    assert not gone, f"docs/layout.md lists {sorted(gone)}, which do not exist"
    for package in PACKAGES.values():
        parts = {*package.glob("*.py"), *(init.parent for init in package.glob("*/__init__.py"))}
        for part in sorted(parts - {package / "__init__.py", package / "__main__.py"}):
            name = part.relative_to(ROOT).as_posix()
            assert any(f"{other}/".startswith(f"{name}/") for other in named), f"{name}: not listed"


def project_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS:
            continue
        if path.is_file():
            yield path
        elif path.name == ".ci" or not path.name.startswith("."):
            yield from project_files(path)


def test_no_file_names_a_machine() -> None:
    found = []
    for path in project_files(ROOT):
        lines = path.read_text("utf-8", errors="ignore").splitlines()
        for number, line in enumerate(lines, 1):
            if match := MACHINE_PATH.search(line) or REGISTRY.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["home", "root", "tmp", "work"])
def test_machine_path_is_told_from_prose(folder: str) -> None:
    assert MACHINE_PATH.search(f"cd /{folder}/x")
    assert not MACHINE_PATH.search(f"the send/{folder} pair, </{folder}>")


@pytest.mark.parametrize(("old", "new"), [("simulate", "simulator"), ("verify", "verifier")])
def test_old_package_names_say_what_to_write_now(old: str, new: str) -> None:
    with pytest.raises(ImportError, match=f"from hccl_py.{new} import"):
        importlib.import_module(f"hccl_py.{old}")
    assert callable(getattr(importlib.import_module("hccl_py"), old))
