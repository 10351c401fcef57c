"""scripts/mutate.py changes one place of a module, and finds the tests that mirror it."""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]

MODULE = '''"""A module that says 3 > 2."""


def least(values: list[int], most: int = 7) -> int:
    """Return the least of some values."""
    if not values or most < 0:
        raise ValueError(f"{len(values)} values, and 1 is needed")
    return min(min(values), most)
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
    # 7 and 0 by one each way, <, or, not, the condition never, two arguments the other way round.
    assert len(set(texts)) == len(texts) == 4 + 5
    for text in texts:
        changed = [
            (a, b) for a, b in zip(original.split("\n"), text.split("\n"), strict=True) if a != b
        ]
        assert len(changed) == 1
        assert not any(word in changed[0][0] for word in ("says", "raise", "Return"))


def test_the_tests_of_a_module_are_those_of_its_name_first(mutate: ModuleType) -> None:
    found = mutate.tests_for(Path("hccl_py/room/small.py"))
    assert found == ["tests/room/inner/test_small_values.py", "tests/room"]
    assert mutate.tests_for(Path("hccl_py/room/deeper/other.py")) == ["tests/room"]
