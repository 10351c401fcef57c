"""scripts/mutate.py changes one place of a module, and finds the tests that mirror it."""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]

MODULE = '''"""A module that says 3 > 2."""


@dataclass(frozen=True)
class Pair:
    one: int


@cache(maxsize=5)
def least(values: list[int], most: int = 7) -> int:
    """Return the least of some values."""
    if not values or most < 0:
        raise ValueError(f"{len(values)} values, and 1 is needed")
    log.warning("%d of %d", len(values), 5)
    return min(min(values), most, last(values, most))
'''


@pytest.fixture
def mutate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "hccl_py" / "room").mkdir(parents=True)
    (tmp_path / "hccl_py" / "room" / "small.py").write_text(MODULE)
    (tmp_path / "tests" / "room" / "inner").mkdir(parents=True)
    (tmp_path / "tests" / "room" / "inner" / "test_small_values.py").touch()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_a_mutant_changes_one_place_and_no_text(mutate: ModuleType) -> None:
    path = Path("hccl_py/room/small.py")
    mutants = mutate.mutants_of(path)
    original = ast.unparse(ast.parse(MODULE))
    texts = [mutate.text_of(mutant) for mutant in mutants]
    # 7 and 0 by one each way, <, or, not, the condition never, and the arguments of `last` turned
    # round; those of `min` and of the warning mean the same, or nothing that a test judges.
    assert len(set(texts)) == len(texts) == 4 + 5
    for text in texts:
        changed = [
            (a, b) for a, b in zip(original.split("\n"), text.split("\n"), strict=True) if a != b
        ]
        assert len(changed) == 1
        assert not any(word in changed[0][0] for word in ("says", "raise", "Return", "log", "@"))


def test_the_tests_of_a_module_are_those_of_its_name_first(mutate: ModuleType) -> None:
    found = mutate.tests_for(Path("hccl_py/room/small.py"))
    assert found == ["tests/room/inner/test_small_values.py", "tests/room"]
    assert mutate.tests_for(Path("hccl_py/room/deeper/other.py")) == ["tests/room"]


ALONE = ["-p", "no:hccl-py"]
"""The plugin of pytest is no part of the small checkout."""


@pytest.fixture
def checkout(mutate: ModuleType, tmp_path: Path) -> Path:
    """A checkout with one module, and tests that see most of its mutants."""
    for name in ("hccl_py", "hccl_py/room"):
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "hccl_py" / "room" / "small.py").write_text("def least(a, b):\n    return a < b\n")
    return tmp_path


def test_the_tests_that_kill_a_mutant_are_named(mutate: ModuleType, checkout: Path) -> None:
    near, far = "tests/room/inner/test_small_values.py", "tests/room/test_far.py"
    head = "from hccl_py.room.small import least\n\n\ndef test(): assert "
    (checkout / far).write_text(f"{head}least(1, 2)\n")
    (checkout / near).write_text(f"{head}not least(2, 1)\n")
    path = Path("hccl_py/room/small.py")
    text = (checkout / path).read_text()
    (mutant,) = mutate.mutants_of(path)  # <= in the place of <
    runner = mutate.Runner(checkout, ALONE)
    tests = mutate.tests_for(path)
    limits = {test: runner.limit(test) for test in tests}
    assert min(limits.values()) > 30
    assert runner.killer(mutant, tests, limits) == ""  # no test has two equal numbers
    (checkout / far).write_text(f"{head}not least(2, 2)\n")
    assert runner.killer(mutant, tests, limits) == f"{far}::test"
    (checkout / near).write_text((checkout / far).read_text())
    assert runner.killer(mutant, tests, limits) == f"{near}::test"
    assert (checkout / path).read_text() == text


def test_a_mutant_without_end_is_killed(mutate: ModuleType, checkout: Path) -> None:
    near = "tests/room/inner/test_small_values.py"
    (checkout / near).write_text("def test():\n    while True: pass\n")
    runner = mutate.Runner(checkout, ALONE)
    assert runner.failing([near], {near: 2}) == f"{near}, which takes too long"
