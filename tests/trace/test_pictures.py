"""Pictures of steps: what is in them is true, and those in the documentation are not stale."""

import re
import runpy
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import Mode
from hccl_py.errors import ParameterError
from hccl_py.orchestration.region import Region
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import PRESETS
from hccl_py.trace.pictures import draw_steps
from hccl_py.trace.pictures.algorithm_steps import algorithm_steps
from hccl_py.trace.pictures.captions import label
from hccl_py.trace.pictures.flow import Flow, flow_of
from hccl_py.trace.pictures.input_chunks import InputChunk
from tests.recording import op_of, recorded
from tests.suited import SuitedCall, suited

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "algorithms"


def flow(name: str, op: str, count: int, topology: Topology | int = 4, level1: str = "") -> Flow:
    return flow_of(recorded(name, replace(op_of(op, count), level1=level1), topology))


def carried(flow: Flow) -> list[set[tuple[int, int, str]]]:
    """Return (from, to, label) of every band's moves."""
    return [{(m.source, m.target, label(flow, m)) for m in band.moves} for band in flow.bands]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_ring_all_gather_passes_slots_on(ranks: int) -> None:
    found = flow("AllGatherComm", "all_gather", 32, ranks)
    assert carried(found) == [
        {(r, (r + 1) % ranks, str((r - s) % ranks)) for r in range(ranks)} for s in range(ranks - 1)
    ]
    assert [band.labels for band in found.bands] == [
        (f"all-gather {s + 1}/{ranks - 1}",) for s in range(ranks - 1)
    ]


@pytest.mark.parametrize("ranks", [3, 4, 7])
def test_ring_all_reduce_adds_one_contribution_a_step(ranks: int) -> None:
    found = flow("AllReduceComm", "all_reduce", 32 * ranks, ranks)
    assert found.chunks == ranks
    assert len(found.bands) == 2 * (ranks - 1)
    for step, band in enumerate(found.bands[: ranks - 1]):
        for rank in range(ranks):
            chunk = (rank - 2 - step) % ranks
            ring = {InputChunk((chunk + 1 + k) % ranks, chunk) for k in range(step + 2)}
            assert {part for part in band.holds[rank] if part.chunk == chunk} == ring
        assert all(move.reduces and len(label(found, move)) == 2 for move in band.moves)
    assert not any(move.reduces for band in found.bands[ranks - 1 :] for move in band.moves)


def test_ranks_that_could_begin_a_step_earlier_do_it_with_the_others() -> None:
    servers = topology_of(servers=5, devices=1)
    found = flow("AllReduceRingExecutor", "all_reduce", 128, servers, "H-D_R")
    assert [" ".join(band.labels) for band in found.bands] == [
        "pairs reduce",
        *("halving 1/2", "halving 2/2"),
        *("doubling 1/2", "doubling 2/2"),
        "pairs copy",
    ]


def test_steps_with_several_labels_name_what_they_have_in_common() -> None:
    op = replace(op_of("scatter", 32), level1="ring")
    found = algorithm_steps(recorded("ScatterCommExecutor", op, 4))
    assert [step.label for step in found.steps] == ["scatter 1/3", "scatter", "scatter"]


def test_chunks_of_all_to_all_are_numbered_by_receiver() -> None:
    topology = topology_of(servers=2, devices=2)
    found = flow("RunAlltoAllVStaged", "all_to_all", 32, topology, "pairwise")
    first, second = carried(found)
    assert first == {(0, 1, "0→1,3"), (1, 0, "1→0,2"), (2, 3, "2→1,3"), (3, 2, "3→0,2")}
    assert second == {(0, 2, "0,1→2"), (1, 3, "0,1→3"), (2, 0, "2,3→0"), (3, 1, "2,3→1")}
    assert {move.rdma for move in found.bands[1].moves} == {True}


def test_halves_that_go_different_ways_are_chunks() -> None:
    topology = Topology(PRESETS["atlas-900-a3"], (4,))
    name = "AlignedAllGatherDoubleRingFor91093Executor"
    first, *_ = carried(flow(name, "all_gather", 64, topology, "ring"))
    assert first == {(r, (r + 1) % 4, f"{r}a") for r in range(4)} | {
        (r, (r - 1) % 4, f"{r}b") for r in range(4)
    }


