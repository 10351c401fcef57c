"""Fitting: the parameters of simulated times come back, from logs written as hccl_test does."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import CallRequest
from hccl_py.errors import FileError, ParameterError
from hccl_py.fit.critical_paths import CriticalPaths
from hccl_py.fit.fit import Fit, fit
from hccl_py.fit.logs.hccl_test import Command
from hccl_py.fit.logs.measured import read_log
from hccl_py.fit.parameters import TimedCall, used_parameters
from hccl_py.simulator import CostModel, LinkCost
from hccl_py.simulator.batches import simulate_batches

SIZES = [8192 << k for k in range(0, 15, 3)]


class Case(NamedTuple):
    """A call, and what its times tell."""

    call: CallOptions
    tells: frozenset[str]


HCCS, ROCE, SIO = (
    frozenset({f"{link}.alpha_us", f"{link}.gbps"}) for link in ("hccs", "roce", "sio")
)
CASES = {
    "mesh": Case(CallOptions("all_gather", ranks=8), HCCS),
    "chosen by size": Case(CallOptions("all_reduce", ranks=8), HCCS),  # both move 2 and reduce 1
    "ring": Case(
        CallOptions("all_reduce", ranks=4, topology="ring", executor="AllReduceComm"), HCCS
    ),
    "between servers": Case(CallOptions("reduce_scatter", servers=4, devices=1), ROCE),
    "rooted": Case(CallOptions("broadcast", servers=3, devices=1), ROCE),
    "both": Case(  # a step on each, and a barrier between servers
        CallOptions("all_gather", servers=2, devices=4), (HCCS | ROCE) - {"hccs.alpha_us"}
    ),
    "superpod": Case(CallOptions("all_to_all", ranks=4, topology="atlas-900-a3"), HCCS | SIO),
}


@cache
def samples(name: str) -> tuple[TimedCall, ...]:
    """Return a case's programs, without times."""
    return calls(CASES[name].call, SIZES)


def calls(options: CallOptions, sizes: Sequence[int]) -> tuple[TimedCall, ...]:
    request = CallRequest(options)
    plans = [request.plan(request.op(size)) for size in sizes]
    return tuple(TimedCall(plan.program, request.topology, 0.0) for plan in plans)


def measured(
    some: Sequence[TimedCall], cost: CostModel, noise: Sequence[float] = ()
) -> list[TimedCall]:
    """Return the samples with the times of a cost model."""
    times = [simulate_batches(s.program, s.topology, cost).total_us for s in some]
    factors = noise or [1.0] * len(times)
    return [
        TimedCall(s.program, s.topology, time * factor)
        for s, time, factor in zip(some, times, factors, strict=True)
    ]


BASE = CostModel.of("study")


def truth(base: CostModel, alpha: float, gbps: float, ratio: float) -> CostModel:
    """Return a model whose RoCE takes `ratio` times as long as its HCCS."""
    hccs = LinkCost(alpha_us=alpha, gbps=gbps)
    roce = LinkCost(alpha_us=alpha * ratio, gbps=gbps / ratio)
    return base.model_copy(update={"hccs": hccs, "roce": roce})


def found(fitted: Fit) -> dict[str, float | None]:
    return {e.parameter.name: e.value for e in fitted.estimates}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=2)
@given(alpha=st.floats(11, 80), gbps=st.floats(3, 150), ratio=st.sampled_from([1.5, 4.0]))
def test_parameters_come_back(name: str, alpha: float, gbps: float, ratio: float) -> None:
    base = BASE
    cost = truth(base, alpha, gbps, ratio)
    times = measured(samples(name), cost)
    fitted = fit(times, base)
    assert fitted.model_us == pytest.approx([s.time_us for s in times], rel=1e-6)
    assert {e.parameter.name for e in fitted.estimates} <= CASES[name].tells
    in_step = [k for k in fitted.held if k.parameter.of(cost) != k.value]
    for estimate in fitted.estimates:
        if not in_step or estimate.parameter.is_rate:
            assert estimate.value == pytest.approx(estimate.parameter.of(cost), rel=1e-6)
    for kept in fitted.held:
        assert kept.value == kept.parameter.of(fitted.cost)
        if kept.value != kept.parameter.of(base):
            assert kept.why.endswith("and its value in study does not explain these times")
            assert kept.value == pytest.approx(kept.parameter.of(cost), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name != "superpod"])
