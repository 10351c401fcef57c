"""What a call's time is held to: the nearest set, and the reasons why a call is outside of it."""

import pytest

from hccl_py.clocks.cost import COSTS
from hccl_py.clocks.measured import Accuracy, HeldOut, MeasuredSet, TimedCallFacts, accuracy_of

SMALL = MeasuredSet(
    what="small calls",
    kind="hardware",
    ops=("all_reduce",),
    bytes=(1 << 10, 1 << 20),
    ranks=(8,),
    engines=("host",),
    network="contended",
    points=9,
    held_out=HeldOut(points=9, median=0.1, p90=0.3, worst=0.4),
)
LARGE = SMALL.model_copy(
    update={
        "bytes": (1 << 30, 1 << 30),
        "held_out": HeldOut(points=1, median=0.05, p90=0.05),
    }
)


def found(size: int, *sets: MeasuredSet, **facts: object) -> Accuracy:
    call = {"op": "all_reduce", "bytes": size, "ranks": 8, **facts}
    return accuracy_of(sets, TimedCallFacts(**call))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "reasons"),
    [
        ({}, ()),
        ({"engine": "host", "network": "contended"}, ()),
        ({"op": "broadcast"}, ("broadcast, measured for all_reduce",)),
        ({"ranks": 128}, ("128 ranks, measured at 8",)),
        ({"bytes": 2 << 20}, ("2097152 bytes, measured at 1024 to 1048576",)),
        ({"engine": "ccu"}, ("engine ccu, measured with host",)),
        ({"network": "uncontended"}, ("network uncontended, measured with contended",)),
    ],
)
def test_a_call_is_inside_or_the_reasons_say_why_not(
    facts: dict[str, object], reasons: tuple[str, ...]
) -> None:
    accuracy = found(4096, SMALL, **facts)
    assert accuracy.outside == reasons
    assert accuracy.is_inside == (not reasons)
    assert accuracy.band == 0.3


@pytest.mark.parametrize(("size", "wanted"), [(4096, SMALL), (1 << 22, SMALL), (1 << 29, LARGE)])
def test_the_set_with_the_nearest_sizes_counts(size: int, wanted: MeasuredSet) -> None:
    assert found(size, LARGE, SMALL).measured == wanted


def test_a_set_of_one_size_names_that_size() -> None:
    assert found(4096, LARGE).outside == ("4096 bytes, measured at 1073741824",)


def test_sets_without_held_out_times_come_last_and_some_sets_have_no_times() -> None:
    fitted = SMALL.model_copy(update={"held_out": None})
    assert found(4096, fitted, LARGE).measured == LARGE
    assert found(4096, fitted).band is None
    nothing = found(4096, MeasuredSet(what="no time", kind="none"))
    assert (nothing.measured, nothing.band, nothing.is_inside) == (None, None, False)


def test_every_model_says_what_it_was_held_to() -> None:
    for name, cost in COSTS.items():
        assert cost.measured, name
        assert all(one.source for one in cost.measured if one.kind != "none"), name
    assert {one.kind for one in COSTS["ascend950"].measured} == {"vendor simulation"}
    assert COSTS["atlas-900-a3"].formula().measured == ()
