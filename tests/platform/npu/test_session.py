"""Sessions of the npu platform on the fake runtime: resources, agreement, errors, refusals."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import hccl_py as hccl
from hccl_platform.lowering.part import part_of
from hccl_platform.npu import NpuPlatform
from hccl_platform.npu.acl import TASK_TIMEOUT, AclError, Library, load
from hccl_platform.npu.driver import TaskError
from hccl_platform.npu.failed_tasks import History, IssuedRun
from hccl_platform.npu.issue import IssueList
from hccl_platform.npu.peer_memory import HANDLES, HUGE_ONLY_P2P, KEYS, LISTED_KEYS, MEMORY_WAYS
from hccl_platform.processes.world import World
from hccl_py.call.config import Config
from hccl_py.errors import HcclError, NotSupportedError
from hccl_py.plugins.platforms import Group, Schedule
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from tests.platform.npu.runtime import Machine
from tests.platform.npu.sessions import (
    KINDS,
    Device,
    live,
    lost_posts,
    open_device,
)
from tests.platform.processes.children import Ended, children
from tests.testing.authors import Turns, WokenTwice

pytestmark = pytest.mark.npu

LIMIT_S = 2
"""How long a wait may take where it will take too long."""

SUM = hccl.ReduceOp.SUM


def program_of(op: str, ranks: int, count: int, executor: str | None = None) -> Program:
    """Record a call with fp32 sums on a server of NPUs; an all-reduce, of which all ranks send and
    wait on several streams, unless another executor is asked for.
    """
    reduce = SUM if "reduce" in op else None
    executor = executor or {"all_reduce": "AllReduceMeshExecutor"}.get(op)
    with hccl.Communicator(ranks) as comm:
        return comm.plan(hccl.OpParam(op, count, hccl.DataType.FP32, reduce), executor).program


def in_devices(
    ranks: int,
    body: Callable[[Device], Any],
    folder: Path,
    *,
    devices: int | None = None,
    **knobs: object,
) -> dict[int, Ended]:
    """Call a function in a process for every rank, with its session open."""
    limit_s = int(str(knobs.pop("limit_s", 20)))
    with Machine(devices or ranks) as machine:

        def run(world: World) -> Any:
            return body(open_device(world, machine, knobs, limit_s=limit_s))

        with children(ranks, run, folder) as started:
            return started.wait()


def values_of(ended: Mapping[int, Ended]) -> list[Any]:
    for rank, each in ended.items():
        assert not each.error, f"rank {rank}: {each.error}: {each.message}"
    return [each.value for each in ended.values()]


def summed(device: Device, program: Program, tag: str, into: Any, out: Any) -> bool:
    """Run an all-reduce of ramps; whether every element is the sum over all ranks."""
    ramp = np.arange(into.size, dtype=np.float32)
    device.put(into, ramp + device.world.rank)
    device.session.run(tag, program, [into], [out])
    device.session.synchronize()
    ranks = device.world.size
    return bool((out == ranks * ramp + ranks * (ranks - 1) / 2).all())


def test_no_handle_count_grows_in_four_hundred_ops_of_ten_tags(tmp_path: Path) -> None:
    programs = [program_of("all_reduce", 4, 16 * (1 + k)) for k in range(10)]

    def body(device: Device) -> tuple[Any, ...]:
        into, out = (device.memory(160, np.float32) for _ in range(2))
        is_right, counts = True, []
        for turn in range(40):
            for k, program in enumerate(programs):
                count = 16 * (1 + k)
                if turn % 20 == 0:
                    is_right &= summed(device, program, f"tag {k}", into[:count], out[:count])
                else:
                    device.session.run(f"tag {k}", program, [into[:count]], [out[:count]])
            counts.append(live())
        device.session.synchronize()
        notifies, lost = live()["notifies"], lost_posts()
        device.session.close()
        device.streams.end()
        is_steady = (counts[1], counts[21]) == (counts[19], counts[39])
        return is_right, is_steady, notifies, lost, live(), device.made

    for is_right, is_steady, notifies, lost, left, made in values_of(in_devices(4, body, tmp_path)):
        assert is_right
        assert is_steady
        assert notifies > 10
        assert lost == 0
        assert left == dict.fromkeys(KINDS, 0) | {"memory": made}


@pytest.mark.parametrize("ipc", ["free", "list", "handles"])
def test_what_the_machine_has_is_found_out(ipc: str, tmp_path: Path) -> None:
    found = values_of(in_devices(2, lambda d: d.session.capabilities.document(), tmp_path, IPC=ipc))
    assert found[0] == found[1]
    ways = {"free": KEYS, "list": LISTED_KEYS, "handles": HANDLES}
    assert found[0]["memory"] == ways[ipc]
    assert found[0]["notifies"] == (LISTED_KEYS if ipc == "list" else KEYS)
    assert "sum fp32" in found[0]["inline_reduce"]
    assert len(found[0]["inline_reduce"]) == 18


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"IPC": "handles"}, id="boards attached by PCIe"),
        pytest.param({"IMPORT_FLAGS": 0}, id="imports without flags"),
        pytest.param({"REENABLE": 0}, id="access that is enabled already"),
    ],
)
def test_boards_that_refuse(knobs: dict[str, object], tmp_path: Path) -> None:
    """Two communicators of a process run right and leave nothing."""
    programs = [program_of("all_reduce", 4, count) for count in (64, 5000)]

    with Machine(4) as machine:

        def run(world: World) -> tuple[Any, ...]:
            found, made = [], 0
            opened = [open_device(world, machine, knobs, name=n) for n in ("first", "second")]
            for device in opened:
                into, out = (device.memory(5000, np.float32) for _ in range(2))
                for program in programs:
                    count = program.op.count
                    found.append(summed(device, program, "tag", into[:count], out[:count]))
            for device in opened:
                device.session.close()
                device.streams.end()
                made += device.made
            return found, live() == dict.fromkeys(KINDS, 0) | {"memory": made}

        with children(4, run, tmp_path) as started:
            assert values_of(started.wait()) == [([True] * 4, True)] * 4


def test_processes_that_see_one_device_each(tmp_path: Path) -> None:
    """Every process counts its own from 0; the numbers on the board tell them apart."""
    program, boards = program_of("all_reduce", 3, 64), (5, 0, 2)

    def opened(world: World, machine: Machine, visible: int) -> Device:
        return open_device(world, machine, {"VISIBLE": visible}, number=0)

    def run(world: World) -> bool:
        device = opened(world, machine, boards[world.rank])
        into, out = (device.memory(64, np.float32) for _ in range(2))
        return summed(device, program, "tag", into, out)

    with Machine(8) as machine:
        with children(3, run, tmp_path) as started:
            assert values_of(started.wait()) == [True] * 3
        (tmp_path / "again").mkdir()
        with children(2, lambda w: opened(w, machine, 4) and None, tmp_path / "again") as started:
            messages = {ended.message for ended in started.wait().values()}
    assert messages == {"Ranks 0 and 1 are both on NPU 4."}


@pytest.mark.parametrize("poor", [(), (1,), (0, 1)])
def test_memory_for_peers_without_a_pool_of_its_own(poor: tuple[int, ...], tmp_path: Path) -> None:
    """Where one rank has none, all take the common pool, and everything runs."""
    program = program_of("all_reduce", 2, 64)
    malloc = Library.made

    def refuses(library: Library, name: str, *arguments: object) -> int:
        if name == "aclrtMalloc" and arguments[1] == HUGE_ONLY_P2P:
            raise AclError(name, 207000, "no such policy")
        return malloc(library, name, *arguments)

    with Machine(2) as machine:

        def run(world: World) -> tuple[bool, bool]:
            made = refuses if world.rank in poor else malloc
            with patch.object(Library, "made", made):
                device = open_device(world, machine)
                into, out = (device.memory(64, np.float32) for _ in range(2))
                is_right = summed(device, program, "tag", into, out)
            return device.session.capabilities.p2p_malloc, is_right

        with children(2, run, tmp_path) as started:
            assert values_of(started.wait()) == [(not poor, True)] * 2


def test_a_machine_that_reduces_in_its_own_memory_only(tmp_path: Path) -> None:
    found = values_of(
        in_devices(2, lambda d: len(d.session.inline_reductions), tmp_path, REDUCE="local")
    )
    assert found == [0, 0]


def test_copies_are_cut_where_the_machine_takes_no_more(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 10_000)

    def body(device: Device) -> bool:
        device.driver.most_bytes = 4096
        into, out = (device.memory(10_000, np.float32) for _ in range(2))
        into[:] = np.arange(10_000) + device.world.rank
        device.session.run("tag", program, [into], [out])
        device.session.synchronize()
        return bool((out == 2 * np.arange(10_000) + 1).all())

    assert all(values_of(in_devices(2, body, tmp_path, MOST_BYTES=4096)))


def test_scratch_grows_and_peers_open_it_anew(tmp_path: Path) -> None:
    """A program of the same tag that needs more replaces what peers have open."""
    executor = "AllReduceMeshSmallCountExecutor"
    programs = [program_of("all_reduce", 4, count, executor) for count in (64, 4096, 1 << 15)]

    def body(device: Device) -> list[bool]:
        into, out = (device.memory(1 << 15, np.float32) for _ in range(2))
        found = []
        for program in (*programs, *programs):
            count = program.op.count
            found.append(summed(device, program, "tag", into[:count], out[:count]))
        device.session.close()
        return found

    for found in values_of(in_devices(4, body, tmp_path)):
        assert found == [True] * 6


def test_two_sessions_of_a_process_and_two_streams_of_a_caller(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 4096)

    def body(device: Device) -> tuple[bool, ...]:
        into, out = (device.memory(4096, np.float32) for _ in range(2))
        first = summed(device, program, "tag", into, out)
        device.streams.current = device.driver.make_stream()  # it comes after the other one
        return first, summed(device, program, "tag", into, out)

    assert values_of(in_devices(2, body, tmp_path, DELAY_US=300)) == [(True, True)] * 2


def test_a_program_that_nobody_holds_is_let_go(tmp_path: Path) -> None:
    def body(device: Device) -> bool:
        program = program_of("all_reduce", 2, 64)
        seen = weakref.ref(program)
        into, out = (device.memory(64, np.float32) for _ in range(2))
        assert summed(device, program, "tag", into, out)
        del program
        gc.collect()
        return seen() is None

    assert values_of(in_devices(2, body, tmp_path)) == [True, True]


def test_ranks_that_run_different_programs_are_told(tmp_path: Path) -> None:
    programs = [program_of("all_reduce", 2, count) for count in (64, 128)]

    def body(device: Device) -> None:
        program = programs[device.world.rank]
        arrays = [device.memory(program.op.count, np.float32) for _ in range(2)]
        device.session.run("tag", program, [arrays[0]], [arrays[1]])

    ended = in_devices(2, body, tmp_path)
    assert {each.error for each in ended.values()} == {"MismatchError"}
    assert "128 fp32" in ended[0].message
    assert "Rank 0 calls all_reduce of 64 fp32" in ended[0].message
    assert "rank 1" in ended[0].message
    assert ended[0].code == "EI0005"


@pytest.mark.parametrize("kind", ["lost", "copy", "silent"])
def test_a_fault_ends_all_ranks_and_says_where(kind: str, tmp_path: Path) -> None:
    program = program_of("all_reduce", 4, 1 << 14)

    def body(device: Device) -> None:
        arrays = [device.memory(1 << 14, np.float32) for _ in range(2)]
        for _ in range(40):
            device.session.run("tag", program, [arrays[0]], [arrays[1]])
            device.session.synchronize()

    fault = f"device=2:kind={kind}:after=90"
    ended = in_devices(4, body, tmp_path, FAULT=fault, limit_s=LIMIT_S)
    assert all(each.error for each in ended.values()), ended
    assert {each.error for each in ended.values()} <= {"ExecTimeoutError", "PeerLostError"}
    told = " ".join(each.message for each in ended.values())
    assert "task" in told
    assert any(f"rank {rank}" in told for rank in range(4))
    if kind == "copy":
        assert "copy of" in told or "reduction of" in told
        assert "error" in told
    if kind == "silent":
        assert "wait of notify" in told
        assert "from rank" in told
        assert {each.code for each in ended.values()} >= {"EI0002"}


def test_a_session_that_has_failed_says_so(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 64)

    def body(device: Device) -> list[str]:
        arrays = [device.memory(64, np.float32) for _ in range(2)]
        texts = []
        for _ in range(2):
            try:
                device.session.run("tag", program, [arrays[0]], [arrays[1]])
                device.session.synchronize()
            except HcclError as error:
                texts.append(error.message)
        device.session.close()
        device.session.close()
        return texts

    for first, second in values_of(
        in_devices(2, body, tmp_path, FAULT="device=1:kind=silent:after=0", limit_s=1)
    ):
        assert second == f"The session has failed: {first}"


def test_a_session_that_missed_a_rank_at_its_first_run_says_so(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 64)

    def body(device: Device) -> list[str]:
        if device.world.rank == 1:
            device.session.abort(HcclError("Rank 1 gives up.", "Start anew."))
            return []
        arrays = [device.memory(64, np.float32) for _ in range(2)]
        texts = []
        for _ in range(2):
            with pytest.raises(HcclError) as caught:
                device.session.run("tag", program, [arrays[0]], [arrays[1]])
            texts.append(caught.value.message)
        return texts

    told, _ = values_of(in_devices(2, body, tmp_path))
    assert told[0].startswith("Rank 1 has failed: Rank 1 gives up.")
    assert told[1] == f"The session has failed: {told[0]}"


def test_the_cause_is_told_before_what_follows_from_it() -> None:
    program = program_of("all_reduce", 4, 1 << 14)
    part = part_of(program, 3)
    slots = {*part.moves.dst.tolist(), *part.moves.src.tolist()}
    places = dict.fromkeys(slots, (0, 0))
    issued = IssueList.of(program, part, places, dict.fromkeys(part.cells.values(), 0), 1 << 32)
    streams = tuple(range(100, 100 + issued.streams))
    history = History(3, limit_s=2)
    run = IssuedRun(issued, "tag", streams, list(range(len(issued.entries))))
    history.begin(run)
    waits: dict[str, list[tuple[int, int]]] = {"own": [], "other": []}
    for at, entry in enumerate(issued.entries):
        if entry.dst is None and not entry.is_post:
            number = next(t.number for t in part.streams[entry.stream] if t.place == entry.place)
            cell = part.cells[number]
            waits["own" if cell.poster == 3 else "other"].append((at, streams[entry.stream]))
    history.note(TaskError(*waits["own"][0], TASK_TIMEOUT))
    assert history.has_failed
    later = threading.Timer(0.05, history.note, [TaskError(*waits["other"][0], TASK_TIMEOUT)])
    later.start()
    assert "from rank" in history.error("").message
    later.join()


def test_memory_and_keys_that_are_missing_are_refused(tmp_path: Path) -> None:
    with Machine(2) as machine:

        def body(world: World) -> None:
            open_device(world, machine, {"IPC": "none"})

        with children(2, body, tmp_path) as started:
            ended = started.wait()
    assert {each.error for each in ended.values()} == {"NotSupportedError"}
    assert "Processes cannot open each other's memory" in ended[0].message
    assert all(f"{way}: aclrt" in ended[0].message for way in MEMORY_WAYS)
    assert "--pid=host" in ended[0].hint


def test_devices_that_do_not_reach_each_other_are_refused(tmp_path: Path) -> None:
    with (
        Machine(2) as machine,
        children(2, lambda world: open_device(world, machine, {"P2P": 0}), tmp_path) as started,
    ):
        ended = started.wait()
    assert {each.error for each in ended.values()} == {"NotSupportedError"}
    assert "The NPUs 0, 1 do not all reach each other" in ended[0].message


def test_a_machine_without_notifies_is_refused(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 64)

    def body(device: Device) -> None:
        arrays = [device.memory(64, np.float32) for _ in range(2)]
        device.session.run("tag", program, [arrays[0]], [arrays[1]])

    ended = in_devices(2, body, tmp_path, NOTIFIES=1)
    assert "NotSupportedError" in {each.error for each in ended.values()}
    assert any("has no notify left" in each.message for each in ended.values())


def test_arrays_of_another_size_are_refused(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 64)

    def body(device: Device) -> None:
        arrays = [device.memory(65, np.float32) for _ in range(2)]
        device.session.run("tag", program, [arrays[0]], [arrays[1]])

    ended = in_devices(2, body, tmp_path)
    assert ended[0].message == "Rank 0's input has 260 bytes, the program needs 256."


# ---- programs that are refused at their first run, before anything is made for them ----


class Computes(Turns):
    """Has a kernel of its author's."""

    def end(self, rank: Any) -> None:
        rank.main.compute(5.0)


