"""Sweeps on every executor, killed, resumed, broken, and with points that fail."""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hccl_py.errors import FileError, ParameterError
from hccl_py.tuning.points import Outcome, Point
from hccl_py.tuning.sweep import Evaluate, Sweep, SweepError, processes, sweep
from tests.tuning.evaluations import doubled, fails_at_odd_sizes, point

ROOT = Path(__file__).parents[2]
POINTS = [point(size) for size in range(10)]


def swept(path: Path, points: Sequence[Point] = POINTS, evaluate: Evaluate = doubled) -> Sweep:
    with ThreadPoolExecutor(2) as executor:
        return sweep(points, path, executor=executor, evaluate=evaluate)


def sizes_in(path: Path) -> list[int]:
    with open(path, newline="") as file:
        return [int(row["asked_bytes"]) for row in csv.DictReader(file)]


def script(folder: Path, evaluate: str, jobs: int = 2) -> subprocess.Popen[str]:
    """Start a sweep of the points in a process of its own, which says when one is done."""
    (folder / "script.py").write_text(
        f"""
import os, sys
from hccl_py.cli.errors import guarded
from hccl_py.tuning.sweep import processes, sweep
from tests.tuning import evaluations

def main():
    points = [evaluations.point(size) for size in range(10)]
    with processes({jobs}) as executor:
        sweep(points, "sweep.csv", executor=executor, evaluate=evaluations.{evaluate},
              outstanding=4, progress=lambda done, of: print(done, of, flush=True))

if __name__ == "__main__":
    sys.exit(guarded(main))
"""
    )
    return subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_sweep_is_in_the_order_of_its_points_and_done_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"sweep{suffix}"
    found = swept(path, [*POINTS[::-1], POINTS[3]])
    assert found.computed == 10
    assert list(found.points) == POINTS[::-1]
    assert list(found.outcomes) == [doubled(one) for one in POINTS[::-1]]
    before = path.read_bytes(), path.stat().st_ino
    again = swept(path, POINTS[::-1])
    assert (again.computed, again.outcomes) == (0, found.outcomes)
    assert (path.read_bytes(), path.stat().st_ino) == before
    assert os.listdir(tmp_path) == [path.name]


def test_points_are_added_and_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    assert swept(path, POINTS[4:8]).computed == 4
    assert swept(path, POINTS[:6]).computed == 4
    assert sizes_in(path) == [*range(6), 6, 7]
    assert swept(path).computed == 2
    assert sizes_in(path) == [*range(10)]


def test_a_sweep_of_nothing_is_an_empty_table(tmp_path: Path) -> None:
    assert swept(tmp_path / "sweep.csv", []).outcomes == ()
    assert sizes_in(tmp_path / "sweep.csv") == []


