"""platform/ and executors/ are source roots, never packages; imports point one way."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest

from hccl_executors import EXECUTORS
from hccl_py.operators import OPERATORS, make_operator
from tests.smoke import SMOKE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.xdist_group("layout")  # files are read once, by one worker
ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = {
    "platform": "hccl_platform",
    "executors": "hccl_executors",
    "interop": "hccl_interop",
}
PACKAGES = {
    "hccl_py": ROOT / "hccl_py",
    "hccl_executors": ROOT / "executors" / "hccl_executors",
    "hccl_platform": ROOT / "platform" / "hccl_platform",
    "hccl_interop": ROOT / "interop" / "hccl_interop",
}

# hccl_executors -> hccl_py <- hccl_platform, and hccl_py finds both by entry point.
FORBIDDEN = {
    "hccl_py": {"hccl_executors", "hccl_platform", "hccl_interop"},
    "hccl_executors": {"hccl_platform", "hccl_interop"},
    "hccl_platform": {"hccl_executors", "hccl_interop"},
    "hccl_interop": {"hccl_executors", "hccl_platform"},
}

# Start-up must not pay for these; whoever needs one imports it inside a function.
HEAVY = {"mpi4py", "networkx", "numba", "rich", "textual", "torch"}
NEVER_AT_MODULE_LEVEL = {"mpi4py", "networkx", "numba", "textual", "torch", "torch_npu"}
# Modules that exist for one heavy library and are themselves imported inside a function:
# {"hccl_platform/npu/memory.py": {"torch"}}
DEDICATED: dict[str, set[str]] = {
    f"hccl_py/torch/{name}.py": {"torch"}
    for name in (
        *("calls", "group", "joining", "pairs", "point_to_point", "reductions", "sparse", "store"),
        *("tensor_arrays", "work"),
    )
} | {
    f"hccl_platform/device/{name}.py": {"torch"}
    for name in ("devices", "issuing", "reductions", "session", "tensor_bytes")
}
DEDICATED["hccl_py/program/passing.py"] = {"numba"}
DEDICATED |= {
    f"hccl_py/trace/screen/{name}.py": {"textual"} for name in ("app", "dialogs", "lanes_view")
}

# From the ground up: a module imports from its own layer and from those below, wherever in the
# module the import stands. The longest name that fits says in which layer a module is.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "language", "lines", "moved", "printable"),
    (
        *("clocks.cost", "clocks.measured", "clocks.stragglers"),
        *("documents", "enums", "call.ops", "values"),
    ),
    ("call", "plugins.fidelity", "plugins.resources"),
    ("communicator.device_arrays", "program"),
    ("topology",),
    ("call.config", "formats", "orchestration", "program.builder"),
    (
        *("call.call_spec", "operators", "plugins"),
        *("communicator.arrays", "communicator.overlaps", "communicator.tensors"),
    ),
    ("clocks", "plugins.discovery", "communicator.data"),
    ("simulator",),
    ("fit", "orchestration.author_errors", "orchestration.entry", "orchestration.record"),
    ("communicator.collectives", "scaffold", "selection", "verifier"),
    ("communicator.planning", "numerics", "testing", "trace"),
    ("numerics.certificates", "numerics.cures", "tuning"),
    ("communicator", "jobs"),
    ("importers",),
    ("", "simulate", "torch", "verify"),
    ("__main__", "cli"),
)
# The imports upwards, and late: `Program.save` asks the leaf that knows files, and what notebooks
# show of programs, timelines and topologies begins with pictures.
DOORS = {("hccl_py.program.program", "hccl_py.formats")} | {
    (f"hccl_py.{name}", "hccl_py.trace.notebook")
    for name in ("program.page", "simulator.page", "topology.topology")
}

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


@cache
def parsed(path: Path) -> ast.Module:
    """Return what a file says; several tests ask for the same."""
    return ast.parse(path.read_text("utf-8"))


def statements(
    tree: ast.Module, is_left_out: Callable[[ast.AST], bool] = lambda node: False
) -> Iterator[ast.AST]:
    """Yield the statements of a module, those in others too but for those in what is left out."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if not is_left_out(node):
            yield node
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting.extend(getattr(node, block, ()))


def imported(tree: ast.Module, *, at_import: bool = False) -> Iterator[tuple[str, int]]:
    """Libraries a module names in imports, with lines; at_import leaves out what runs later."""
    is_left_out = runs_later_or_never if at_import else lambda node: False
    for node in statements(tree, is_left_out):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0], node.lineno


