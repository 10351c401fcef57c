"""Executors as C++: recorded again they are the same program, and the code is what it should be."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_interop.cpp.export import CAN_EXPORT
from hccl_interop.cpp.export.notifies import named_notifies
from hccl_py.enums import TaskKind
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.executor import (
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    declarations_of,
)
from tests.interop.cpp.exporting import FROZEN, Export, export, op_of, shown
from tests.recording import op_of as param_of
from tests.recording import recorded

RING = (
    "    for (uint32_t step = 0; step < kRanks - 1; ++step) {\n",
    "        CHK_RET(HcommChannelNotifyWaitOnThread(main, left.channel, kDataSignal, kTimeout));\n",
    "        const Slice chunk = Part(data, kRanks, (rank + kRanks - 2 - step) % kRanks);\n"
    "        CHK_RET(HcommReadReduceOnThread(main, left.channel, res.ccl + chunk.offset, "
    "left.ccl + chunk.offset,\n",
)


def test_a_ring_is_a_loop_for_all_sizes() -> None:
    ring = export("AllReduceRing", servers=2, devices=4, size="64K")
    assert all(lines in ring.kernel for lines in RING)
    assert "constexpr uint8_t" not in ring.kernel  # no tables
    assert (ring.project.least, ring.project.most) == (1, 32 * 50 << 20)  # CCL_In holds 200 MB
    assert ring.difference(1, 33, 12345, 50 << 20, (50 << 20) + 1, 128 << 20) is None


def test_what_a_phase_does_stands_above_its_function() -> None:
    text = export("AllReduceMixExecutor", servers=2, devices=4, size="64K").kernel
    said = dict(re.findall(r"^// (.*)\nHcclResult (\w+)", text, re.MULTILINE)[::-1])
    assert said == {
        "In every server, every device sends to every other; the receiver reads it and adds it to "
        "its own.": "ReduceScatter",
        "Between servers, each device with its like: server 1 sends to server 0; the receiver "
        "reads it and adds it to its own.": "Reduce",
        "Between servers, each device with its like: server 0 sends to server 1; the receiver "
        "reads it.": "Broadcast",
        "In every server, every device sends to every other; the receiver reads it.": "AllGather",
    }


HANDFUL: dict[str, dict[str, object]] = {
    "AllReduceMeshSmallCountExecutor": {"devices": 4},  # branches, slots, two memories
    "AllGatherMeshGraphExecutor": {"servers": 2, "devices": 2, "mode": "graph"},  # user memory
    "SendExecutor": {"devices": 5},  # two entries
    "RunAlltoAllDirectFullmesh": {"devices": 4},  # a worker waits for another worker
    "AllReduceDoubleRingConcurrentExecutor": {  # planes with a table of peers each
        "topology": "atlas-900-a3",
        "servers": 2,
        "devices": 4,
    },
}


@pytest.mark.parametrize("name", HANDFUL)
def test_a_recording_is_the_program(name: str) -> None:
    made = export(name, **HANDFUL[name])  # type: ignore[arg-type]
    assert made.difference() is None
    assert made.warnings() == ""


def test_files_are_those_that_were_looked_at() -> None:
    written = shown()
    assert {path.name for path in FROZEN.iterdir()} == written.keys()
    for name, text in written.items():
        assert text == (FROZEN / name).read_text("utf-8"), (
            f"exported/{name}: `python -m tests.interop.cpp.exporting` writes anew; look at it"
        )


def test_user_memory_bounds_no_size_and_the_buffer_does() -> None:
    """400 MiB for each of 4 ranks, of 4 bytes each, however little of it is used."""
    made = export("AllGatherMeshGraphExecutor", servers=1, devices=4, mode="graph")
    assert (made.project.least, made.project.most) == (1, 400 << 20)


PLACES = (
    *(("ascend950", None, 1, 4), ("ascend950", None, 2, 4), ("ascend950", None, 2, 3)),
    *(("atlas-900-a3", None, 1, 8), ("atlas-900-a3", None, 2, 4), ("300i-duo", None, 1, 4)),
    *(("ascend950", None, 1, 1), ("atlas-800t-a2", None, 2, 8), ("atlas-800-9000", None, 1, 8)),
    *(("atlas-900-a3", 2, 1, 4), ("atlas-900-a3", None, 1, 2)),
)
"""Topology, superpods, servers of each, devices of each."""


@pytest.fixture(autouse=True)
def registered_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let executors on registered user memory run where they are named."""
    monkeypatch.setenv("HCCL_PY_ZERO_COPY", "true")