def test_local_reductions_are_said() -> None:
    found = flow_of(recorded("ReduceScatterDeterExecutor", op_of("reduce_scatter", 32), 5))
    assert found.bands[-1].adds == (0, 1, 2, 3, 4)
    steps = algorithm_steps(
        recorded("ReduceScatterDeterExecutor", op_of("reduce_scatter", 32), 5)
    ).steps
    assert steps[-1].said.endswith("the receiver adds it up afterwards.")


@given(
    call=suited(
        tuple(sorted(PRESETS)),
        st.sampled_from([(1,), (2,), (3,), (4,), (5,), (2, 2), (1, 3), (2, 2, 2)]),
        (1, 7, 96, 640),
        ("fp32", "int64"),
        tuple(Mode),
    )
)
def test_ranks_send_what_they_hold_and_end_with_what_they_want(call: SuitedCall) -> None:
    found = flow_of(recorded(*call, 1 << 16))
    end = found.bands[-1].holds if found.bands else found.holds
    assert all(wanted <= holds for wanted, holds in zip(found.wanted, end, strict=True))
    before = found.holds
    for band in found.bands:
        for move in band.moves:
            assert found.reduces or move.parts <= before[move.source] | band.holds[move.source]
            assert move.source != move.target
        before = band.holds


def test_picture_is_xml_that_also_says_the_steps_in_words() -> None:
    topology = topology_of(servers=2, devices=2)
    program = recorded("AllGatherComm", op_of("all_gather", 32), topology)
    picture = ElementTree.fromstring(draw_steps(program, "Two < three", topology))
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in picture.iter(f"{space}text")]
    assert picture.findtext(f"{space}title") == "Two < three"
    assert {"3", "to begin with", "all-gather 1/3", "128 each"} <= set(texts)
    said = str(picture.findtext(f"{space}desc"))
    assert said.startswith("Step 1, all-gather 1/3: Every rank sends to the next.")


def test_no_text_is_covered_by_its_own_edge() -> None:
    picture = draw_steps(recorded("AllGatherComm", op_of("all_gather", 32), 4), "ring")
    texts = re.findall(r'<text([^>]*) class="([\w ]+)">([^<]*)</text>', picture)
    edges = [number for number, (_, style, _) in enumerate(texts) if style == "halo"]
    assert edges
    for number in edges:
        (where, _, said), (place, style, again) = texts[number : number + 2]
        assert (where, said, style) == (f' aria-hidden="true"{place}', again, "ink small")
    assert "paint-order" not in picture


def test_one_rank_has_a_picture_without_steps() -> None:
    picture = draw_steps(recorded("AllGatherComm", op_of("all_gather", 32), 1), "alone")
    assert "to begin with" in picture
    assert "Step" not in picture


class Shifted:
    """Cuts its data everywhere: what is one byte further in a buffer than in IN is not in OUT."""

    op, algorithm = "broadcast", "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        rank.main.copy(rank.ccl_in[1 : op.size + 1], rank.user_in)
        rank.main.copy(rank.user_out, rank.ccl_in[: op.size])


def test_contents_that_are_too_large_are_not_followed() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 32), topology_of(24))
    with pytest.raises(ParameterError, match=r"24 ranks and \d+ tasks are too many for a picture"):
        flow_of(program)
    many = recorded("AllReduceComm", op_of("all_reduce", 100_001, "int8"), 4)
    assert flow_of(many).chunks == 4
    fine = recorded(Shifted, op_of("broadcast", 150_000, "int8"), 2)
    with pytest.raises(ParameterError, match="in more than 200000 pieces, too many for a picture"):
        flow_of(fine)
    assert "filled as their data comes" in draw_steps(fine, "fine")


def test_ops_without_data_are_refused() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 0), 4)
    with pytest.raises(ParameterError, match="all_gather of 0 elements has no data to follow"):
        flow_of(program)


def test_checked_in_pictures_are_what_the_executors_record() -> None:
    drawn = dict(runpy.run_path(str(ROOT / "scripts" / "pictures.py"))["drawn"]())
    kept = {path.name: path.read_text("utf-8") for path in (PAGES / "pictures").iterdir()}
    assert sorted(drawn) == sorted(kept), "run scripts/pictures.py, and remove what it leaves"
    stale = [name for name, text in drawn.items() if text != kept[name]]
    assert not stale, "run scripts/pictures.py"


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in sorted(PAGES.glob("*.md")))
    shown = set(re.findall(r"\(pictures/([\w.]+)\)", pages))
    assert shown == {path.name for path in (PAGES / "pictures").iterdir()}
