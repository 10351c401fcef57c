"""The executor of a new project is right as it is, for every op."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_py.call.ops import OPS as FACTS
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.scaffold import executor_project, names_of
from hccl_py.testing import check_executor
from hccl_py.verifier import Cases, verify

OPS = [op for op, facts in FACTS.items() if not facts.runs_as]


def loaded(op: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the executor class of a new project."""
    texts = executor_project(names_of("MyOwn"), op)
    file = folder / "executor.py"
    file.write_text(texts["my_own/executor.py"])
    spec = importlib.util.spec_from_file_location(f"my_own_{op}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"my_own_{op}", module)
    spec.loader.exec_module(module)
    return module.MyOwn


@pytest.mark.sweep
@pytest.mark.parametrize("op", OPS)
def test_it_is_right_as_it_is(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = loaded(op, tmp_path, monkeypatch)
    assert executor.op == op
    report = verify(executor, cases=Cases(ranks=(3,), counts=(9024,), dtypes=(DataType.INT32,)))
    assert report.ok, str(report)
    assert not report.findings


@pytest.mark.parametrize("op", OPS)
def test_lines_fit(op: str) -> None:
    texts = executor_project(names_of("MyOwn"), op)
    assert max(map(len, texts["my_own/executor.py"].splitlines())) <= 100


@pytest.mark.long
@pytest.mark.seeds(5)
def test_it_conforms(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_executor(loaded(OPS[seed % len(OPS)], tmp_path, monkeypatch))


def test_an_op_without_executors_of_its_own_is_refused() -> None:
    with pytest.raises(ParameterError, match="barrier has no executors of its own") as caught:
        executor_project(names_of("MyOwn"), "barrier")
    assert "--op all_reduce" in caught.value.hint