def exports_of(name: str, layouts: int) -> list[Export]:
    """Exports of an executor for so many layouts that suit it, or for fewer if no more do; in graph
    mode if in no other. An executor that names its cluster is exported for that.
    """
    found: list[Export] = []
    cluster = declarations_of(installed_executors().executors[name].executor).cluster
    places = ((cluster, None, None, None),) if cluster else PLACES
    for mode in ("op_base", "graph"):
        for topology, pods, servers, devices in places if not found else ():
            try:
                found.append(
                    export(
                        name,
                        superpods=pods,
                        servers=servers,
                        devices=devices,
                        topology=topology,
                        mode=mode,
                    )
                )
            except (NotSupportedError, ParameterError) as error:
                if "cannot be exported" in str(error) or "HCCL buffer" in str(error):
                    raise
            if len(found) == layouts:
                break
    return found


UBX = [
    name
    for name, registered in installed_executors().executors.items()
    if (declarations_of(registered.executor).cluster or "").startswith("ascend950-ubx")
]
"""Executors on the two networks inside a UBX server."""

EXPORTABLE = [
    name
    for name in installed_executors().executors
    if op_of(name) in CAN_EXPORT and name not in UBX
]

OF_EACH_KIND = (
    *("AllReduceComm", "AllReduceOrderPreservedExecutor", "AllReduceMeshOpbasePipelineExecutor"),
    *("AllReduceMixExecutor", "AllReduceFastDoubleRingFor91093Executor", "AllReduceDoublingDirect"),
    *("AllGatherComm", "AllGatherSemiRingExecutor", "AllGatherFor310PExecutor"),
    *("ReduceScatterDeterExecutor", "AlignedReduceScatterDoubleRingFor91093Executor"),
    *("BroadCastComm", "BroadCastSmallCountExecutor", "ReduceRingPlusHd", "ReduceStar"),
    *("ScatterRingFor91093Executor", "RunAlltoAllDirectFullmesh", "RunAlltoAllVStaged"),
    "RunAlltoAllVTwoLevelPipeline",
)
"""Executors whose code differs most: of every op, over rings, meshes, trees and in pipelines."""


SIX = (1, 1 << 17, 1 << 27, (100 << 20) + 1, 1_234_567)
"""Elements of fp32: 4 B, 512 KiB, 512 MiB, 400 MiB + 4 B, an odd count."""

CONTEST = Path(__file__).parents[3] / "examples" / "contest_all_reduce"


def check_six_sizes(made: Export) -> None:
    """One export has no table of bytes, and is the program at six sizes: those of `SIX`, and one
    element less than a round.
    """
    assert not made.project.missing
    found = re.search(r"kRoundCount = (\d+);", made.project.files["include/custom.h"])
    one_less = (int(found[1]) if found else made.project.most) - 1
    least, most = made.project.least, made.project.most
    assert least == 1
    assert made.difference(*(n for n in (*SIX, one_less) if n <= most)) is None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name",
    [
        *("OneThread", "Halving", "TwoAxesOnce", "TwoSlots", "Packed"),
        *("Striped", "TwoAxes", "TwoLanes", "TwoLanesSafe"),
    ],
)
def test_uneven_cuts_and_rounds_are_formulas(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONTEST)
    made = export(f"contest_all_reduce:{name}", servers=2, devices=8, size="1M", buffsize=200)
    assert "constexpr uint64_t k" not in made.kernel
    assert all(len(line) <= 120 for line in made.kernel.splitlines())
    check_six_sizes(made)


TEN = (
    *("AllReduceComm", "AllReduceOrderPreservedExecutor", "AllReduceMixExecutor"),
    *("AllReduceFastDoubleRingFor91093Executor", "AllReduceDoublingDirect", "AllGatherComm"),
    *("AllGatherFor310PExecutor", "BroadCastComm", "ReduceRingPlusHd", "ReduceStar"),
)
"""Built-in executors over rings, meshes, trees, halving and doubling."""


@pytest.mark.sweep
@pytest.mark.parametrize("name", TEN)
def test_built_in_executors_are_the_same_at_six_sizes(name: str) -> None:
    (made,) = exports_of(name, 1)
    check_six_sizes(made)


def test_a_step_without_a_formula_is_named() -> None:
    (made,) = exports_of("AllReduceMeshOpbasePipelineExecutor", 1)
    assert made.project.least == made.project.most == made.op.count
    assert made.project.missing.startswith("task 0 of pipeline reduce-scatter 1/1, copy from IN")
    assert made.project.missing in made.project.files["include/custom.h"]
    assert made.difference() is None