def test_a_point_that_fails_is_a_row_with_its_error(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    found = swept(path, evaluate=fails_at_odd_sizes)
    errors = [outcome.error for outcome in found.outcomes]
    assert errors[:3] == [None, "ValueError: 1 is odd, sadly", None]
    assert sum(error is None for error in errors) == 5
    again = swept(path)
    assert (again.computed, again.outcomes) == (0, found.outcomes)


def test_processes_time_real_points(tmp_path: Path) -> None:
    points = [point(size) for size in (0, 1 << 10, 1 << 20)] + [point(4, op="no_such_op")]
    with processes(2) as executor:
        found = sweep(points, tmp_path / "sweep.parquet", executor=executor)
    nothing, small, large, wrong = found.outcomes
    assert nothing.simulated_us == 0
    assert small.simulated_us is not None
    assert large.simulated_us is not None
    assert 0 < small.simulated_us < large.simulated_us
    assert wrong.error is not None
    assert "no_such_op" in wrong.error


def test_a_killed_sweep_goes_on_and_leaves_no_workers(tmp_path: Path) -> None:
    with script(tmp_path, "blocks_from_three") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["1 10\n", "2 10\n", "3 10\n"]
        process.kill()
        process.communicate(timeout=30)  # ends when the last worker has closed it
    assert process.returncode == -signal.SIGKILL
    assert len(lines_of(tmp_path / "sweep.csv.journal")) == 1 + 3
    assert not (tmp_path / "sweep.csv").exists()
    found = swept(tmp_path / "sweep.csv")
    assert found.computed == 7
    assert list(found.outcomes) == [doubled(one) for one in POINTS]
    assert not (tmp_path / "sweep.csv.journal").exists()


def test_ctrl_c_keeps_what_is_done_and_says_so(tmp_path: Path) -> None:
    with script(tmp_path, "blocks_from_three") as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers too
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "note: 3 of 10 points are done and kept in sweep.csv.journal: sweep again" in errors
    assert swept(tmp_path / "sweep.csv").computed == 7


def test_a_worker_that_dies_ends_the_sweep_in_a_sentence(tmp_path: Path) -> None:
    with script(tmp_path, "dies_at_five", jobs=1) as process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "error: The executor broke after 5 of 10 points (BrokenProcessPool: " in errors
    assert "hint: What is done is kept in sweep.csv.journal: sweep again to go on." in errors
    assert swept(tmp_path / "sweep.csv").computed == 5


def test_what_cannot_be_sent_to_a_worker_ends_the_sweep(tmp_path: Path) -> None:
    with processes(1) as executor, pytest.raises(SweepError, match="after 0 of 1 points"):
        sweep(POINTS[:1], tmp_path / "s.csv", executor=executor, evaluate=lambda p: doubled(p))


def test_an_executor_that_is_closed_is_said(tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(SweepError, match=r"after 0 of 10 points \(RuntimeError: cannot schedule"):
        sweep(POINTS, tmp_path / "s.csv", executor=executor, evaluate=doubled)


def test_an_executor_never_holds_more_than_outstanding(tmp_path: Path) -> None:
    class Counting(ThreadPoolExecutor):
        given, most, done = 0, 0, 0

        def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
            self.given += 1
            self.most = max(self.most, self.given - self.done)
            return super().submit(*arguments, **options)

        def count(self, done: int, of: int) -> None:
            assert of == 200
            self.done = done

    with Counting(2) as executor:
        points = [point(size) for size in range(200)]
        found = sweep(
            points,
            tmp_path / "sweep.csv",
            executor=executor,
            evaluate=doubled,
            outstanding=7,
            progress=executor.count,
        )
    assert found.computed == executor.given == 200
    assert executor.most <= 8  # the callback comes after the row is kept


def test_results_that_come_in_any_order_are_written_in_order(tmp_path: Path) -> None:
    class Backwards(Executor):
        """Ends nothing before everything is there, then the last one first."""

        def __init__(self) -> None:
            self.waiting: list[tuple[Future[Outcome], Point]] = []

        def submit(self, *arguments: Any, **_: Any) -> Future[Any]:
            future: Future[Outcome] = Future()
            self.waiting.append((future, arguments[-1]))
            if len(self.waiting) == len(POINTS):
                for later, about in reversed(self.waiting):
                    later.set_result(doubled(about))
            return future

    found = sweep(POINTS, tmp_path / "sweep.csv", executor=Backwards(), evaluate=doubled)
    assert sizes_in(tmp_path / "sweep.csv") == [*range(10)]
    assert list(found.outcomes) == [doubled(one) for one in POINTS]


def test_bad_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"outstanding is 0\."):
        sweep([], tmp_path / "s.csv", outstanding=0)
    with pytest.raises(ParameterError, match=r"jobs is 0\."):
        processes(0)
    with pytest.raises(FileError, match="cannot be used"):
        sweep([], tmp_path / "missing" / "s.csv")


CLUSTERS = {
    "sweep_mpi": ("mpiexec", "-n", "2", sys.executable, "-m", "mpi4py.futures"),
    "sweep_dask": (sys.executable,),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", CLUSTERS)
def test_sweeps_on_clusters(tmp_path: Path, name: str) -> None:
    example = ROOT / "examples" / "clusters" / f"{name}.py"
    bin_folder = Path(sys.executable).parent
    command = [*CLUSTERS[name], str(example), "sweep.csv"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"},
    )
    of = len(lines_of(tmp_path / "sweep.csv")) - 1
    assert of > 10
    assert f"{of} of {of} points timed" in done.stdout
    with open(tmp_path / "sweep.csv", newline="") as file:
        assert all(row["simulated_us"] and not row["error"] for row in csv.DictReader(file))


TELLING = """
import logging, sys
from hccl_py.tuning.sweep import processes
from tests.tuning.evaluations import told
logging.getLogger("hccl_py").setLevel(sys.argv[1])
with processes(1) as pool:
    pool.submit(told).result()
"""


@pytest.mark.parametrize(("level", "wanted"), [("INFO", "note: compiling\n"), ("WARNING", "")])
def test_workers_tell_what_their_parent_would(level: str, wanted: str) -> None:
    command = [sys.executable, "-c", TELLING, level]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == wanted
