"""Timelines in Chrome's format: every task once, on its rank and stream; arrows from posts."""

import json
from pathlib import Path

import pytest

from hccl_py.enums import TaskKind
from hccl_py.errors import HcclError
from hccl_py.topology import topology_of
from hccl_py.trace.chrome import check_timeline, chrome_document, write_timeline
from hccl_py.trace.steps import Trace
from tests.recording import op_of, recorded

PROGRAM = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 3)
TRACE = Trace.of(PROGRAM, topology_of(3))


def test_every_task_stands_on_its_rank_and_stream() -> None:
    events = chrome_document({"model": TRACE})["traceEvents"]
    tasks = [event for event in events if event["ph"] == "X"]
    view = PROGRAM.tasks
    assert [(e["pid"], e["tid"]) for e in tasks] == list(
        zip(view.rank.tolist(), view.stream.tolist(), strict=True)
    )
    assert [e["ts"] for e in tasks] == TRACE.timeline.start_us.tolist()
    read = next(e for e in tasks if e["name"] == "read")
    assert read["args"]["bytes"] == 4000
    assert read["args"]["what"].startswith("read rank ")
    assert read["args"]["source"].startswith("all_gather/mesh_opbase.py:")
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert names == ["rank 0, model", "rank 1, model", "rank 2, model"]
    threads = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert threads == {"main", "sub 0", "sub 1"}


def test_two_traces_of_a_rank_stand_together() -> None:
    events = chrome_document({"measured": TRACE, "model": TRACE})["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert [names[pid] for pid in sorted(names)][:3] == [
        "rank 0, measured",
        "rank 0, model",
        "rank 1, measured",
    ]


def test_every_wait_has_an_arrow_from_its_post() -> None:
    events = chrome_document({"a": TRACE, "b": TRACE})["traceEvents"]
    begun = {e["id"]: e for e in events if e["ph"] == "s"}
    ended = {e["id"]: e for e in events if e["ph"] == "f"}
    posts = int((PROGRAM.tasks.kind == TaskKind.NOTIFY_POST).sum())
    assert begun.keys() == ended.keys()
    assert len(begun) == 2 * posts
    assert all(begun[key]["ts"] <= ended[key]["ts"] for key in begun)
    assert all(begun[key]["pid"] % 2 == ended[key]["pid"] % 2 for key in begun)


def test_the_file_is_json(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    check_timeline(path)
    write_timeline(path, {"model": TRACE})
    assert json.loads(path.read_text("utf-8")) == chrome_document({"model": TRACE})
    with pytest.raises(HcclError, match="json"):
        check_timeline(tmp_path / "timeline.txt")