class LeavesAStream(WokenTwice):
    """Nobody waits for what the sub stream does."""

    def end(self, rank: Any) -> None:
        rank.main.post(rank.notifies[0])
        rank.subs[0].wait(rank.notifies[0])
        rank.subs[0].copy(rank.ccl_out.head(rank.user_in.size), rank.user_in)


class FromInputs(Turns):
    """Reads its peers' inputs, as executors of graph mode may."""

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def step(self, rank: Any, to: Any, frm: Any, staged: Any, recv: Any) -> None:
        super().step(rank, to, frm, rank.user_in, recv)


def recorded(executor: Any, mode: hccl.Mode = hccl.Mode.OP_BASE) -> Program:
    with hccl.Communicator(2) as comm:
        op = hccl.OpParam("all_gather", 64, hccl.DataType.FP32, mode=mode)
        return comm.plan(op, executor).program


def reducing() -> Program:
    with hccl.Communicator(2) as comm:
        op = hccl.OpParam("all_reduce", 1 << 16, hccl.DataType.FP32, SUM)
        return comm.plan(op, "AllReduceMeshOpbaseLoopExecutor").program


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: recorded(Computes), "has compute tasks"),
        (lambda: replace(recorded(Computes), counts_posts=True), "on NPUs notifies hold one bit"),
        (
            lambda: replace(recorded(Computes), alternating=("CCL_IN",)),
            "has buffers that alternate, and on NPUs programs keep their memory",
        ),
        (lambda: recorded(LeavesAStream), "Open end"),
        (lambda: recorded(FromInputs, hccl.Mode.GRAPH), "touches user memory of rank"),
        (reducing, "reduces fp32 by sum on the way, and these NPUs do not"),
    ],
)
def test_programs_that_npus_cannot_run(
    make: Callable[[], Program], words: str, tmp_path: Path
) -> None:
    program = make()
    sizes = [int(n) for n in program.buffer_sizes[0, :2]]

    def body(device: Device) -> tuple[str, bool, dict[str, int], dict[str, int]]:
        before = live(("notifies", "memory"))
        into, out = (device.memory(size, np.uint8) for size in sizes)
        with pytest.raises(HcclError) as caught:
            device.session.run("tag", program, [into], [out])
        return caught.value.message, bool(caught.value.hint), before, live(("notifies", "memory"))

    for message, is_hinted, before, after in values_of(
        in_devices(2, body, tmp_path, REDUCE="local")
    ):
        assert words in message
        assert is_hinted
        assert after == before | {"memory": before["memory"] + 2}


