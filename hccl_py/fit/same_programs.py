"""Measured calls whose programs are the same: these are simulated once, equal times count once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hccl_py.fit.parameters import TimedCall


def alike_programs(samples: Sequence[TimedCall]) -> tuple[list[TimedCall], list[int]]:
    """Return a call of each different program, and for every call the place of its program there.

    Programs are the same where their task graphs are, on topologies that are equal; digests of
    these are only asked for where programs have as many tasks.
    """
    distinct: list[TimedCall] = []
    known: dict[int, int] = {}
    by_size: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    place = []
    for sample in samples:
        program = sample.program
        if id(program) not in known:
            size = program.ranks, program.task_count, program.op.size
            same = (k for k in by_size[size] if _are_same(distinct[k], sample))
            at = next(same, len(distinct))
            if at == len(distinct):
                by_size[size].append(at)
                distinct.append(sample)
            known[id(program)] = at
        place.append(known[id(program)])
    return distinct, place


def counted_once(samples: Sequence[TimedCall]) -> tuple[list[TimedCall], list[int]]:
    """Return calls no two of which have the same program and time, and the place of every call
    among them.
    """
    _, program = alike_programs(samples)
    known: dict[tuple[int, float], int] = {}
    for number, sample in zip(program, samples, strict=True):
        known.setdefault((number, sample.time_us), len(known))
    place = [known[n, s.time_us] for n, s in zip(program, samples, strict=True)]
    first = dict(zip(reversed(place), reversed(samples), strict=True))
    return [first[k] for k in range(len(known))], place


def _are_same(one: TimedCall, other: TimedCall) -> bool:
    if one.topology is not other.topology and one.topology != other.topology:
        return False
    mine, far = one.program, other.program
    return (mine.engine, mine.protocol) == (far.engine, far.protocol) and mine.digest == far.digest
