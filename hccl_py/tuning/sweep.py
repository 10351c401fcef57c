"""Sweeps: many points, timed on the processes of a machine or a cluster, and written to a file.

    call = CallSpec("all_reduce", cluster=ClusterSpec(ranks=64))
    cost = CostModel.of("atlas-800t-a2")
    points = [Point(call=call.sized(1 << k), cost=cost) for k in range(10, 31)]
    found = sweep(points, "all_reduce.csv")

Any executor of `concurrent.futures` does the work: processes of this machine by default,
`mpi4py.futures.MPIPoolExecutor`, Dask's `client.get_executor()`. Every outcome goes to a journal
next to the file as it comes, so that a sweep which is killed goes on where it was.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from hccl_py.documents.disk import PathLike, format_path
from hccl_py.errors import HcclError, ParameterError
from hccl_py.tuning.points import Outcome, Point, PointRow, evaluate
from hccl_py.tuning.storage import Journal, PointFile, Row, columns_of, row_of

OUTSTANDING = 1000
"""Points that an executor holds at once: enough for some hundred workers, and no burden."""

GRACE_S = 0.5
"""Ctrl-C ends workers too, and may do so before it comes to this process: it is waited for."""

Evaluate = Callable[[Point], Outcome]
Progress = Callable[[int, int], None]


class SweepError(HcclError):
    """The executor of a sweep broke: a worker died, the cluster went away."""


@dataclass(frozen=True)
class Sweep:
    """Points and their outcomes, in the order in which they were asked for, and how many of them
    this call computed.
    """

    path: Path
    points: tuple[Point, ...]
    outcomes: tuple[Outcome, ...]
    computed: int


def sweep(
    points: Iterable[Point],
    path: PathLike,
    *,
    executor: Executor | None = None,
    evaluate: Evaluate = evaluate,
    outstanding: int = OUTSTANDING,
    progress: Progress | None = None,
) -> Sweep:
    """Time the points that the file does not have yet, and write all of them in their order.

    The file ends in .csv or .parquet; rows that it has of other points stay, at its end. Without an
    executor there is a process for each core. `evaluate` is a function that can be pickled; where
    it raises, the row has the `error`. `outstanding` bounds what the executor is given at once:
    at least twice its workers. `progress` is called with how many of the missing points
    are done, and of how many.

    Raises ParameterError and FileError for a file that cannot be used or holds something else,
    SweepError where the executor breaks; what is done by then is kept, and the next call goes on.
    """
    if outstanding < 1:
        raise ParameterError(f"outstanding is {outstanding}.", "Give twice the number of workers.")
    wanted = {point.key: point for point in points}
    store = PointFile.at(path, columns_of(PointRow, Outcome))
    with Journal(store) as journal:
        rows = store.rows() | journal.rows
        missing = [point for key, point in wanted.items() if key not in rows]
        has_news = bool(missing or journal.rows or not store.path.exists())
        outcomes = _outcomes(missing, executor, evaluate, outstanding)
        _keep(outcomes, journal, len(missing), progress)
        rows |= journal.rows
        if has_news:
            store.write([rows[key] for key in dict.fromkeys([*wanted, *rows])])
        journal.remove()
    return _found(store, wanted, rows, len(missing))


MOST_JOBS = 4096
"""Processes at most: more than any machine has cores."""


def processes(jobs: int | None = None) -> ProcessPoolExecutor:
    """Return an executor of worker processes, one for each core unless `jobs` says how many.

    They start anew and import what they need, so that threads of this process do not matter; a
    script that sweeps needs the usual `if __name__ == "__main__":`. They end with this process.
    """
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise ParameterError(f"jobs is {jobs}.", f"Give 1 to {MOST_JOBS}.")
    return ProcessPoolExecutor(
        jobs or len(os.sched_getaffinity(0)),
        mp_context=multiprocessing.get_context("forkserver"),
        initializer=_begin,
        initargs=(logging.getLogger("hccl_py").isEnabledFor(logging.INFO),),
    )


def _begin(logs: bool) -> None:
    """Let a worker log as its parent does, for example that loops are compiled; let it end with
    Ctrl-C and with its parent: a worker of a killed sweep would wait for ever.
    """
    if logs:
        logging.basicConfig(format="note: %(message)s")
        logging.getLogger("hccl_py").setLevel(logging.INFO)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _keep(
    outcomes: Generator[tuple[Point, Outcome], None, None],
    journal: Journal,
    total: int,
    progress: Progress | None,
) -> None:
    """Write the rows of points as they come; when that breaks off, name the file that has them."""
    done, kept = 0, format_path(journal.path)
    try:
        try:
            with closing(outcomes):
                for point, outcome in outcomes:
                    journal.append(row_of(point.key, PointRow.of(point), outcome))
                    done += 1
                    if progress is not None:
                        progress(done, total)
        except _ExecutorError as error:
            time.sleep(GRACE_S)
            raise SweepError(
                f"The executor broke after {done} of {total} points "
                f"({type(error.cause).__name__}: {error.cause}).",
                f"What is done is kept in {kept}: sweep again to go on. "
                "Where workers run out of memory, take fewer of them.",
            ) from error.cause
    except KeyboardInterrupt:
        logging.getLogger(__name__).info(
            "%d of %d points are done and kept in %s: sweep again to go on",
            *(done, total, kept),
        )
        raise


class _ExecutorError(Exception):
    """An error that an executor raised, rather than the evaluation of a point."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause


def _outcomes(
    points: list[Point], executor: Executor | None, evaluate: Evaluate, outstanding: int
) -> Generator[tuple[Point, Outcome], None, None]:
    """Yield points with their outcomes as they come, with at most `outstanding` at the executor."""
    if not points:
        return
    own = processes() if executor is None else None
    pool = own or executor
    assert pool is not None
    waiting: dict[Future[Outcome], Point] = {}
    ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
    todo = iter(points)
    try:
        while True:
            try:
                for point in islice(todo, outstanding - len(waiting)):
                    future = pool.submit(_guarded, evaluate, point)
                    waiting[future] = point
                    future.add_done_callback(ended.put)
                if not waiting:
                    return
                future = ended.get()
                outcome = future.result()
            except Exception as error:
                yield from _rescued(ended, waiting)
                raise _ExecutorError(error) from error
            yield waiting.pop(future), outcome
    finally:
        for future in waiting:
            future.cancel()
        if own is not None:
            own.shutdown(wait=not waiting, cancel_futures=True)


def _rescued(
    ended: SimpleQueue[Future[Outcome]], waiting: dict[Future[Outcome], Point]
) -> Iterator[tuple[Point, Outcome]]:
    """Yield the outcomes that had come before the executor broke."""
    while not ended.empty():
        future = ended.get()
        if not future.cancelled() and future.exception() is None:
            yield waiting.pop(future), future.result()


def _guarded(evaluate: Evaluate, point: Point) -> Outcome:
    """Return the outcome of a point, also where its evaluation raises."""
    try:
        return evaluate(point)
    except Exception as error:
        return Outcome(error=" ".join(f"{type(error).__name__}: {error}".split()))


def _found(
    store: PointFile, wanted: dict[str, Point], rows: dict[str, Row], computed: int
) -> Sweep:
    """Return the outcomes of the points, be they computed or read."""
    names = Outcome.model_fields
    outcomes = [Outcome.model_validate({n: rows[key][n] for n in names}) for key in wanted]
    return Sweep(store.path, tuple(wanted.values()), tuple(outcomes), computed)
