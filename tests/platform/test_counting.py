"""Programs whose notifies count, and buffers that alternate: emulated, and as scripts of several
hosts.
"""

from random import Random

import numpy as np
import pytest

from hccl_platform.emulated.session import EmulatedSession
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.matching import shared_cells
from hccl_py.program.program import Program
from hccl_py.verifier import verify_program
from hccl_py.verifier.numeric import run_numeric
from tests.platform.counting_programs import CHUNK, all_gather, delayed
from tests.platform.running import Array
from tests.platform.test_script import PLACES, run_scripts

SEEDS = 150


def programs() -> list[tuple[int, Program, set[str]]]:
    drawn = [(seed, all_gather(Random(seed))) for seed in range(SEEDS)]
    return [(s, p, {f.name for f in verify_program(p).errors}) for s, p in drawn]


def outputs_of(program: Program) -> list[Array]:
    size = int(program.buffer_sizes[0, program.buffers.index("OUT")])
    return [np.full(size, 77, np.uint8) for _ in range(program.ranks)]


def inputs_of(program: Program, call: int) -> list[Array]:
    rng = np.random.default_rng(call)
    return [rng.integers(1, 255, program.op.count, np.uint8) for _ in range(program.ranks)]


def test_what_the_verifier_finds_clean_is_right_in_every_interleaving() -> None:
    clean = [(seed, program) for seed, program, errors in programs() if not errors]
    assert 50 < len(clean) < SEEDS - 20
    assert sum(len(shared_cells(program)) > 0 for _, program in clean) > 10
    assert 10 < sum(bool(program.alternating) for _, program in clean) < len(clean) - 10
    for seed, program in clean:
        assert run_numeric(program, seeds=1).wrong is None, seed


def test_most_of_what_races_goes_wrong_in_some_interleaving() -> None:
    """So the runs above could have failed."""
    races = [program for _, program, errors in programs() if errors & {"RACE_RW", "RACE_WW"}]
    wrong = [program for program in races if not run_numeric(program, seeds=4).ok]
    assert len(races) > 10
    assert 2 * len(wrong) > len(races)


@pytest.mark.parametrize("schedule", [None, Schedule(3), Schedule(3, Adversary.LATE_WIRE)])
def test_calls_in_a_row(schedule: Schedule | None) -> None:
    for seed in range(20):
        program = all_gather(Random(seed))
        if verify_program(program).errors:
            continue
        session = EmulatedSession(program.ranks, 1 << 20, schedule)
        for call in range(5):
            inputs, outputs = inputs_of(program, call), outputs_of(program)
            session.run("tag", program, inputs, outputs)
            assert all((out == np.concatenate(inputs)).all() for out in outputs)
        session.close()


@pytest.mark.parametrize("schedule", [None, Schedule(1)])
def test_call_k_works_in_half_k_mod_2(schedule: Schedule | None) -> None:
    program = delayed()
    session = EmulatedSession(2, 1 << 20, schedule)
    given = [np.zeros(program.op.count, np.uint8)] * 2
    for call in range(6):
        for tag in ("one", "other"):  # tags count for themselves
            inputs, outputs = inputs_of(program, call), outputs_of(program)
            session.run(tag, program, inputs, outputs)
            assert outputs[0][:CHUNK].tolist() == given[call].tolist()
        given.append(inputs[0])
    session.close()


def test_what_is_left_over_and_what_hangs_is_refused() -> None:
    names = {"UNMATCHED_POST": OrchestrationError, "WAIT_WITHOUT_POST": DeadlockError}
    seen = set()
    for _, program, errors in programs():
        for name in errors & set(names):
            if errors >= set(names):
                continue
            seen.add(name)
            for schedule in (None, Schedule(0)):
                session = EmulatedSession(program.ranks, 1 << 20, schedule)
                with pytest.raises(names[name]):
                    session.run("tag", program, inputs_of(program, 0), outputs_of(program))
    assert seen == set(names)


@pytest.mark.parametrize("places", PLACES)
def test_scripts_of_several_hosts_are_the_program(places: str) -> None:
    for seed, program, errors in programs():
        if not errors and seed % 3 == 0:
            run_scripts(program, PLACES[places](program.ranks))
