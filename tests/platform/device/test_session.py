"""What the device platform takes, refuses and measures."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the device platform needs torch: pip install hccl-py[torch]")

import torch

from hccl_executors import EXECUTORS
from hccl_platform.device import DevicePlatform
from hccl_platform.device.devices import devices_of
from hccl_py.cli import main
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.measurement import Measurement
from hccl_py.enums import TaskKind
from hccl_py.errors import HcclError, NotSupportedError, OrchestrationError
from hccl_py.plugins.platforms import Asynchronous, OnDevice, Schedule, Timed
from hccl_py.simulator.timeline import Timeline
from tests.platform.device.calls import Call, call_of, fake_platform, measured
from tests.platform.running import expected, whole_numbers
from tests.recording import op_of, recorded
from tests.testing import authors
from tests.trace.perfetto_file import read_perfetto

ABSENT = "npu" if torch.cuda.is_available() else "cuda"


def on_cpu(ranks: int = 4, **settings: Any) -> Communicator:
    return Communicator(ranks, platform="device", device="cpu", buffsize_mb=1, **settings)


def test_the_cpu_takes_arrays_and_tensors() -> None:
    with on_cpu() as comm:
        arrays = [np.arange(9, dtype=np.float32) + rank for rank in range(4)]
        assert comm.all_reduce(arrays).outputs[2].tolist() == np.sum(arrays, axis=0).tolist()
        tensors = [torch.arange(9).to(torch.bfloat16) for _ in range(4)]
        outputs = comm.all_gather(tensors).outputs
        assert all(torch.equal(out, torch.cat(tensors)) for out in outputs)
        for array in arrays:
            array.flags.writeable = False
        assert comm.all_reduce(arrays, "max").outputs[0].tolist() == arrays[3].tolist()
        comm.synchronize()


def test_calls_in_place() -> None:
    with on_cpu() as comm:
        arrays = [np.arange(2000, dtype=np.int32) + rank for rank in range(4)]
        right = sum(arrays)
        comm.all_reduce(arrays, out=arrays)
        assert all((array == right).all() for array in arrays)
        memory = [np.zeros(8, np.float32) for _ in range(4)]
        for rank, mine in enumerate(memory):
            mine[2 * rank : 2 * rank + 2] = rank
        comm.all_gather([m[2 * r : 2 * r + 2] for r, m in enumerate(memory)], out=memory)
        assert all(m.tolist() == [0, 0, 1, 1, 2, 2, 3, 3] for m in memory)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_sums_of_16_bits_are_rounded_as_on_the_emulated_platform(dtype: str) -> None:
    """Values whose sums are not exact, in the order of each executor."""
    op = op_of("all_reduce", 3000, dtype)
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=3000).astype(op.dtype.numpy) for _ in range(4)]
    for name in ("AllReduceComm", "AllReduceMeshOneshotLoopExecutor"):
        found = []
        for platform in ("emulated", "device"):
            with Communicator(4, platform=platform, device="cpu", buffsize_mb=1) as comm:
                found.append(comm.all_reduce(inputs, executor=name).outputs)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(*found, strict=True))


def test_several_rounds_and_types() -> None:
    with on_cpu() as comm:
        for dtype in ("int8", "fp16", "bf16", "int64"):
            op = op_of("all_reduce", 1 << 18, dtype)
            inputs = whole_numbers(op, 4)
            outputs = comm.all_reduce(inputs).outputs
            right = expected(op, inputs)
            assert all(
                out.tobytes() == r.tobytes()
                for out, r in zip(outputs, right, strict=True)
                if r is not None
            )


def test_what_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="takes no schedule"), on_cpu() as comm:
        Communicator(2, platform="device", schedule=Schedule()).all_reduce([np.ones(3)] * 2)
    with pytest.raises(NotSupportedError, match=rf"finds no {ABSENT} device on this machine"):
        devices_of(ABSENT)
    with on_cpu(2) as comm:
        comm.all_reduce([np.ones(3, np.float32)] * 2)
        program = recorded("AllReduceComm", op_of("all_reduce"), 2)
        session = comm._session
        assert session is not None
        short = [np.ones(3, np.float32)] * 2
        with pytest.raises(HcclError, match="input has 12 bytes, the program needs 4000"):
            session.run("tag", program, short, short)
        full = [np.ones(1000, np.float32) for _ in range(2)]
        locked = [array.copy() for array in full]
        locked[1].flags.writeable = False
        with pytest.raises(HcclError, match="writes rank 1's OUT, and that array is read-only"):
            session.run("tag", program, full, locked)
        session.close()
        with pytest.raises(HcclError, match="session is closed"):
            session.run("tag", program, full, full)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NotSupportedError, match="needs torch, which is not installed") as error:
        Communicator(2, platform=DevicePlatform()).all_reduce([np.ones(3, np.float32)] * 2)
    assert "pip install 'hccl-py[torch]'" in error.value.hint


def test_a_program_with_an_open_end_is_refused() -> None:
    with (
        Communicator(
            3, topology="mesh", platform="device", device="cpu", executors=[authors.LeavesEarly]
        ) as comm,
        pytest.raises(OrchestrationError, match="Open end: rank 0 main task"),
    ):
        comm.all_gather([np.ones(3, np.float32)] * 3, executor="LeavesEarly")


def test_sessions_say_what_they_can() -> None:
    with on_cpu(2) as comm:
        assert comm.placement_templates is None
        assert isinstance(comm._session, Timed)
        assert not isinstance(comm._session, OnDevice | Asynchronous)
    with Communicator(2, platform=fake_platform()) as comm:
        assert comm.placement_templates is not None
        assert isinstance(comm._session, Timed)
        assert isinstance(comm._session, OnDevice)
        assert isinstance(comm._session, Asynchronous)


# ---- times ----


def checked_times(timeline: Timeline) -> None:
    """Tasks of a stream follow each other, and no wait ends before its post began."""
    program, start, end = timeline.program, timeline.start_us, timeline.end_us
    tasks = program.tasks
    assert (end >= start).all()
    assert start.min() == 0
    assert (end > start).any()
    last: dict[tuple[int, int], float] = {}
    for row in range(len(tasks)):
        queue = int(tasks.rank[row]), int(tasks.stream[row])
        assert start[row] >= last.get(queue, 0.0)
        last[queue] = end[row]
    waits = np.flatnonzero(tasks.kind == TaskKind.NOTIFY_WAIT)
    posts = program.linked.post_of[waits]
    assert (end[waits] >= start[posts]).all()


def plan_of(comm: Communicator, name: str) -> Any:
    return comm.plan(op_of("all_reduce", 3000), name)


def test_the_host_times_tasks_on_the_cpu() -> None:
    with on_cpu() as comm:
        plan = plan_of(comm, "AllReduceMeshSmallCountExecutor")
        timeline = Measurement(comm, 1, 1, check=False).timeline(plan)
    checked_times(timeline)
    assert timeline.total_us > 0
    assert timeline.usage() is not None
    assert timeline.critical_path() is not None
    assert timeline.waits() is not None


def test_events_time_tasks_on_devices() -> None:
    with Communicator(4, platform=fake_platform(seed=4), buffsize_mb=1) as comm:
        timeline = Measurement(comm, 1, 1, check=False).timeline(plan_of(comm, "AllReduceComm"))
        checked_times(timeline)
        call = Call("AllReduceComm", op_of("all_reduce", 3000), comm.topology)
        assert measured(comm, call).check == "success"


def test_other_platforms_time_no_tasks() -> None:
    with Communicator(2) as comm, pytest.raises(NotSupportedError, match="emulated does not time"):
        Measurement(comm, 1, 0, check=False).timeline(plan_of(comm, "AllReduceComm"))


# ---- the command ----

HERE = ["--ranks", "3", "-b", "4K", "-n", "2", "-w", "1"]


def test_the_command_writes_measured_and_model_times(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "timeline.json"
    options = ["--platform", "device", "--device", "cpu", "--timeline", str(file)]
    assert main(["run", "all_reduce", *HERE, *options]) == 0
    assert "platform device: times are wall time" in capsys.readouterr().out
    events = json.loads(file.read_text("utf-8"))["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {
        f"{what}, {clock}"
        for what in ("program", "rank 0", "rank 1", "rank 2", "links")
        for clock in ("measured on device", "model")
    }


@pytest.mark.parametrize("name", ["timeline.pftrace", "timeline.html"])
def test_times_are_written_as_the_name_says(name: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / name
    options = ["--platform", "device", "--device", "cpu", "--timeline", str(file)]
    assert main(["run", "all_reduce", *HERE, *options]) == 0
    if name.endswith(".html"):
        assert file.read_bytes().startswith(b"<!DOCTYPE html>")
        return
    rows = read_perfetto(file)
    tasks = Counter(row.process for row in rows for one in row.slices if one.category == "task")
    measured = {name: n for name, n in tasks.items() if name.endswith("measured on device")}
    assert len(measured) == 3
    assert sum(measured.values()) == sum(tasks.values()) / 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--device", "cpu"], "--device is about --platform device"),
        (["--platform", "device", "--device", "gpu"], "Setting device has the illegal value 'gpu'"),
        (["--timeline", "x.json"], "emulated does not time single tasks"),
        (["--timeline", "x.txt"], "x.txt"),
        (["--timeline", "x.json", "-e", "8K"], "--timeline is about one program"),
        (["--platform", "device", "--seed", "3"], "takes no schedule"),
    ],
)
def test_what_the_command_refuses(options: list[str], said: str, capsys: Any) -> None:
    assert main(["run", "all_reduce", *HERE, *options]) == 2
    assert said in capsys.readouterr().err


# ---- GPUs ----


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
def test_every_executor_on_cuda() -> None:
    wrong = []
    for executor in EXECUTORS:
        call = call_of(executor)
        if call is not None:
            with call.communicator("device", device="cuda") as comm:
                if measured(comm, call).check != "success":
                    wrong.append(executor.__name__)
                plan = comm.plan(call.op, call.name)
                checked_times(Measurement(comm, 1, 1, check=False).timeline(plan))
    assert not wrong


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
def test_runs_on_cuda_take_their_turn_on_the_current_stream() -> None:
    """Large inputs are written on a stream right before each call and again right behind it."""
    with Communicator(4, platform="device", device="cuda") as comm:
        inputs = [torch.zeros(1 << 22, device="cuda") for _ in range(4)]
        found = []
        with torch.cuda.stream(torch.cuda.Stream()):
            for call in range(5):
                for rank, tensor in enumerate(inputs):
                    tensor.fill_(call + rank)
                outputs = comm.all_reduce(inputs).outputs
                for tensor in inputs:
                    tensor.zero_()
                found.append(torch.stack([output.sum() for output in outputs]))
        comm.synchronize()
        for call, sums in enumerate(found):
            assert sums.tolist() == [(4.0 * call + 6) * (1 << 22)] * 4