def test_what_times_tell(name: str) -> None:
    cost = truth(BASE, 5.0, 20.0, 1.5)
    times = measured(samples(name), cost)
    assert set(found(fit(times, BASE))) == CASES[name].tells


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("alpha", "gbps", "ratio"), [(20.0, 20.0, 4.0), (55.0, 43.0, 1.5), (48.5, 140.0, 4.0)]
)
def test_the_alphas_of_two_links_in_a_row_come_back_as_a_sum(
    alpha: float, gbps: float, ratio: float
) -> None:
    """NHR takes one step on either link, of other shares of the bytes where it comes before the
    mesh. A ring and the pipeline take a second one between servers, their barrier.
    """
    both = CASES["both"].call
    inside_first = calls(replace(both, algo="level1:NHR"), SIZES[:2])
    between_first = calls(replace(both, executor="AllGatherMixExecutor"), SIZES[2:])
    some = inside_first + between_first
    assert {s.program.executor for s in inside_first} == {"AllGatherMeshExecutor"}
    cost = truth(BASE, alpha, gbps, ratio)
    fitted = fit(measured(some, cost), BASE)
    (kept,) = (k for k in fitted.held if k.parameter.field == "alpha_us")
    assert kept.value == 10.0
    alphas = [fitted.cost.hccs.alpha_us, fitted.cost.roce.alpha_us]
    assert sum(alphas) == pytest.approx(alpha * (1 + ratio), rel=1e-6)
    assert fitted.cost.hccs.gbps == pytest.approx(gbps, rel=1e-6)


@pytest.mark.parametrize("name", ["mesh", "between servers", "rooted"])
@pytest.mark.parametrize("seed", range(3))
def test_with_noise_they_are_within_their_errors(name: str, seed: int) -> None:
    some, rng = samples(name) * 3, np.random.default_rng(seed)
    cost = truth(BASE, 5.0, 20.0, 1.5)
    noise = np.exp(0.03 * rng.standard_normal(len(some))).tolist()
    fitted = fit(measured(some, cost, noise), BASE)
    assert len(fitted.estimates) == 2
    for estimate in fitted.estimates:
        value = estimate.parameter.of(cost)
        assert estimate.value is not None
        assert estimate.error is not None
        assert value is not None
        assert 0 < estimate.error < 0.2 * value
        assert abs(estimate.value - value) < 4 * estimate.error


@pytest.mark.sweep
def test_errors_say_how_far_estimates_scatter() -> None:
    some = samples("between servers")
    cost, rng = truth(BASE, 5.0, 20.0, 1.5), np.random.default_rng(3)
    scatter = []
    for _ in range(15):
        noise = np.exp(0.02 * rng.standard_normal(len(some))).tolist()
        for e in fit(measured(some, cost, noise), BASE).estimates:
            value = e.parameter.of(cost)
            assert e.value is not None
            assert e.error is not None
            assert value is not None
            scatter.append((e.value - value) / e.error)
    assert 0.7 < float(np.std(scatter)) < 1.9


def test_times_far_too_long_count_less() -> None:
    some = samples("mesh") * 2
    cost = truth(BASE, 5.0, 20.0, 1.5)
    noise = [1.0] * len(some)
    noise[3], noise[9] = 6.0, 3.0
    fitted = fit(measured(some, cost, noise), BASE)
    for estimate in fitted.estimates:
        assert estimate.value == pytest.approx(estimate.parameter.of(cost), rel=1e-4)
    assert {int(k) for k in np.flatnonzero(fitted.weights < 0.5)} == {3, 9}


def test_two_ops_tell_more_than_one() -> None:
    gather, scatter = (
        CallRequest(CallOptions(op, servers=4, devices=1))
        for op in ("all_gather", "reduce_scatter")
    )
    both = [
        TimedCall(r.plan(r.op(size)).program, r.topology, 0.0)
        for r in (gather, scatter)
        for size in SIZES
    ]
    base = BASE
    cost = truth(base, 9.0, 30.0, 2.0).model_copy(update={"reduce_gbps": 90.0})
    alone = fit(measured(both[len(SIZES) :], cost), base)
    assert [k.parameter.name for k in alone.held] == ["reduce_gbps"]
    assert alone.held[0].why == "it grows in step with roce.gbps"
    assert found(fit(measured(both, cost), base))["reduce_gbps"] == pytest.approx(90.0, rel=1e-6)


def test_one_size_tells_one_parameter() -> None:
    twice = (samples("mesh")[0],) * 2
    fitted = fit(measured(twice, BASE), BASE)
    assert [e.parameter.name for e in fitted.estimates] == ["hccs.alpha_us"]
    assert {k.parameter.name: k.why for k in fitted.held} == {
        "hccs.gbps": "it grows in step with hccs.alpha_us",
        "reduce_gbps": "it has no part in these times",
    }


def test_as_many_times_as_parameters_have_no_errors() -> None:
    some = samples("mesh")[:: len(SIZES) - 1]
    fitted = fit(measured(some, BASE), BASE)
    assert [e.error for e in fitted.estimates] == [None, None]


def test_parameters_are_never_below_zero() -> None:
    some = samples("mesh")
    falling = [TimedCall(s.program, s.topology, 900.0 - 100 * k) for k, s in enumerate(some)]
    fitted = fit(falling, BASE)
    assert all(e.value is None or e.value >= 0 for e in fitted.estimates)
    assert fitted.cost == CostModel.model_validate(fitted.cost.model_dump())


