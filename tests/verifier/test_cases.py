"""Which calls a sweep runs: every two choices meet, smallest first, and options repeat one."""

import json
import shlex
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.all_gather.mesh_opbase import AllGatherMeshOpbaseExecutor
from hccl_executors.flat import AllGatherComm, AllReduceComm, BroadCastComm, ScatterCommExecutor
from hccl_py.call.op_param import OpParam as Op
from hccl_py.cli.check import Narrowing
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.errors import HcclError, NotSupportedError, ParameterError, PluginError
from hccl_py.operators import make_operator
from hccl_py.plugins.executor import Executor, OpParam, RankView, ResourceRequest, Topology, ops_of
from hccl_py.topology import PRESETS
from hccl_py.topology.presets import SWEPT
from hccl_py.verifier.sweeps.cases import LARGE_CCL, SMALL_CCL, Case, Cases
from hccl_py.verifier.sweeps.covering import Row, covering, pairs_of
from hccl_py.verifier.sweeps.rounds import elements_per_round
from hccl_py.verifier.sweeps.space import DTYPES, space_of

SOME = (
    AllGatherComm,
    AllReduceComm,
    BroadCastComm,
    ScatterCommExecutor,
    AllGatherMeshOpbaseExecutor,
)


@st.composite
def bases(draw: st.DrawFn) -> list[Row]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    every = list(product(*(range(size) for size in sizes)))
    return draw(st.lists(st.sampled_from(every), min_size=1, unique=True))


@given(bases=bases(), free=st.lists(st.integers(1, 4), max_size=3))
def test_every_two_choices_that_can_meet_do(bases: list[Row], free: list[int]) -> None:
    every = [(*base, *rest) for base in bases for rest in product(*(range(n) for n in free))]
    rows = covering(bases, free)
    assert set(rows) <= set(every)
    if len(bases[0]) + len(free) > 1:
        assert {p for row in rows for p in pairs_of(row)} == {p for r in every for p in pairs_of(r)}
    assert rows == covering(bases, free)


def test_nothing_legal_gives_nothing() -> None:
    assert covering([], [3, 2]) == []


def test_rows_are_far_fewer_than_the_product() -> None:
    legal = list(product(range(10), range(3), range(8), range(4), range(2)))
    assert len(covering(legal, [11, 2, 3])) < 160


@pytest.mark.parametrize("cls", SOME)
def test_a_sweep_is_small_and_covers_its_axes(cls: type[Executor]) -> None:
    space = space_of(cls(), Cases())
    assert 80 <= len(space.cases) <= 300 * len(ops_of(cls()))
    assert len({case.text for case in space.cases}) == len(space.cases)
    assert [c.key for c in space.cases] == sorted(c.key for c in space.cases)
    ranks = {case.topology.size for case in space.cases}
    assert {1, 2, 3, 4, 5, 7, 8} <= ranks
    assert max(ranks) >= 32
    in_place = make_operator(ops_of(cls())[0]).in_place
    assert {case.op.in_place for case in space.cases} == ({False, True} if in_place else {False})
    assert {case.op.unit for case in space.cases} >= {1, 2, 4, 8}
    assert {case.op.count for case in space.cases} >= {0, 1, 1001}
    if "all_reduce" in ops_of(cls()):
        assert {case.op.reduce for case in space.cases} == set(ReduceOp)


def test_layouts_have_all_links_and_uneven_servers() -> None:
    space = space_of(AllGatherComm(), Cases())
    servers = {case.topology.servers for case in space.cases}
    assert servers >= {(1, 1), (2, 2, 2), (4, 4), (3, 2)}
    assert {case.topology.product.name for case in space.cases} == set(SWEPT)
    assert {case.op.mode for case in space.cases} == set(Mode)


@pytest.mark.parametrize("cls", SOME)
def test_small_buffers_give_several_rounds_with_a_short_tail(cls: type[Executor]) -> None:
    executor, tails, fulls = cls(), 0, 0
    for case in space_of(executor, Cases()).cases:
        if case.ccl_bytes == SMALL_CCL:
            each = elements_per_round(executor, case.op, case.topology, case.ccl_bytes)
            assert case.op.count <= 3 * each
            tails += each < case.op.count and case.op.count % each > 0
            fulls += case.op.count == each
    assert tails > 5
    assert fulls > 5


