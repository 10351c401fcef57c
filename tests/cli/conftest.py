"""What tests of several commands share."""

import sys
from pathlib import Path

import pytest

from tests.cli.authors import AUTHOR


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of an author's module in the current folder."""
    name = f"author_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(AUTHOR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name