CHANNELS = Path(__file__).parents[3] / "examples" / "channels"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("executor", "place"),
    [
        ("gather_by_writes:GatherByWrites", "--ranks 5"),
        ("gather_by_writes:GatherByWrites", "--servers 2 --devices 3"),  # one step, two layers
        ("reduce_on_two_layers:ReduceOnTwoLayers", "--servers 2 --devices 4"),
        ("twice:Twice", "--ranks 4"),  # two channels of a pair on a layer
    ],
)
def test_executors_on_channels_are_the_same_in_cpp(
    executor: str, place: str, tmp_path: Path
) -> None:
    for path in (*CHANNELS.glob("*.py"), Path(__file__).parent / "ops" / "twice.py"):
        shutil.copy(path, tmp_path)
    command = [sys.executable, "-m", "hccl_py", "export", executor, "--to", "made", *place.split()]
    done = subprocess.run(
        [*command, "-b", "1M", "--check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Its recording is the same program, task by task." in done.stdout, done.stderr


def check_round_trip(made: Export, *counts: int) -> None:
    """The recording is the program for the counts that fit, the least and the most of them, too."""
    least, most = made.project.least, made.project.most
    inside = {count for count in counts if least <= count <= most}
    assert made.difference(least, most, *inside) is None


@pytest.mark.sweep
@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_executors_of_each_kind_are_the_same_in_cpp(name: str) -> None:
    (made,) = exports_of(name, 1)
    check_round_trip(made, 1201)


@pytest.mark.long
@pytest.mark.seeds(len(EXPORTABLE) // 4)
def test_all_executors_are_the_same_in_cpp(seed: int) -> None:
    """A quarter of them, another one under another seed."""
    every = exports_of(EXPORTABLE[seed % len(EXPORTABLE)], 2)
    assert every
    for made in every:
        check_round_trip(made, made.op.count * 3 // 2, 777, 1201)
    assert every[-1].warnings() == ""


@pytest.mark.parametrize("name", ["AicpuAllGatherConcurMeshNHR", "AicpuAllToAllSoleMeshUBX"])
def test_the_clos_network_inside_a_ubx_server_is_refused(name: str) -> None:
    cluster = declarations_of(installed_executors().executors[name].executor).cluster
    assert name in UBX
    assert cluster is not None
    with pytest.raises(NotSupportedError, match="over the Clos network inside a UBX server"):
        export(name, servers=None, devices=None, topology=cluster)


def test_the_notify_of_one_phase_alone_has_its_name() -> None:
    """That of a barrier is the fourth of a channel."""

    class Meets:
        op, algorithm = "all_reduce", "level0:mesh"

        def suits(self, op: OpParam, topology: Topology) -> bool:
            return True

        def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
            plane = PlaneRequest("level0", "mesh", barrier=True)
            return ResourceRequest(planes=(plane,))

        def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
            rank.level0.barrier(rank.main)
            rank.level0.barrier(rank.main)

    names = named_notifies(recorded(Meets(), param_of("all_reduce"), 4))
    assert names == {0: "kAck", 1: "kDataSignal", 2: "kDataAck", 3: "kBarrierSignal"}


def test_copies_without_bytes_are_no_tasks_in_cpp() -> None:
    mesh = export("AllReduceMeshOneshotLoopExecutor", devices=4)
    columns = mesh.program(1024).tasks
    assert ((columns.kind == TaskKind.COPY) & (columns.size == 0)).any()
    assert "0 * param.bytes" not in mesh.kernel


def test_offsets_have_64_bits_and_slots_a_variable() -> None:
    kernel = export("RunAlltoAllDirectFullmesh", devices=4).kernel
    assert "res.ccl + 104857600ULL - step * 52428800ULL" in kernel  # a quarter of CCL_In each
    assert "const uint64_t slot = ((rank + (step + kRanks - 2) % (kRanks - 1) + 1)" in kernel


def test_links_over_rdma_where_sdma_would_do() -> None:
    name = "AllGatherRingZerocopyExchangeExecutor"
    with pytest.raises(NotSupportedError, match="rank 1 and rank 4 are joined by SDMA"):
        export(name, superpods=2, servers=2, devices=3, topology="atlas-900-a3")


def test_ops_that_no_custom_op_stands_for() -> None:
    with pytest.raises(NotSupportedError, match="all_gather_v cannot be exported: no custom op"):
        export("AllGatherVComm")
