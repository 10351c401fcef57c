"""Old names of modules import the modules that have their places, and say the new names."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_py.moved import MOVED, current_name


@pytest.mark.parametrize("old", sorted(MOVED))
def test_every_old_name_has_a_module_today(old: str) -> None:
    assert importlib.util.find_spec(MOVED[old]) is not None


def test_modules_inside_of_a_moved_one_moved_with_it() -> None:
    assert current_name("hccl_py.msccl.export") == "hccl_interop.msccl.export"
    assert current_name("hccl_py.program.program") is None


def test_the_warning_names_the_line_that_imports(tmp_path: Path) -> None:
    author = tmp_path / "author.py"
    author.write_text("import hccl_py\n\nfrom hccl_py.executor import ResourceRequest\n")
    command = [sys.executable, "-W", "always", str(author)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    sentence = "hccl_py.executor is hccl_py.plugins.executor now"
    assert f"{author}:3: DeprecationWarning: {sentence}" in done.stderr