def test_a_base_in_which_links_are_free() -> None:
    some = samples("mesh")
    free = BASE.model_copy(update={"hccs": LinkCost(alpha_us=0.0, gbps=None)})
    cost = truth(free, 5.0, 20.0, 1.5)
    values = found(fit(measured(some, cost), free))
    assert values == pytest.approx({"hccs.alpha_us": 5.0, "hccs.gbps": 20.0}, rel=1e-6)


def test_critical_paths_that_add_nothing_are_not_added_for_ever() -> None:
    request = CallRequest(CallOptions("all_reduce", servers=3, devices=2))
    some = [TimedCall(request.plan(request.op(1024)).program, request.topology, 0.0)]
    parameters, rng = used_parameters(some), np.random.default_rng(1)
    paths = CriticalPaths(some, BASE, parameters)
    start = np.array([parameter.microseconds(BASE) for parameter in parameters])
    for share in 10 ** rng.uniform(-5, 0, (25, len(start))):
        assert not all(paths.extend(start * share) for _ in range(6))


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    some = measured(samples("mesh"), BASE)
    with pytest.raises(ParameterError, match=r"^Fitting needs scipy\.") as error:
        fit(some, BASE)
    assert error.value.hint == "pip install 'hccl-py[fit]' brings it."


def test_too_little_to_fit() -> None:
    some = measured(samples("mesh"), BASE)
    for few, words in ([], "There is no measured time"), (some[:1], "1 measured time is not"):
        with pytest.raises(ParameterError, match=words):
            fit(few, BASE)
    alone = CallRequest(CallOptions("all_gather", ranks=1))
    lonely = TimedCall(alone.plan(alone.op(8)).program, alone.topology, 1.0)
    with pytest.raises(ParameterError, match="times tell nothing about links"):
        fit([lonely, lonely], BASE)


# ---- logs ----

HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"

LOG = f"""
some library says hello | 12 | 13
+ mpirun -n 16 ./bin/all_reduce_test -b 8K -e 64M -f 2 -d fp16 -o max -p 8
the minbytes is 8192, maxbytes is 67108864, iters is 20, warmup_iters is 5
{HEADER}
8192 | 46.31 | 0.17 | success
a warning between rows: 17
16384|47.5|0.3|failed
32768   |   48.02 |   0.68    | NULL
0 | 3.0 | 0 | success
mpirun --np=8 /opt/bin/broadcast_test -r 3 --datatype=int8
{HEADER.replace("aveg", "avg").replace(" |", "")}
1024 5e1 0.02 success
"""


def wrapped(text: str, prefix: str, end: str) -> bytes:
    return "".join(f"{prefix}{line}{end}" for line in text.splitlines()).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:", "[0] ", "  0: ", "2024-05-01 10:00:07 "])
def test_a_log_with_all_that_logs_have(tmp_path: Path, prefix: str, end: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(wrapped(LOG, prefix, end) + b"\xff\xfe not UTF-8\n")
    one, other = read_log(path)
    assert one.where == f"{path}:5"
    assert one.command == Command("all_reduce", 16, 8, "fp16", "max", None)
    assert [(r.line, r.bytes, r.time_us, r.why_not) for r in one.rows] == [
        (6, 8192, 46.31, ""),
        (8, 16384, 47.5, "the check failed"),
        (9, 32768, 48.02, ""),
        (10, 0, 3.0, "there is no data"),
    ]
    assert other.command == Command("broadcast", 8, None, "int8", None, 3)
    assert [(r.bytes, r.time_us) for r in other.rows] == [(1024, 50.0)]


def test_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("rank | data_size(Bytes): | count | aveg_time(us): | x\n0 | 64 | 16 | 7.5 | 1")
    (table,) = read_log(path)
    assert [(r.bytes, r.time_us) for r in table.rows] == [(64, 7.5)]
    assert table.command is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "there is no table of hccl_test"),
        (b"nothing\n8192 | 46.31 | 0.17 | success\n", "there is no table"),
        (bytes(range(256)) * 40, "the file is not text"),
        *(
            (
                f"{HEADER}\n8 | {time} | 1 | success".encode(),
                f":2: the time of 8 bytes is {time} us",
            )
            for time in ("0", "-3.5", "nan", "inf", "1e999", "0.00")
        ),
    ],
)
def test_logs_that_cannot_be_fitted(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(data)
    with pytest.raises(FileError, match=words) as error:
        read_log(path)
    assert error.value.message.startswith(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.truncate(10 << 30)
    for path, words in (huge, "at most 64,000,000 bytes"), (tmp_path, "cannot be read"):
        with pytest.raises(FileError, match=words):
            read_log(path)
    with pytest.raises(FileError, match="No such file"):
        read_log(tmp_path / "none.log")
