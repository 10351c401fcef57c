"""Threads and channels: what they record, how ends meet, and what is refused."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.enums import Buffer, ReduceOp
from hccl_py.errors import OrchestrationError
from hccl_py.formats import load
from hccl_py.plugins.executor import ChannelRequest, ChannelResources, ResourceRequest
from hccl_py.program.program import Program
from hccl_py.testing import check_executor
from hccl_py.topology import Topology, topology_of
from tests.orchestration.authors import Author
from tests.recording import actions, op_of, recorded, same_tasks

EXAMPLES = Path(__file__).parents[2] / "examples" / "channels"


def example(name: str) -> ModuleType:
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GatherByWrites = example("gather_by_writes").GatherByWrites
ReduceOnTwoLayers = example("reduce_on_two_layers").ReduceOnTwoLayers


def around(notifies: int = 1, **options: Any) -> Callable[[Any], ChannelResources]:
    """Return requests for a channel to every other rank, nearest above first, and a worker each."""

    def request(rank: Any) -> ChannelResources:
        peers = [(rank.id + d) % rank.size for d in range(1, rank.size)]
        channels = tuple(ChannelRequest(peer, notifies, **options) for peer in peers)
        return ChannelResources(channels, threads=(2, 1))

    return request


def program_of(
    body: Callable[[Any], object],
    request: Any = None,
    ranks: Any = 2,
    op: str = "all_gather",
) -> Program:
    return recorded(Author(body, request or around()), op_of(op), ranks)


# ---- what is recorded ----


def test_a_gather_by_writes_of_two_ranks() -> None:
    program = recorded(GatherByWrites, op_of("all_gather", 25), 2)
    assert program.buffers == ("IN", "OUT", "CCL")
    assert program.buffer_sizes.tolist() == [[100, 200, 1 << 20]] * 2
    assert actions(program, 1) == [
        "main posts notify 0 of sub 0",
        "main copy user_in[0:100] to user_out[100:200]",
        "sub 0 waits for notify 0 of sub 0",
        "sub 0 posts notify 0 of rank 0",
        "sub 0 waits for notify 0 from rank 0",
        "sub 0 write user_in[0:100] to rank 0 user_out[100:200]",
        "sub 0 posts notify 1 of rank 0",
        "sub 0 waits for notify 1 from rank 0",
        "sub 0 posts notify 0 of main",
        "main waits for notify 0 of main",
    ]


def two_servers(devices: int) -> Topology:
    return topology_of(servers=2, devices=devices, preset="ascend950")


def test_a_reduction_on_two_layers_of_two_servers() -> None:
    # 16 elements, 64 bytes: rank 1's part is [32:64], of which [48:64] goes over layer 1; its
    # block between the servers is [32:48]. Rank 0 has the part [0:32], rank 3 the block [48:64].
    program = recorded(ReduceOnTwoLayers, op_of("all_reduce", 16), two_servers(2))
    assert len(program.batches) == 1
    found = actions(program, 1)
    assert [a for a in found if a.startswith("sub 1")] == [
        "sub 1 waits for notify 0 of sub 1",
        "sub 1 posts notify 0 of rank 0",
        "sub 1 waits for notify 0 from rank 0",
        "sub 1 read_reduce rank 0 CCL[48:64] to CCL[48:64]",
        "sub 1 posts notify 1 of main",
        "sub 1 waits for notify 0 of sub 1",
        "sub 1 posts notify 1 of rank 0",
        "sub 1 waits for notify 1 from rank 0",
        "sub 1 read rank 0 CCL[16:32] to user_out[16:32]",
        "sub 1 posts notify 2 of rank 0",
        "sub 1 waits for notify 2 from rank 0",
        "sub 1 posts notify 1 of main",
    ]
    assert [a for a in found if a.startswith("main") and "rank 3" in a] == [
        "main posts notify 0 of rank 3",
        "main waits for notify 0 from rank 3",
        "main read_reduce rank 3 CCL[32:48] to CCL[32:48]",
        "main posts notify 1 of rank 3",
        "main waits for notify 1 from rank 3",
        "main read rank 3 CCL[48:64] to CCL[48:64]",
        "main posts notify 2 of rank 3",
        "main waits for notify 2 from rank 3",
    ]
    t = program.transports
    ends = [(int(a), int(b), t.planes[p]) for a, b, p in zip(t.rank, t.peer, t.plane, strict=True)]
    inside, across = [(0, 1), (1, 0), (2, 3), (3, 2)], [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert ends == [(*pair, "level0") for pair in inside] + [
        (*pair, "level1") for pair in sorted(inside + across)
    ]
    assert t.notifies.tolist() == [3] * 12


@pytest.mark.parametrize(
    ("servers", "devices"),
    [(1, 1), (1, 2), (1, 3), (1, 5), (1, 8), (2, 1), (3, 1), (2, 3), (3, 4), (5, 2)],
)
def test_the_examples_give_the_right_data(servers: int, devices: int) -> None:
    ranks = servers * devices
    inputs = [np.arange(13, dtype=np.int32) * (rank + 1) for rank in range(ranks)]
    with hccl.Communicator(
        servers=servers,
        devices=devices,
        topology="ascend950",
        executors=[GatherByWrites, ReduceOnTwoLayers],
    ) as comm:
        gathered = comm.all_gather(inputs, executor="GatherByWrites")
        summed = comm.all_reduce(inputs, executor="ReduceOnTwoLayers")
    for rank in range(ranks):
        assert (gathered.outputs[rank] == np.concatenate(inputs)).all()
        assert (summed.outputs[rank] == np.arange(13) * ranks * (ranks + 1) // 2).all()


@pytest.mark.parametrize(
    ("cls", "op"), [(GatherByWrites, "all_gather"), (ReduceOnTwoLayers, "all_reduce")]
)
def test_recorded_by_rank_saved_and_verified(cls: Any, op: str, tmp_path: Path) -> None:
    call, topology = op_of(op, 640, "int32"), two_servers(2)
    program = recorded(cls, call, topology)
    assert list(hccl.verify(program)) == []
    assert same_tasks(program, recorded(cls, call, topology, by_rank=True))
    for suffix in ("json", "npz"):
        program.save(tmp_path / f"program.{suffix}")
        assert load(tmp_path / f"program.{suffix}").digest == program.digest


def test_rounds_follow_max_count_in_both_modes() -> None:
    # 1 200 bytes hold 300 elements.
    for mode in hccl.Mode:
        program = recorded(ReduceOnTwoLayers, op_of("all_reduce", 1000, mode=mode), 2, 1200)
        assert program.rounds == 4


@pytest.mark.sweep
@pytest.mark.parametrize("cls", [GatherByWrites, ReduceOnTwoLayers])
def test_the_examples_hold_every_property(cls: Any) -> None:
    check_executor(cls)


def test_every_way_to_move_data() -> None:
    def body(rank: Any) -> None:
        main, channel = rank.main, rank.channel(1 - rank.id)
        there, here = channel.remote(rank.buffer[0:8]), rank.buffer[8:16]
        channel.write(main, there, here)
        channel.write_reduce(main, there, here)
        channel.write_with_notify(main, there, here, 0)
        channel.fence(main)
        channel.write_reduce_with_notify(main, there, rank.user_in[0:8], 1, ReduceOp.MAX)
        channel.read(main, here, there)
        channel.read_reduce(main, rank.user_out[0:8], there, ReduceOp.MIN)
        main.copy(here, rank.user_in[0:8])
        main.reduce(here, rank.buffer[16:24])

    program = program_of(body, around(2), op="all_reduce")
    assert actions(program, 0) == [
        "main write CCL[8:16] to rank 1 CCL[0:8]",
        "main write_reduce CCL[8:16] to rank 1 CCL[0:8]",
        "main write CCL[8:16] to rank 1 CCL[0:8]",
        "main posts notify 0 of rank 1",
        "main write_reduce user_in[0:8] to rank 1 CCL[0:8]",
        "main posts notify 1 of rank 1",
        "main read rank 1 CCL[0:8] to CCL[8:16]",
        "main read_reduce rank 1 CCL[0:8] to user_out[0:8]",
        "main copy user_in[0:8] to CCL[8:16]",
        "main reduce CCL[16:24] to CCL[8:16]",
    ]
    tasks = program.tasks
    reduces = tasks.table.reduce[tasks.instruction[:10]].tolist()
    maximum, minimum, total = int(ReduceOp.MAX), int(ReduceOp.MIN), int(ReduceOp.SUM)
    assert reduces == [-1, total, -1, -1, maximum, -1, -1, minimum, -1, total]


# ---- channels that meet ----


def several(rank: Any) -> ChannelResources:
    """Ranks 0 and 1 have three channels, which rank 1 asks for in another order."""
    wanted = {0: ((0, 1), (1, 2), (0, 3)), 1: ((1, 2), (0, 1), (0, 3))}.get(int(rank.id), ())
    return ChannelResources(
        tuple(ChannelRequest(1 - rank.id, notifies, layer) for layer, notifies in wanted)
    )


def test_the_kth_channel_of_a_layer_meets_the_kth() -> None:
    def body(rank: Any) -> None:
        if rank.id == 0:
            for number, channel in enumerate(rank.channels):
                channel.post(rank.main, number)  # the last notify of each
            assert rank.channel(1, layer=0, number=1) is rank.channels[2]
            assert rank.channel(1, number=1) is rank.channels[1]
        elif rank.id == 1:
            for number, index in ((1, 0), (0, 1), (2, 2)):
                rank.channels[number].wait(rank.main, index)

    program = program_of(body, several, two_servers(2))
    program.linked.check(program)
    planes = [program.transports.planes[p] for p in program.transports.plane]
    assert planes == ["level0"] * 4 + ["level1"] * 2
    assert program.transports.notifies.tolist() == [1, 3, 1, 3, 2, 2]


def test_a_channel_between_servers_is_of_layer_1() -> None:
    program = program_of(lambda rank: None, around(), two_servers(2))
    t = program.transports
    layers = {
        (int(a), int(b)): t.planes[p] for a, b, p in zip(t.rank, t.peer, t.plane, strict=True)
    }
    assert len(layers) == 12
    assert all((a // 2 == b // 2) == (plane == "level0") for (a, b), plane in layers.items())


def test_ranks_may_ask_for_different_channels_and_threads() -> None:
    def request(rank: Any) -> ChannelResources:
        if rank.id == 0:  # a star
            return ChannelResources(tuple(ChannelRequest(p) for p in (2, 1)), (2, 3))
        return ChannelResources((ChannelRequest(0),), (1,))

    def body(rank: Any) -> None:
        if rank.id == 0:
            for peer in (1, 2):
                rank.channel(peer).post(rank.workers[0], 0)
            rank.main.post(rank.workers[0].notifies[2])
            rank.workers[0].wait(rank.workers[0].notifies[2])
        else:
            rank.channels[0].wait(rank.main, 0)

    program = program_of(body, request, 3)
    program.linked.check(program)
    assert actions(program, 0)[2] == "main posts notify 2 of sub 0"
    assert program.declared.sub_streams.tolist() == [1, 0, 0]
    assert program.declared.local_notifies.tolist() == [[2, 3], [1, 0], [1, 0]]


# ---- what is refused ----


def channels(*requests: ChannelRequest) -> ChannelResources:
    return ChannelResources(requests)


def only_rank_0(rank: Any) -> ChannelResources:
    return channels(*[ChannelRequest(1)] * int(rank.id == 0))


def uneven(rank: Any) -> ChannelResources:
    return channels(ChannelRequest(1 - rank.id, 1 + int(rank.id)))


def mixed(rank: Any) -> Any:
    return ResourceRequest() if rank.id == 0 else ChannelResources()


@pytest.mark.parametrize(
    ("request_of", "finding", "words"),
    [
        (
            only_rank_0,
            "ONE_SIDED_CHANNEL",
            "Rank 0 asks for 1 channels to rank 1 on layer 0, and rank 1 for none",
        ),
        (uneven, "RESOURCE_MISMATCH", "Rank 0 asks for 1 notifies on channel 0 to rank 1"),
        (mixed, "RESOURCE_MISMATCH", "rank 0 ask for a ResourceRequest, rank 1 for Channel"),
        (channels(ChannelRequest(7)), "UNDECLARED_CHANNEL", "to rank 7, which does not exist"),
        (channels(ChannelRequest(0)), "UNDECLARED_CHANNEL", "Rank 0 asks for a channel to itself"),
        (channels(ChannelRequest(1, layer=2)), "", "the layer of a channel is 2"),
        (channels(ChannelRequest(1, -1)), "", "the number of notifies of a channel is -1"),
        (channels(ChannelRequest(1.5)), "", "the peer 1.5 is no rank"),  # type: ignore[arg-type]
        (channels(ChannelRequest(1, memory=(Buffer.CCL_IN,))), "", "is no user memory"),
        (ChannelResources(threads=()), "", "threads has 0 numbers"),
        (ChannelResources(threads=(1, -2)), "", "the number of notifies of thread 1 is -2"),
        (ChannelResources(channels=3), "", "channels is a int"),  # type: ignore[arg-type]
        (ChannelResources((3,)), "", "channels holds a int"),  # type: ignore[arg-type]
    ],
)
def test_requests_that_cannot_be_are_refused(request_of: Any, finding: str, words: str) -> None:
    with pytest.raises(OrchestrationError) as caught:
        program_of(lambda rank: None, request_of)
    assert words in caught.value.message
    assert caught.value.finding == finding


def test_layer_0_does_not_leave_a_server() -> None:
    with pytest.raises(OrchestrationError, match="on layer 0, and they are on different servers"):
        program_of(lambda rank: None, around(layer=0), topology_of(servers=2, devices=1))


def test_a_single_server_has_no_layer_1() -> None:
    with pytest.raises(OrchestrationError, match="on layer 1, and all ranks are on one server"):
        program_of(lambda rank: None, around(layer=1), 2)


def crossing(rank: Any) -> None:
    """Writes over one channel to the peer of another one."""
    there = rank.channel((rank.id + 1) % 3).remote(rank.buffer[0:8])
    rank.channel((rank.id + 2) % 3).write(rank.main, there, rank.buffer[0:8])


@pytest.mark.parametrize(
    ("body", "finding", "words"),
    [
        (lambda r: r.channel(r.id + 5), "UNDECLARED_CHANNEL", "Rank 0 has no channel to rank 5"),
        (
            lambda r: r.channel((r.id + 1) % 3, layer=1),
            "UNDECLARED_CHANNEL",
            "Rank 0 has no channel to rank 1 on layer 1",
        ),
        (
            lambda r: r.channel((r.id + 1) % 3, number=1),
            "UNDECLARED_CHANNEL",
            "Rank 0 has 1 channels to rank 1, so none with number 1",
        ),
        (lambda r: r.channels[2], "UNDECLARED_CHANNEL", "There is no channel 2: 2 were requested"),
        (lambda r: r.threads[2], "UNDECLARED_STREAM", "There is no thread 2: 2 were requested"),
        (
            lambda r: r.main.notifies[2],
            "NOTIFY_INDEX_OUT_OF_RANGE",
            "There is no notify of thread 0 with number 2: 2 were requested",
        ),
        (
            lambda r: r.channels[0].post(r.main, 1),
            "NOTIFY_INDEX_OUT_OF_RANGE",
            "Notify 1 of the channel does not exist: 1 were asked for (main, ",
        ),
        (
            lambda r: r.channels[0].remote(r.user_out[0]),
            "REMOTE_NOT_EXPORTED",
            "OUT of the peer cannot be reached: its transport exports CCL",
        ),
        (crossing, "WRONG_ADDRESS", "no memory that this channel reaches"),
        (
            lambda r: r.channels[0].write(r.main, r.buffer[0:8], r.buffer[8:16]),
            "WRONG_ADDRESS",
            "no memory that this channel reaches",
        ),
        (
            lambda r: r.channels[0].read(
                r.main, *[r.channels[0].remote(r.buffer[k : k + 8]) for k in (0, 8)]
            ),
            "WRONG_ADDRESS",
            "Both sides of a transfer lie at a peer",
        ),
        (
            lambda r: r.main.copy(r.buffer[0:8], r.channels[0].remote(r.buffer[0:8])),
            "WRONG_ADDRESS",
            "Memory of a peer is moved by no channel",
        ),
        (
            lambda r: r.main.wait(r.workers[0].notifies[0]),
            "",
            "Thread 0 waits for a notify of thread 1",
        ),
        (lambda r: r.buffer[0 : 1 << 30], "OUT_OF_BOUNDS", "in CCL"),
        (
            lambda r: r.channels[0].write_reduce(
                r.main, r.channels[0].remote(r.buffer[0:8]), r.buffer[0:8]
            ),
            "",
            "This op has no reduce op",
        ),
        (lambda r: r.channels[0].fence(r.buffer), "", "a thread is one of rank.threads"),
    ],
)
def test_what_cannot_be_recorded_names_the_line(body: Any, finding: str, words: str) -> None:
    with pytest.raises(OrchestrationError) as caught:
        program_of(body, around(), 3)
    assert words in str(caught.value)
    assert caught.value.finding == finding
    assert "test_channels.py" in caught.value.line


def test_a_read_over_rdma_is_refused() -> None:
    def body(rank: Any) -> None:
        channel = rank.channels[0]
        channel.read(rank.main, rank.buffer[0:8], channel.remote(rank.buffer[0:8]))

    with pytest.raises(OrchestrationError, match="A channel over RDMA only writes"):
        program_of(body, around(), topology_of(servers=2, devices=1))


def gather_without(words: str) -> Any:
    """Return the gather without the one line that has these words, compiled from its source."""
    lines = (EXAMPLES / "gather_by_writes.py").read_text("utf-8").splitlines()
    (number,) = [k for k, line in enumerate(lines) if words in line]
    lines[number] = ""
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(lines), "examples/gather.py", "exec"), namespace)
    return namespace["GatherByWrites"]


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("channel.wait(worker, WRITTEN)", "UNMATCHED_POST"),
        ("channel.post(worker, READY)", "WAIT_WITHOUT_POST"),
        ("worker.post(main.notifies[k])", "WAIT_WITHOUT_POST"),
        ("worker.wait(worker.notifies[WAKE])", "STREAM_NOT_STARTED"),
    ],
)
def test_a_missing_notify_is_found(line: str, finding: str) -> None:
    report = hccl.verify(recorded(gather_without(line), op_of("all_gather", 32), 3))
    assert finding in {found.name for found in report}


def test_what_is_asked_for_in_vain_is_named_without_planes() -> None:
    (hint,) = hccl.verify(program_of(lambda rank: None, ChannelResources(threads=(2,)))).findings[
        -1:
    ]
    assert hint.message == "ranks 0 and 1 request 2 notifies between streams each and use none."
    assert hint.hint == "Ask for as many as the tasks use."


def test_the_page_has_the_times_of_two_layers_and_of_one() -> None:
    module, page = sys.modules["reduce_on_two_layers"], EXAMPLES.parents[1] / "docs" / "channels"
    topology = topology_of(preset="ascend950", servers=2, devices=8)
    op = hccl.OpParam("all_reduce", 64 << 20, hccl.DataType.FP32, ReduceOp.SUM)
    for name in ("ReduceOnTwoLayers", "ReduceOnOneLayer"):
        program = hccl.record(getattr(module, name), op, topology)
        us = hccl.simulate(program, topology, network="contended").total_us
        for suffix in (".md", ".zh.md"):
            assert f"{us:,.0f}".replace(",", " ") in page.with_suffix(suffix).read_text("utf-8")
