"""Times of one transfer between two devices."""

import pytest

from hccl_py.errors import ParameterError
from hccl_py.fit.fit import fit
from hccl_py.fit.measured_transfers import Transfer, transfer_program
from hccl_py.fit.parameters import Parameter, TimedCall
from hccl_py.simulator import COSTS, LinkCost, simulate

MB = 1 << 20
A3 = COSTS["study"].model_copy(
    update={
        "hccs": LinkCost(
            alpha_us=1.6, far_alpha_us=3.1, gbps=151, write_gbps=125.5, device_gbps=151
        ),
        "sio": LinkCost(alpha_us=1.6, gbps=204),
        "roce": LinkCost(alpha_us=10, gbps=22.6),
    }
)


@pytest.mark.parametrize(
    ("transfer", "wanted"),
    [
        (Transfer("read", "hccs", MB), 1.6 + MB / 151e3),
        (Transfer("write", "hccs", MB), 1.6 + MB / 125.5e3),
        (Transfer("read", "hccs", MB, far=True), 3.1 + MB / 151e3),
        (Transfer("read", "sio", MB), 1.6 + MB / 204e3),
        (Transfer("read", "roce", MB), 10 + MB / 22.6e3),
        (Transfer("write", "roce", MB), 10 + MB / 22.6e3),
    ],
)
def test_a_transfer_takes_alpha_and_its_bytes(transfer: Transfer, wanted: float) -> None:
    program, topology = transfer_program(transfer, "atlas-900-a3")
    assert simulate(program, topology, A3).total_us == pytest.approx(wanted)


def test_rates_of_both_ways_and_both_alphas_come_back() -> None:
    calls = []
    for kind in ("read", "write"):
        for far in (False, True):
            for size in (MB, 8 * MB):
                program, topology = transfer_program(
                    Transfer(kind, "hccs", size, far), "atlas-900-a3"
                )
                time_us = simulate(program, topology, A3).total_us
                calls.append(TimedCall(program, topology, time_us))
    names = ("hccs.alpha_us", "hccs.far_alpha_us", "hccs.read_gbps", "hccs.write_gbps")
    base = COSTS["study"]
    found = fit(calls, base, [Parameter.parse(name) for name in names])
    values = [e.value for e in found.estimates]
    assert values == pytest.approx([1.6, 3.1, 151.0, 125.5], rel=1e-6)


@pytest.mark.parametrize(
    ("transfer", "preset", "said"),
    [
        (Transfer("raed", "hccs", 8), "atlas-900-a3", "kind is 'raed'"),
        (Transfer("read", "hcss", 8), "atlas-900-a3", "link is 'hcss'"),
        (Transfer("read", "hccs", 8), "atlas-900-a4", "'atlas-900-a4' is no product"),
    ],
)
def test_what_is_no_transfer(transfer: Transfer, preset: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        transfer_program(transfer, preset)