def is_for_typing(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    names = {getattr(getattr(node, "test", None), field, "") for field in ("id", "attr")}
    return isinstance(node, ast.If) and "TYPE_CHECKING" in names


def runs_later_or_never(node: ast.AST) -> bool:
    return is_for_typing(node) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def offences(package: str, forbidden: set[str], *, at_import: bool) -> list[str]:
    found = []
    for path in sorted(PACKAGES[package].rglob("*.py")):
        name = f"{package}/{path.relative_to(PACKAGES[package]).as_posix()}"
        allowed = DEDICATED.get(name, set()) if at_import else set()
        for library, line in imported(parsed(path), at_import=at_import):
            if library in forbidden - allowed:
                found.append(f"{name}:{line} imports {library}")
    return found


@pytest.mark.xdist_group("modules")
@pytest.mark.parametrize("package", PACKAGES)
def test_dependencies_point_one_way(package: str) -> None:
    found = offences(package, FORBIDDEN[package], at_import=False)
    assert not found, "\n".join(found)


@cache
def modules_of(package: str) -> dict[str, ast.Module]:
    """Return the modules of a package by full name, parsed."""
    found = {}
    for path in sorted(PACKAGES[package].rglob("*.py")):
        parts = path.relative_to(PACKAGES[package].parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = parsed(path)
    return found


def imports_of(
    tree: ast.Module, known: Iterable[str], *, typing: bool
) -> Iterator[tuple[str, int]]:
    """Yield the modules that a module imports, lazily too, and the lines; with `typing` also those
    that only annotations need.
    """
    for node in statements(tree, (lambda node: False) if typing else is_for_typing):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module, node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)


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


@pytest.mark.xdist_group("modules")
def test_every_module_is_in_a_layer() -> None:
    assert [name for name in modules_of("hccl_py") if layer_of(name) < 0] == []


@pytest.mark.xdist_group("modules")
def test_imports_go_down_the_layers() -> None:
    modules = modules_of("hccl_py")
    found = [
        f"{name}:{line} imports {other} from a layer above"
        for name, tree in modules.items()
        for other, line in imports_of(tree, modules, typing=True)
        if other in modules and layer_of(other) > layer_of(name) and (name, other) not in DOORS
    ]
    assert not found, "\n".join(found)


@pytest.mark.xdist_group("modules")
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
        if PACKAGES["hccl_py"] / "selection" / "tables" not in path.parents
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        for match in word.finditer(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.xdist_group("modules")
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
    tree = ast.parse("""
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
""")
    at_import = {("numpy", 2), ("torch", 2), ("numba", 7)}
    assert set(imported(tree, at_import=True)) == at_import
    assert set(imported(tree)) == at_import | {("mpi4py", 5), ("networkx", 11)}


def test_layout_page_is_made_from_the_modules() -> None:
    done = run_script("layout.py", "--check")
    assert done.returncode == 0, done.stderr
    listed = (ROOT / "docs" / "layout.md").read_text("utf-8")
    for package in PACKAGES.values():
        for init in package.glob("*/__init__.py"):
            folder = init.parent.relative_to(ROOT).as_posix()
            assert f"**`{folder}/`**" in listed, f"{folder}: name its room in scripts/layout.py"


def test_the_house_is_within_its_limits() -> None:
    done = run_script("house.py")
    assert done.returncode == 0, done.stderr


def test_a_house_above_a_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "hccl_py").mkdir()
    shutil.copy(ROOT / "scripts" / "house.py", tmp_path / "scripts")
    limits = '[lines]\n"hccl_py (top level)" = 9\n"hccl_py in all" = 9\n"the product" = 9\n'
    (tmp_path / "scripts" / "house.toml").write_text(f"{limits}[figures]\n")
    module = tmp_path / "hccl_py" / "module.py"
    module.write_text('"""A module."""\n')
    done = run_script("house.py", root=tmp_path)
    assert "modules at the top level of hccl_py: 1, and the limit is 0." in done.stderr
    module.write_text('"""What nobody knows."""\n' + "x = 1\n" * 9)
    done = run_script("house.py", root=tmp_path)
    assert done.returncode == 1
    for figure in ("lines: 10", "vague pronouns: 1", "begin with a relative: 1"):
        assert figure.replace("lines", "the product") in done.stderr


def run_script(name: str, *options: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / name), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def project_files(folder: Path) -> Iterator[Path]:
    """Yield the project's own files: what git lists, or without git what is nobody else's."""
    command = ["git", "-C", str(folder), "ls-files", "-z", "-co", "--exclude-standard"]
    if (folder / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            paths = (folder / name for name in listed.stdout.split("\0") if name)
            yield from (path for path in paths if path.is_file() and not is_installed(path, folder))
            return
    yield from walked(folder)


def is_installed(path: Path, root: Path) -> bool:
    """Whether a file lies in an environment inside the checkout, whatever its name."""
    folders = path.relative_to(root).parents
    return any((root / folder / "pyvenv.cfg").exists() for folder in folders)


def walked(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield path
        elif path.name == ".ci" or not (path.name[0] in "._" or path.name in NOT_OURS):
            yield from () if (path / "pyvenv.cfg").exists() else walked(path)


NOT_OURS = {"build", "dist"}


@pytest.mark.parametrize("has_git", [True, False])
def test_an_environment_inside_the_checkout_is_not_ours(tmp_path: Path, has_git: bool) -> None:
    (tmp_path / "ours.py").touch()
    environment = tmp_path / "some-name"
    (environment / "lib").mkdir(parents=True)
    (environment / "pyvenv.cfg").touch()
    (environment / "lib" / "theirs.py").touch()
    if has_git:
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    found = [path.name for path in project_files(tmp_path)]
    assert "ours.py" in found
    assert "theirs.py" not in found


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


# ---- tests ----


def test_property_tests_use_their_examples() -> None:
    """Examples that end early do so by `assume`, so that tests/conftest.py counts them."""
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            is_test = isinstance(node, ast.FunctionDef) and any(
                "given" in ast.unparse(decorator) for decorator in node.decorator_list
            )
            for inner in ast.walk(node) if is_test else ():
                if isinstance(inner, ast.Return) and inner.value is None:
                    found.append(f"{path.relative_to(ROOT)}:{inner.lineno}")
    assert not found, f"let these property tests draw what suits, or use assume: {found}"


TESTS = ROOT / "tests"
TEST_FOLDERS = {
    "executors": "hccl_executors",
    "platform": "hccl_platform",
    "interop": "hccl_interop",
}


def parts() -> set[str]:
    """Return the packages of `hccl_py`, and the other two packages by their folder's name."""
    own = {init.parent.name for init in PACKAGES["hccl_py"].glob("*/__init__.py")}
    return own | set(TEST_FOLDERS)


def test_every_part_has_its_folder_of_tests() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    assert folders - {"authors_package"} == parts(), "tests/<part>/ holds the tests of a package"


@pytest.mark.xdist_group("modules")
def test_every_module_is_reached_by_the_tests_of_its_part() -> None:
    """A module is imported by a test of its part, or by what that imports of the same part."""
    missed = []
    for package, root in PACKAGES.items():
        for module in sorted(root.rglob("*.py")):
            part = module.relative_to(root).parts[0].removesuffix(".py")
            if package != "hccl_py":
                part = next(folder for folder, name in TEST_FOLDERS.items() if name == package)
            if part not in parts() or module.name.startswith("__"):
                continue
            if isinstance(parsed(module).body[-1], ast.Raise):
                continue  # an old name, which says the new one
            name = ".".join(module.relative_to(root.parent).with_suffix("").parts)
            if name not in reached(part):
                missed.append(name)
    assert not missed, "no test of its part leads to " + ", ".join(missed)


@cache
def reached(part: str) -> frozenset[str]:
    """Return the modules that the tests in tests/<part>/ import, directly or not."""
    found: set[str] = set()
    waiting = [name for path in (TESTS / part).rglob("*.py") for name in names_in(path)]
    while waiting:
        name = waiting.pop()
        if name in found or not name.startswith("hccl_"):
            continue
        found.add(name)
        waiting += [inner for file in files_of(name) for inner in names_in(file)]
    return frozenset(found)


@cache
def files_of(name: str) -> list[Path]:
    """Return the file of a module or package of ours; none where the name is something inside."""
    root = PACKAGES.get(name.split(".")[0])
    if root is None:
        return []
    path = root.parent / name.replace(".", "/")
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return what a file imports, and names of modules in its texts: a lazy import's. A package
    names those of its own without itself.
    """
    text = path.read_text("utf-8")
    found = set(re.findall(r"[\"'](hccl_\w+(?:\.\w+)+)", text))
    for package, root in PACKAGES.items():
        if path == root / "__init__.py":
            inner = set(re.findall(r"\"([a-z_]\w*(?:\.\w+)*)\"", text))
            found |= {f"{package}.{name}" for name in inner}
    for node in statements(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def test_smoke_tests_exist_and_look_at_every_part() -> None:
    gone = [name for name in SMOKE if not (TESTS / name).is_file()]
    assert not gone, f"tests/smoke.py lists {gone}"
    assert {name.split("/")[0] for name in SMOKE if "/" in name} == parts()
