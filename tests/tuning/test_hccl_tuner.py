"""Tuning tables as rules of HCCL's tuner plugins: what a plugin chooses is what the table says."""

import json
import random
from pathlib import Path

import pytest

from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator
from hccl_py.tuning.hccl_tuner import parted, tuner_json, tuner_plugin
from hccl_py.tuning.table import Shape, TuningEntry, TuningTable
from tests.tuning.test_table import entry, table, winner
from tests.tuning.tuner_host import TunerHost, built, example_of_hccl

NAMES: dict[str, tuple[str, ...]] = {
    "all_reduce": ("AicpuAllReduceSoleMeshOneShot", "CcuSchedAllReduceSoleNHR"),
    "all_gather": ("AicpuAllGatherSoleMesh", "CcuMSAllGatherSoleMesh2Die"),
    "reduce_scatter": ("AicpuReduceScatterSoleMeshChunk", "AivReduceScatterSoleMesh"),
}
COMPOSED = "AicpuAllReduceParallelMeshNHR"
PLACES = ((1, 4), (2, 8))


def entries(names: dict[str, tuple[str, ...]]) -> list[TuningEntry]:
    """Entries of every op and place, whose winners change at 3 sizes."""
    return [
        entry(
            *(
                winner(size, found[k % len(found)])
                for k, size in enumerate((4096, 1 << 20, 3 << 24))
            ),
            op=op,
            reduce_op=None if op == "all_gather" else "sum",
            dtype=dtype,
            topology=Shape(product="ascend950", superpods=1, servers=s, devices=d, rdma=False),
        )
        for op, found in names.items()
        for s, d in PLACES
        for dtype in ("fp32", "bf16")
    ]


def check_calls(host: TunerHost, tuned: TuningTable, names: dict[str, tuple[str, ...]]) -> None:
    """In 1 000 random calls the plugin prefers what the table says, and nothing where it is silent;
    sizes at the ends of ranges come often.
    """
    draw = random.Random(30)
    comms = {
        (s, d, mb): host.comm(s * d, s, d, mb << 20)
        for s, d in (*PLACES, (4, 2))
        for mb in (200, 100)
    }
    silent = 0
    for _ in range(1000):
        op, (s, d, mb) = draw.choice([*names]), draw.choice([*comms])
        dtype = draw.choice([DataType.FP32, DataType.BF16, DataType.INT8])
        found = next(
            (
                one
                for one in tuned.entries
                if (one.op, one.dtype, one.buffsize_mb) == (op, dtype.value, mb)
                and (one.topology.servers, one.topology.devices) == (s, d)
            ),
            None,
        )
        ends = [one.from_bytes for one in tuned.entries[0].ranges]
        size = max(0, draw.choice([*ends, draw.randrange(1 << 31)]) + draw.randint(-40, 40))
        count = make_operator(op).count(size, s * d, dtype.itemsize)
        whole = count * dtype.itemsize * (1 if op == "all_reduce" else s * d)
        given = whole // (s * d) if op == "all_gather" else whole
        said = None if found is None else found.at(whole).executor
        silent += said is None
        assert host.chosen(comms[s, d, mb], op, given, dtype, names[op]) == said, (op, s, d, size)
    assert 100 < silent < 900


def test_hccls_example_chooses_what_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = table(*entries(NAMES))
    text, count, _ = tuner_json(tuned)
    assert count == 3 * len(tuned.entries)
    (tmp_path / "rules.json").write_text(text)
    monkeypatch.setenv("HCCL_TUNER_CONFIG_FILE", str(tmp_path / "rules.json"))
    check_calls(TunerHost(example_of_hccl(tmp_path)), tuned, NAMES)


def test_our_plugin_chooses_what_the_table_says_by_full_names(tmp_path: Path) -> None:
    names = NAMES | {"all_reduce": (*NAMES["all_reduce"], COMPOSED)}
    tuned = table(*entries(names))
    files, count, _ = tuner_plugin(tuned)
    assert count == 3 * len(tuned.entries)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    check_calls(TunerHost(built([tmp_path / "tuner.cc"], [], tmp_path / "tuner.so")), tuned, names)


def test_bounds_are_a_ranks_input_and_meet_without_a_gap() -> None:
    tuned = table(*entries({"all_gather": NAMES["all_gather"]}))
    rules = json.loads(tuner_json(tuned)[0])["op_types"]["allgather"]["rules"]
    assert len(rules) == 12
    for first, second in ((0, 1), (1, 2)):
        below, above = rules[first]["match"], rules[second]["match"]
        assert below["max_bytes"] + 1 == above["min_bytes"]
        assert below["max_ranks"] == above["min_ranks"]
    assert {rule["match"]["data_type"] for rule in rules} == {"fp32", "bfloat16"}


def test_words_are_those_that_hccl_fills_in() -> None:
    assert parted("CcuSchedReduceScatterSoleNHRMultiLink", "reduce_scatter") == (
        *("ccusched", "sole", "nhrmultilink"),
    )
    assert parted(COMPOSED, "all_reduce") is None


def test_what_rules_cannot_say_is_listed() -> None:
    composed = entry(winner(1, COMPOSED), winner(9, "AicpuAllReduceSoleNHR"))
    classic = entry(winner(1, "AllReduceRing"), dtype="fp16")
    text, count, unsaid = tuner_json(
        table(composed, classic, entry(winner(1, "A"), op="broadcast", reduce_op=None))
    )
    assert count == 1
    assert json.loads(text)["op_types"]["allreduce"]["rules"][0]["template"] == "nhr"
    lines = "\n".join(unsaid)
    assert f"from 0 bytes: {COMPOSED} is not named by engine" in lines
    assert "AllReduceRing is no executor of the Ascend 950" in lines
    assert "the rules have no such op; they have all_gather, all_reduce, reduce_scatter" in lines
    assert "calls that differ in reduce_op sum, mode op_base, deterministic false" in lines


def test_entries_that_rules_cannot_tell_apart() -> None:
    first = entry(winner(1, "AicpuAllReduceSoleNHR"))
    same = entry(winner(1, "AicpuAllReduceSoleNHR"), reduce_op="max")
    other = entry(winner(1, "AicpuAllReduceSoleMeshOneShot"), reduce_op="max")
    assert tuner_json(table(first, same))[1] == 1
    with pytest.raises(ParameterError, match=r"cannot tell all_reduce max, .* from all_reduce sum"):
        tuner_json(table(first, other))