def test_what_suits_refuses_is_counted_by_reason() -> None:
    space = space_of(AllGatherMeshOpbaseExecutor(), Cases())
    assert all(case.op.mode is Mode.OP_BASE for case in space.cases)
    assert all(len(case.topology.servers) == 1 for case in space.cases)
    assert space.refused["needs every device linked to every other one"] > 0
    assert 0 < space.refused.total() < space.kinds


def test_a_narrowed_sweep_keeps_to_what_is_given() -> None:
    cases = Cases(
        ranks=(5, 11),
        counts=(7, 1000),
        dtypes=(DataType.FP16,),
        reduce_ops=(ReduceOp.MAX,),
        modes=(Mode.GRAPH,),
        in_place=True,
        buffsize=2,
    )
    space = space_of(AllReduceComm(), cases)
    assert {case.topology.servers for case in space.cases} == {(5,), (3, 2), (11,), (8, 3)}
    assert {case.op.count for case in space.cases} == {7, 1000}
    assert {case.ccl_bytes for case in space.cases} == {2 << 20}
    for case in space.cases:
        op = case.op
        assert (op.dtype, op.reduce, op.mode) == (DataType.FP16, ReduceOp.MAX, Mode.GRAPH)
        assert op.in_place


def test_servers_and_preset_narrow() -> None:
    space = space_of(AllReduceComm(), Cases(servers=3, devices=2, topology="ring"))
    assert {repr(c.topology) for c in space.cases} == {"Topology(ring, servers=(2, 2, 2))"}


def test_counts_that_would_take_many_rounds_run_in_large_buffers_only() -> None:
    space = space_of(AllReduceComm(), Cases(ranks=(4,), counts=(10, 10_000_000)))
    found = Counter((case.op.count, case.ccl_bytes) for case in space.cases)
    assert {key for key, n in found.items() if n} == {
        (10, LARGE_CCL),
        (10, SMALL_CCL),
        (10_000_000, LARGE_CCL),
    }


@pytest.mark.parametrize(
    ("cases", "error", "text"),
    [
        (Cases(dtypes=(DataType.UINT8,)), NotSupportedError, "does not take uint8"),
        (Cases(ranks=(70000,)), ParameterError, "ranks is 70000"),
        (Cases(ranks=(4,), servers=3, devices=2), ParameterError, "are 6 ranks, not 4"),
    ],
)
def test_a_narrowing_to_nothing_legal_raises(
    cases: Cases, error: type[HcclError], text: str
) -> None:
    with pytest.raises(error, match=text):
        space_of(AllReduceComm(), cases)


def test_operators_with_a_root_get_the_first_a_middle_and_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hccl_py.operators.one_count import AllGather

    monkeypatch.setattr(AllGather, "rooted", True, raising=False)
    space = space_of(AllGatherComm(), Cases(ranks=(5,)))
    assert {case.op.root for case in space.cases} == {0, 2, 4}
    given = space_of(AllGatherComm(), Cases(ranks=(5,), roots=(3,)))
    assert {case.op.root for case in given.cases} == {3}
    assert "root 3" in given.cases[0].text
    assert "-r 3" in given.cases[0].options


class Asks(AllGatherComm):
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return self.answer  # type: ignore[return-value]


def test_an_executor_that_suits_nothing_has_no_cases() -> None:
    space = space_of(Asks(False), Cases(ranks=(2,)))
    assert not space.cases
    assert space.refused == {"its suits() says no": space.kinds}


def test_an_answer_that_is_none_is_an_error() -> None:
    with pytest.raises(PluginError, match=r"Asks\.suits returned a str instead of True"):
        space_of(Asks("yes"), Cases())


class Raising(AllGatherComm):
    def suits(self, op: OpParam, topology: Topology) -> bool:
        return topology.servers[1] > 0


