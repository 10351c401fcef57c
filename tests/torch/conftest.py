"""Processes that stay for the tests of this folder; they are started anew after a failure."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install hccl-py[torch]")

ROOT = Path(__file__).parents[2]
LATEST_S = 120


class Ranks:
    """Four processes over the backend `hccl_py`."""

    size = 4

    def __init__(self, folder: Path) -> None:
        self._folder, self._starts = folder, 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a function of a test module with rank, size and arguments in every process; return
        what each returned. A failure shows the first traceback.
        """
        if not self._processes:
            self._start()
        request = (function.__module__, function.__name__, arguments)
        for process in self._processes:
            assert process.stdin is not None
            pickle.dump(request, process.stdin)
            process.stdin.flush()
        answers = [self._answer(process) for process in self._processes]
        failures = [text for ok, text in answers if not ok]
        if failures:
            self.stop()
            pytest.fail("\n".join(failures), pytrace=False)
        return [value for _, value in answers]

    def stop(self) -> None:
        """End the processes."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        self._processes = []

    def _start(self) -> None:
        self._starts += 1
        store = self._folder / f"store{self._starts}"
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.torch.worker", str(rank), str(self.size), str(store)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            for rank in range(self.size)
        ]

    def _answer(self, process: subprocess.Popen[bytes]) -> tuple[bool, Any]:
        assert process.stdout is not None
        try:
            answer: tuple[bool, Any] = pickle.load(process.stdout)
        except EOFError:
            return False, f"the process ended with status {process.wait(timeout=LATEST_S)}"
        return answer


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    made = Ranks(tmp_path_factory.mktemp("torch"))
    yield made
    made.stop()
