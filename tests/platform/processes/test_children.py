"""A process that never ends is found out, and shows where it stays."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hccl_platform.processes.world import World
from tests.platform.processes import children as module
from tests.platform.processes.children import children


def stays(world: World) -> None:
    while world.rank == 1:
        signal.pause()


def test_a_process_that_stays_shows_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASLEEP_S", 1.0)
    with children(2, stays, tmp_path) as started:
        with pytest.raises(AssertionError, match=r"(?s)rank 1 has not ended.* in stays"):
            started.wait()
        assert started.left == {1}


def test_a_process_that_works_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number of looks ends it as long as a process of the test has work."""
    monkeypatch.setattr(module, "ASLEEP_S", 0.5)

    def works(_: World) -> int:
        return sum(number % 7 for number in range(8_000_000))

    with children(1, works, tmp_path) as started:
        assert started.wait()[0].value == sum(number % 7 for number in range(8_000_000))
