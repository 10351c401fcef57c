"""torch's store as platforms use it: waits that look again and again, under a clock of the test."""

from __future__ import annotations

import pytest
import torch.distributed as dist

from hccl_py.errors import ExecTimeoutError, PeerLostError
from hccl_py.torch import store as module
from hccl_py.torch.store import TorchStore, answering, store_of_attempt


class Clock:
    """A clock whose sleeps pass at once; what is due happens in them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def test_keys_are_apart_by_prefix(clock: Clock) -> None:
    shared = dist.HashStore()
    one, other = TorchStore(shared, "one"), TorchStore(shared, "other")
    one.set("key", b"1")
    other.set("key", b"2")
    assert (one.get("key", 1.0), other.get("key", 1.0)) == (b"1", b"2")
    assert clock.pauses == []


def test_pauses_between_looks_grow(clock: Clock) -> None:
    looks: list[float] = []

    def look() -> None:
        looks.append(clock.now)
        if len(looks) == 9:
            store.set("key", b"1")

    store = TorchStore(dist.HashStore(), "one", look)
    assert store.get("key", 1.0) == b"1"
    assert clock.pauses == [
        pytest.approx(seconds)
        for seconds in (0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.01, 0.01, 0.01)
    ]
    assert len(looks) == 9


def test_a_key_is_waited_for_no_longer_than_allowed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "sleep", lambda _: setattr(clock, "now", clock.now + 0.5))
    looks: list[float] = []
    store = TorchStore(dist.HashStore(), "one", lambda: looks.append(clock.now))
    with pytest.raises(ExecTimeoutError, match=r"No process set 'key' .* within 1 s"):
        store.get("key", 1.0)
    assert looks == [0.0, 0.5, 1.0, 1.5]


class Gate:
    """A gate that knows how many are inside."""

    inside = 0

    def __enter__(self) -> None:
        self.inside += 1

    def __exit__(self, *error: object) -> None:
        self.inside -= 1


def test_a_store_that_does_not_answer_is_a_lost_process() -> None:
    gate = Gate()

    def ask() -> None:
        with answering(gate):
            assert gate.inside == 1
            raise RuntimeError("Connection reset\nand where")

    with pytest.raises(PeerLostError) as caught:
        ask()
    assert caught.value.message == "The job's store does not answer: Connection reset"
    assert gate.inside == 0


def test_every_attempt_of_a_job_has_keys_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = dist.HashStore()
    monkeypatch.delenv(module.RESTARTS, raising=False)
    assert store_of_attempt(shared) is shared
    monkeypatch.setenv(module.RESTARTS, "2")
    store_of_attempt(shared).set("key", "1")
    assert shared.get("hccl_py/attempt/2/key") == b"1"
