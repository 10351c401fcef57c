"""Programs whose notifies count, and buffers that alternate, on streams of devices."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

pytest.importorskip("torch", reason="the device platform needs torch: pip install hccl-py[torch]")

from hccl_platform.device.session import DeviceSession
from hccl_py.call.config import Config
from hccl_py.errors import OrchestrationError
from hccl_py.plugins.platforms import Group
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.verifier import verify_program
from tests.platform.counting_programs import CHUNK, all_gather, delayed
from tests.platform.device.calls import fake_platform


def session_of(program: Program, seed: int) -> DeviceSession:
    """Open a session on devices whose streams run in an order that `seed` draws."""
    topology = topology_of(program.ranks, preset="mesh")
    group = Group.world(program.ranks)
    session = fake_platform(seed=seed).open(topology, Config(buffsize_mb=1), None, group)
    assert session is not None
    return session


def test_every_wait_takes_the_event_of_its_post() -> None:
    clean = 0
    for seed in range(60):
        program = all_gather(Random(seed))
        if verify_program(program).errors:
            continue
        clean += 1
        session = session_of(program, seed)
        taken = []
        for call in range(5):
            rng = np.random.default_rng(call)
            count = program.op.count
            given = [rng.integers(1, 255, count, np.uint8) for _ in range(program.ranks)]
            into = [np.zeros(program.ranks * count, np.uint8) for _ in given]
            session.run("tag", program, given, into)
            taken.append((into, np.concatenate(given)))
        session.close()  # what was enqueued is over then
        assert all((out == right).all() for into, right in taken for out in into)
    assert clean > 20


def test_call_k_works_in_half_k_mod_2() -> None:
    program = delayed()
    session = session_of(program, 0)
    given = [[np.full(CHUNK, call + 1, np.uint8) for _ in range(2)] for call in range(6)]
    taken = [[np.zeros(2 * CHUNK, np.uint8) for _ in range(2)] for _ in range(6)]
    for inputs, outputs in zip(given, taken, strict=True):
        session.run("tag", program, inputs, outputs)
    session.close()
    assert [outputs[1][0] for outputs in taken] == [0, 0, 1, 2, 3, 4]


def test_what_is_left_over_is_refused() -> None:
    drawn = (all_gather(Random(seed)) for seed in range(200))
    program = next(p for p in drawn if len(p.linked.leftover) and not len(p.linked.stuck))
    arrays = [np.zeros(program.op.count, np.uint8)] * program.ranks
    outputs = [np.zeros(program.op.count * program.ranks, np.uint8)] * program.ranks
    with pytest.raises(OrchestrationError, match="Unmatched post"):
        session_of(program, 0).run("tag", program, arrays, outputs)
