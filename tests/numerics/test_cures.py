"""Settings under which two calls have the same bits, with their cost."""

from __future__ import annotations

from dataclasses import replace

from hccl_py.call.config import Config
from hccl_py.numerics.cures import Cure, Machine, cures_of
from hccl_py.numerics.proofs import same_bits
from hccl_py.numerics.sameness import Bits
from hccl_py.plugins.discovery import installed_executors
from hccl_py.topology import topology_of
from tests.recording import op_of


def test_a_fixed_order_is_a_cure_and_is_proved_again() -> None:
    """On Atlas A2 large sums are made in the order of arrival."""
    machine = Machine(topology_of(ranks=4), Config.load({}), installed_executors())
    ops = [replace(op_of("all_reduce", count)) for count in (1 << 20, 1 << 21)]
    plans = [machine.planner().plan(op, None) for op in ops]
    assert same_bits(*plans).bits is Bits.OPEN
    found = cures_of(machine, ops, plans)
    helped = [cure for cure in found if cure.bits is Bits.SAME]
    by_name: dict[str, Cure] = {cure.setting: cure for cure in found}
    assert helped
    assert [cure.ratio for cure in helped] == sorted(cure.ratio for cure in helped)
    strict = by_name["HCCL_DETERMINISTIC=strict"]
    planner = machine.planner(deterministic="strict")
    again = same_bits(*(planner.plan(op, None) for op in ops))
    assert strict.bits is again.bits
    assert strict.times_us == tuple(machine.time_us(planner.plan(op, None)) for op in ops)
