"""Tuning tables: ranges, merging, files; and what is refused, in one sentence."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.errors import FileError, ParameterError
from hccl_py.topology import Topology, topology_of
from hccl_py.tuning.points import Outcome, evaluate
from hccl_py.tuning.table import Sample, Shape, TuningEntry, TuningTable, Winner, ranges_of
from hccl_py.tuning.tune import alternatives, tune
from tests.tuning.evaluations import COST, doubled, point


def winner(size: int, name: str) -> Winner:
    sample = Sample(bytes=size, simulated_us=1.0, hccl_executor="Rules", hccl_us=2.0)
    return Winner(executor=name, levels={}, sample=sample)


def entry(*winners: Winner, **about: Any) -> TuningEntry:
    given: dict[str, Any] = {
        "op": "all_reduce",
        "dtype": "fp32",
        "reduce_op": "sum",
        "mode": "op_base",
        "deterministic": "false",
        "buffsize_mb": 200,
        "topology": Shape.of(topology_of(4)),
        "cost": COST.name,
        "network": "uncontended",
        "ranges": tuple(ranges_of(winners)),
    }
    return TuningEntry(**given | about)


def table(*entries: TuningEntry) -> TuningTable:
    return TuningTable.joined([COST], entries)


WINNERS = st.dictionaries(st.integers(0, 1 << 40), st.sampled_from("ABC"), min_size=1, max_size=9)


@given(WINNERS)
def test_every_size_has_the_winner_of_the_nearest_sample(names: dict[int, str]) -> None:
    found = entry(*(winner(size, name) for size, name in names.items()))
    assert {w.sample.bytes: w.executor for w in found.winners} == names
    assert all(a.executor != b.executor for a, b in pairwise(found.ranges))
    for size, name in names.items():
        assert found.at(size).executor == name
    sizes = sorted(names)
    assert found.at(0).executor == names[sizes[0]]
    assert found.at(1 << 60).executor == names[sizes[-1]]
    for low, high in pairwise(sizes):
        middle = found.at(high).from_bytes
        if names[low] != names[high]:  # their geometric mean
            assert (middle - 1) ** 2 <= low * high < middle**2


@given(WINNERS, WINNERS)
def test_merging_keeps_all_samples_and_the_newer_of_two(
    old: dict[int, str], new: dict[int, str]
) -> None:
    one, other = (
        table(entry(*(winner(size, name) for size, name in names.items()))) for names in (old, new)
    )
    merged = one.merged(other)
    assert {w.sample.bytes: w.executor for w in merged.entries[0].winners} == old | new
    assert merged.merged(other) == merged
    assert table().merged(one) == one == one.merged(table())


def test_times_of_another_model_replace_an_entry() -> None:
    other = COST.model_copy(update={"name": "mine"})
    new = TuningTable.joined([other], [entry(winner(2, "B"), cost="mine")])
    merged = table(entry(winner(1, "A"))).merged(new)
    assert [w.executor for w in merged.entries[0].winners] == ["B"]
    assert merged.costs == (other,)
    contended = entry(winner(3, "C"), network="contended")
    assert table(entry(winner(1, "A"))).merged(table(contended)).entries == (contended,)


def test_two_models_of_one_name_are_refused() -> None:
    other = TuningTable.joined([COST.formula().model_copy(update={"name": COST.name})], [])
    with pytest.raises(ParameterError, match="two different cost models named study"):
        TuningTable.joined([COST, COST.model_copy(update={"task_us": 1.0})], [])
    assert table(entry(winner(1, "A"))).merged(other).costs == (COST,)


def test_the_same_entries_give_the_same_file(tmp_path: Path) -> None:
    entries = [entry(winner(1, "A"), op=op) for op in ("broadcast", "all_reduce", "reduce")]
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, listed in zip(files, (entries, entries[::-1]), strict=True):
        table(*listed).write(path)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert TuningTable.read(files[0]) == table(*entries)


def test_shapes_tell_topologies_apart() -> None:
    both = [topology_of(servers=2, devices=8), topology_of(16, preset="atlas-900-a3")]
    found: list[Topology] = [
        *both,
        topology_of(4),
        topology_of(11),
        topology_of(superpods=2, servers=2, devices=4, preset="atlas-900-a3"),
        both[1].linked(inter_hccs=False, intra_roce=False),
        topology_of(servers=2, devices=8, preset="atlas-900-a3"),
        topology_of(servers=2, devices=8, preset="atlas-900-a3").linked(
            inter_hccs=False, intra_roce=False
        ),
    ]
    shapes = {Shape.of(topology).model_dump_json() for topology in found}
    assert len(shapes) == len(found) - 1  # without RDMA either way: one server of A3
    assert str(Shape.of(found[0])) == "atlas-800t-a2, 2 x 8"
    assert str(Shape.of(found[3])) == "atlas-800t-a2, servers of 8, 3 devices"
    assert str(Shape.of(found[4])) == "atlas-900-a3, 2 x 2 x 4"
    assert str(Shape.of(found[0].subset([1, 0, 8]))).endswith("servers of 2, 1 devices")


def broken(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(table(entry(winner(4, "A"), winner(9, "B"))).text())
    document["entries"][0] |= changes
    return document


RANGES = broken()["entries"][0]["ranges"]
SAMPLE = RANGES[0]["samples"][0]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], r"\$: expected an object, found a list of 0"),
        ({}, "schema: expected hccl-py.tuning/1, found null"),
        (broken() | {"schema": "hccl-py.tuning/9"}, 'found "hccl-py.tuning/9"'),
        (broken() | {"costs": []}, r"entries: expected entries of the table's cost models"),
        (broken() | {"cost": 1}, "cost: expected a key of the format"),
        (broken(dtype="fp31"), r'entries\[0\]\.dtype: expected a data type, found "fp31"'),
        (broken(reduce_op="avg"), r"entries\[0\]\.reduce_op: expected a reduce op"),
        (broken(buffsize_mb=0), r"entries\[0\]\.buffsize_mb: expected greater than or equal to 1"),
        (broken(buffsize_mb=True), r"entries\[0\]\.buffsize_mb: expected .*found true"),
        (broken(op=None), r"entries\[0\]\.op: expected a string, found null"),
        (broken(ranges=[]), r"entries\[0\]\.ranges: expected"),
        (broken(ranges=RANGES[1:]), "expected ranges that begin at 0 and ascend"),
        (broken(ranges=[RANGES[0], RANGES[0]]), "expected ranges that begin at 0 and ascend"),
        (
            broken(ranges=[RANGES[0] | {"samples": [SAMPLE, SAMPLE]}]),
            "expected samples in ascending order",
        ),
        (
            broken(ranges=[RANGES[0] | {"samples": [SAMPLE | {"simulated_us": -1}]}]),
            r"ranges\[0\]\.samples\[0\]\.simulated_us: expected greater",
        ),
    ],
)
def test_bad_files_are_refused_in_a_sentence(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "tuning.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match=rf"tuning\.json: .*{message}") as caught:
        TuningTable.read(path)
    assert caught.value.hint


def test_tuning_takes_the_fastest_and_says_what_hccl_takes() -> None:
    calls = [point(size, servers=2, devices=2, ranks=None) for size in (1 << 10, 1 << 26)]
    points = [one for call in calls for one in alternatives(call)]
    outcomes = [evaluate(one) for one in points]
    rules = [evaluate(call) for call in calls]
    found = tune([*points, *calls], [*outcomes, *rules])
    assert found == tune([*calls, *points], [*rules, *outcomes])
    [only] = found.entries
    for call, one, rule in zip(calls, only.winners, rules, strict=True):
        times = [
            o.simulated_us for p, o in zip(points, outcomes, strict=True) if p.call == call.call
        ]
        assert one.sample.simulated_us == min(t for t in times if t is not None)
        assert (one.sample.hccl_executor, one.sample.hccl_us) == (rule.executor, rule.simulated_us)
        assert one.sample.gain is not None
        assert one.sample.gain >= 1
    assert (only.cost, found.costs) == (COST.name, (COST,))


def test_equal_times_go_to_hccls_choice() -> None:
    points = alternatives(point(1 << 20))
    outcomes = [evaluate(one).model_copy(update={"simulated_us": 5.0}) for one in points]
    [only] = tune(points, outcomes).entries
    assert not only.ranges[0].differs


def test_errors_have_no_say_and_what_was_not_timed_is_left_open() -> None:
    points = alternatives(point(1 << 20))[:1]
    assert tune(points, [Outcome(error="Too large.")]).entries == ()
    rules = evaluate(point(1 << 20)).executor
    other = next(one for one in alternatives(point(1 << 20)) if one.executor != rules)
    [only] = tune([other], [evaluate(other)]).entries
    sample = only.ranges[0].samples[0]
    assert (sample.hccl_executor, sample.hccl_us, sample.gain) == (rules, None, None)


def test_tables_are_of_one_model_and_even_machines() -> None:
    slow = point(8, slow=("rank=1:2x",))
    with pytest.raises(ParameterError, match="A point has slow parts: rank=1:2x"):
        tune([slow], [doubled(slow)])
    both = [point(8), point(16, cost=COST.formula())]
    outcomes = [evaluate(one) for one in both]
    with pytest.raises(ParameterError, match="timed by two models: study uncontended and"):
        tune(both, outcomes)
