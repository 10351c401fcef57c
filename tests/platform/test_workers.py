"""Threads that share ranges."""

import threading

import pytest

from hccl_platform.emulated.fast import TileWorkers


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_range_is_done_once(threads: int) -> None:
    done: list[tuple[int, int]] = []
    workers = TileWorkers(threads)
    ranges = [(k, k + 1) for k in range(50)]
    for _ in range(3):
        workers.run(lambda *range_: done.append(range_), ranges)
    workers.close()
    assert sorted(done) == sorted(ranges * 3)


def test_helpers_work_at_the_same_time_and_end() -> None:
    workers, before = TileWorkers(2), threading.active_count()
    both = threading.Barrier(2, timeout=60)

    def work(low: int, high: int) -> None:
        both.wait()

    workers.run(work, [(0, 1), (1, 2)])
    assert threading.active_count() == before + 1
    workers.close()
    assert threading.active_count() == before


def test_errors_of_helpers_arrive() -> None:
    workers = TileWorkers(2)
    both = threading.Barrier(2, timeout=60)

    def work(low: int, _: int) -> None:
        both.wait()
        if threading.current_thread() is not threading.main_thread():
            raise ValueError(low)

    with pytest.raises(ValueError, match=r"[01]"):
        workers.run(work, [(0, 1), (1, 2)])
    workers.close()


def test_one_range_needs_no_helper() -> None:
    workers, before = TileWorkers(4), threading.active_count()
    workers.run(lambda *_: None, [(0, 1)])
    assert threading.active_count() == before