def test_a_suits_that_raises_is_an_error_that_names_the_call() -> None:
    with pytest.raises(
        PluginError,
        match=r"suits, 1 rank, count 1, fp32.*: IndexError: .* \(verifier/test_cases.py:\d+\)",
    ):
        space_of(Raising(), Cases())


class Silent(AllGatherComm):
    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        raise ZeroDivisionError


def test_a_round_is_a_full_buffer_where_the_executor_does_not_say() -> None:
    op = Op("all_gather", 1, DataType.FP32)
    assert elements_per_round(Silent(), op, Topology(PRESETS["ring"], (3,)), 4096) == 1024


def test_the_text_names_what_is_not_usual() -> None:
    op = Op("all_reduce", 7, DataType.FP16, ReduceOp.MAX, mode=Mode.GRAPH, in_place=True)
    texts = {
        (3,): "3 ranks, count 7, fp16 max, graph, in place, ring, CCL buffers of 32 KiB",
        (2, 2): "4 ranks (2 servers x 2), count 7, fp16 max, graph, in place, ring, "
        "CCL buffers of 32 KiB",
        (3, 2): "5 ranks (servers of 3 + 2), count 7, fp16 max, graph, in place, ring, "
        "CCL buffers of 32 KiB",
    }
    for servers, text in texts.items():
        assert Case(Topology(PRESETS["ring"], servers), op, SMALL_CCL).text == text
    plain = Op("all_gather", 1, DataType.INT8)
    alone = Case(Topology(PRESETS["atlas-800t-a2"], (1,)), plain, LARGE_CCL)
    assert alone.text == "1 rank, count 1, int8, op_base"


FLAGS = {
    "--ranks": "ranks",
    "--servers": "servers",
    "--devices": "devices",
    "--topology": "topology",
    "--count": "count",
    "-d": "dtype",
    "-o": "reduce_op",
    "--mode": "mode",
    "-r": "root",
    "--superpods": "superpods",
    "--algo": "algo",
}


def narrowed_by(options: str) -> Cases:
    words = shlex.split(options)
    in_place = "--in-place" in words
    words = [word for word in words if word != "--in-place"]
    given = {FLAGS[flag]: value for flag, value in zip(words[::2], words[1::2], strict=True)}
    whole = {n: int(given.pop(n)) for n in ("servers", "devices", "superpods") if n in given}
    narrowing = Narrowing(**whole, **given)  # type: ignore[arg-type]
    return narrowing.cases(in_place=in_place)


@pytest.mark.parametrize("cls", SOME)
def test_the_options_of_a_case_repeat_it(cls: type[Executor]) -> None:
    for case in space_of(cls(), Cases()).cases[::7]:
        again = space_of(cls(), narrowed_by(case.options))
        assert case.text in [other.text for other in again.cases], case.options
        assert len(again.cases) <= 24


def test_dtypes_have_every_size() -> None:
    assert {dtype.itemsize for dtype in DTYPES} == {1, 2, 4, 8}


@pytest.mark.parametrize(("ranks", "sizes"), [((), {6}), ((2, 4), {2, 4}), ((6,), {6})])
def test_a_network_is_taken_with_all_its_ranks_or_the_first_ones(
    ranks: tuple[int, ...], sizes: set[int]
) -> None:
    space = space_of(AllGatherComm(), Cases(ranks, topology="torus:2x3"))
    assert {case.topology.size for case in space.cases} == sizes
    assert all("torus:2x3" in case.text for case in space.cases)
    assert all("--topology torus:2x3" in case.options for case in space.cases)


def test_a_network_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "three.json"
    ends = [{"from": "a", "to": "b", "gbps": 10}, {"from": "b", "to": "c", "gbps": 10}]
    ranks = [{"name": name} for name in "abc"]
    path.write_text(json.dumps({"name": "three", "ranks": ranks, "links": ends}))
    space = space_of(AllGatherComm(), Cases(topology=str(path)))
    assert {case.topology.size for case in space.cases} == {3}


def test_a_network_says_itself_where_its_ranks_are() -> None:
    with pytest.raises(ParameterError, match="says where the ranks are"):
        space_of(AllGatherComm(), Cases(servers=2, topology="torus:2x3"))