def test_a_first_run_while_a_graph_is_captured(tmp_path: Path) -> None:
    program = program_of("all_reduce", 2, 64)

    def body(device: Device) -> tuple[str, bool]:
        into, out = (device.memory(64, np.float32) for _ in range(2))
        captured = patch.object(device.driver, "is_captured", return_value=True)
        with captured, pytest.raises(NotSupportedError) as caught:
            device.session.run("tag", program, [into], [out])
        is_right = summed(device, program, "tag", into, out)
        with captured:  # what is known may be
            return caught.value.message, is_right and summed(device, program, "tag", into, out)

    for message, is_right in values_of(in_devices(2, body, tmp_path)):
        assert "runs for the first time while a graph is captured" in message
        assert is_right


def test_two_ranks_on_one_device(tmp_path: Path) -> None:
    with Machine(2) as machine:

        def body(world: World) -> None:
            open_device(world, machine, number=1)

        with children(2, body, tmp_path) as started:
            ended = started.wait()
    assert {each.message for each in ended.values()} == {"Ranks 0 and 1 are both on NPU 1."}


# ---- what is refused before anything is loaded ----

WORLD = Group.world(2)


@pytest.mark.parametrize(
    ("topology", "settings", "schedule", "words"),
    [
        ({"ranks": 2}, {}, Schedule(1), "takes no schedule"),
        ({"ranks": 2}, {"mode": "graph"}, None, "graph mode"),
        ({"ranks": 2}, {"zero_copy": True}, None, "no user memory is registered"),
        ({"servers": 2, "devices": 2}, {}, None, "runs inside one server"),
    ],
)
def test_what_npus_are_not_driven_for(
    topology: dict[str, Any], settings: dict[str, Any], schedule: Schedule | None, words: str
) -> None:
    found = topology_of(**topology)
    with pytest.raises(NotSupportedError, match=words) as caught:
        NpuPlatform().open(found, Config.load({}, **settings), schedule, Group.world(found.size))
    assert caught.value.hint


def test_a_machine_without_torch_npu_is_told_what_to_install() -> None:
    pytest.importorskip("torch")
    try:
        import torch_npu  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("torch_npu is installed here")
    with pytest.raises(NotSupportedError, match="needs torch and torch_npu") as caught:
        NpuPlatform().open(topology_of(2), Config.load({}), None, WORLD)
    assert "docs/ascend.md" in caught.value.hint


def test_a_machine_without_cann_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=r"CANN's runtime cannot be loaded"):
        load(str(tmp_path / "libascendcl.so"))


def test_a_runtime_that_lacks_a_function_is_too_old() -> None:
    with pytest.raises(AttributeError):
        Library("libm.so.6")
    with pytest.raises(NotSupportedError, match="CANN's runtime is too old"):
        load("libm.so.6")
