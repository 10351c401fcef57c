"""The task table, and resources."""

import io
from collections.abc import Iterable

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.trace.steps import bars_in_time, steps_of
from hccl_py.trace.task_list import list_tasks
from hccl_py.trace.terminal import draw_rank, draw_resources, format_each
from hccl_py.trace.units import format_size, format_time
from hccl_py.trace.words import Words


def all_reduce(servers: int, devices: int, count: int = 1 << 18) -> Scene:
    with Communicator(servers=servers, devices=devices) as comm:
        op = OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM)
        return scene_of(comm.plan(op, "AllReduceComm").program, comm.topology)


def text_of(part: RenderableType, width: int) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def plain(lines: Iterable[Text]) -> list[str]:
    return [line.plain for line in lines]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_task_is_listed(width: int) -> None:
    scene = all_reduce(2, 2)
    steps = steps_of(scene, bars_in_time(scene, 1))
    lines = plain(list_tasks(steps, Words.of(scene, unicode=True), width))
    assert sum(line.lstrip().startswith("#") for line in lines) == len(steps)
    assert max(map(len, lines)) <= width
    assert "main, reduce-scatter 1/3" in lines
    assert any("ring.py:" in line for line in lines)


def test_what_a_line_says() -> None:
    scene = all_reduce(2, 1)
    words = Words.of(scene, unicode=True)
    said = [" ".join(words.line(step)).rstrip() for step in steps_of(scene, bars_in_time(scene, 0))]
    assert "copy user_in[0:1M] ▸ CCL_In[0:1M]" in said
    assert "TxAck ▸ rank 1 main #2" in said
    # A copy, two steps of Ack, Ack, write, DataSignal, DataSignal, and the barrier from #11 on.
    assert "RxAck ◂ rank 1 main #11" in said
    assert said.index("TxAck ▸ rank 1 main #12") == 11
    assert "RxDataSignal ◂ rank 1 main #13" in said
    write = next(line for line in said if line.startswith("rdma_write_reduce"))
    assert "▸ rank 1 CCL_In" in write
    assert " at " in write


def test_nothing_to_draw_is_no_error() -> None:
    scene = all_reduce(1, 1, count=0)
    text = text_of(draw_rank(scene, 0, Words.of(scene, unicode=True), 80, 0), 80)
    assert text.startswith("rank 0: ")


def test_ranks_with_the_same_resources_share_a_line() -> None:
    text = text_of(draw_resources(all_reduce(2, 4).program), 80)
    assert text.splitlines()[1].split() == ["ranks", "0-7,", "each", "0", "0", "2", "0"]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([5], "rank 5"),
        ([0, 1, 2, 3], "ranks 0-3, each"),
        ([0, 2, 3, 7], "ranks 0, 2-3, 7, each"),
        (list(range(0, 20, 2)), "ranks 0, 2, 4, 6, 8, 10, ..., each"),
    ],
)
def test_spelling_of_ranks(ranks: list[int], text: str) -> None:
    assert format_each(ranks) == text


def test_units() -> None:
    sizes = (0, 1, 1023, 1024, 1025, 1536, 3 << 20, 5 << 30, 1 << 40)
    spelled = ["0", "1", "1023", "1K", "1025", "1536", "3M", "5G", "1024G"]
    assert [format_size(size) for size in sizes] == spelled
    times = (0.0, 0.00017, 0.005, 9999.994, 12345.67, 1234567.8)
    spelled = ["0.00", "0.0002", "0.01", "9999.99", "12345.7", "1234568"]
    assert [format_time(time) for time in times] == spelled


def test_plain_characters() -> None:
    scene = all_reduce(1, 4)
    drawing = draw_rank(scene, 0, Words.of(scene, unicode=False), 80, 0)
    assert text_of(drawing, 80).isascii()
