"""HCCL's promise about HCCL_DETERMINISTIC, and the pages that say where it holds."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "determinism.py"


@pytest.mark.sweep
def test_the_pages_have_the_table_of_today_and_the_promise_holds() -> None:
    script = runpy.run_path(str(SCRIPT))
    found = script["found_by_executor"]()
    assert len(found) > 30
    for name, words in script["PAGES"].items():
        page = (script["DOCS"] / name).read_text("utf-8")
        table = "\n".join(script["lines"](found, words)) + "\n"
        assert page.partition(script["BEGIN"])[2] == f"\n\n{table}", "run scripts/determinism.py"
    assert not [key for key, by in found.items() if "no" in by["true"] | by["strict"]]
