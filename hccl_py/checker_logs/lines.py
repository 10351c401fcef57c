"""One line of a checker's log: a task, or where ranks and queues begin.

    rank id is 0
    stream/queue id is 0
    [rankId:0, queueId:0, index:0] LocalPostTo[topicId=1]
    [rankId:0, queueId:0, index:1] LocalCopy[srcSlice=DataSlice[BufferType::INPUT, offset=0, ...
    [rankId:0, queueId:0, index:2] Post[remoteRank=7, link=link prototyp=LinkProtoStub::SDMA, ...

What is printed, and what it means, was read in hcomm of August 2026: `Checker::PrintTask` in
test/st/algorithm/utils/checker/checker.cc, the `Describe` functions in task_stub.cc beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from hccl_py.documents.checks import defect, format_value
from hccl_py.enums import LinkKind
from hccl_py.errors import FileError

__all__ = ["LoggedSlice", "LoggedTask", "QueueStart", "RankStart", "looks_like_task", "read_line"]


class LoggedSlice(NamedTuple):
    """Memory of a rank: the buffer by the log's name for it, then bytes."""

    buffer: str
    offset: int
    size: int


class LoggedTask(NamedTuple):
    """A task as the log has it. `src` and `dst` are the memory that it reads and writes, `peer` and
    `link` say with whom and over what, `notify` and `tag` which notify of the peer, `topic` which
    of the rank's own, `dtype` and `reduce` are numbers of HCCL's enumerations.
    """

    name: str
    rank: int
    queue: int
    position: int
    line: int
    peer: int = -1
    link: LinkKind | None = None
    notify: str = ""
    tag: str = ""
    topic: int = -1
    src: LoggedSlice | None = None
    dst: LoggedSlice | None = None
    dtype: int = -1
    reduce: int = -1


class RankStart(NamedTuple):
    """`rank id is N`."""

    rank: int


class QueueStart(NamedTuple):
    """`stream/queue id is N`."""

    queue: int


_NUMBER = r"([0-9]{1,19})"
_ID = r"([0-9]{1,10})"
_SLICE = rf"DataSlice\[BufferType::(\w{{1,20}}), offset={_NUMBER}, size={_NUMBER}\]"
_PEER = rf"remoteRank={_ID}, link=link prototyp=LinkProtoStub::(\w{{1,20}})"
_REDUCES = rf"dataType={_ID}, reduceOp={_ID}"
_SIGNAL = rf"{_PEER}, notifyType=NotifyTypeStub::(\w{{1,20}}), originated tag=(\w{{0,40}})"
_LOCAL = rf"srcSlice={_SLICE}, dstSlice={_SLICE}"
_REMOTE = rf"localSlice={_SLICE}, remoteSlice={_SLICE}"

_FORMS = {
    "LocalCopy": _LOCAL,
    "LocalReduce": rf"{_REDUCES}, {_LOCAL}",
    "LocalPostTo": rf"topicId={_ID}",
    "LocalWaitFrom": rf"topicId={_ID}",
    "Post": _SIGNAL,
    "Wait": _SIGNAL,
    "Read": rf"{_PEER}, {_REMOTE}",
    "Write": rf"{_PEER}, {_REMOTE}",
    "ReadReduce": rf"{_PEER}, {_REDUCES}, {_REMOTE}",
    "WriteReduce": rf"{_PEER}, {_REDUCES}, {_REMOTE}",
}
_PATTERNS = {name: re.compile(form) for name, form in _FORMS.items()}
_TASK = re.compile(rf"\[rankId:{_ID}, queueId:{_ID}, index:{_ID}\] (\w{{1,40}})\[(.*)\]")
_RANK = re.compile(rf"rank id is {_ID}")
_QUEUE = re.compile(rf"stream/queue id is {_ID}")
_BEGUN = re.compile(rb"\[rankId:[0-9]+, queueId:[0-9]+, index:[0-9]+\] [A-Za-z]+\[")

_LINKS = {"SDMA": LinkKind.SDMA, "RDMA": LinkKind.RDMA}
_NOT_READ = {
    "AivTaskStub": "a kernel on vector cores, whose own tasks the log does not print here",
    "CcuGraph": "a graph of the collective communication unit",
    "LocalBatchReduce": "a reduction of the collective communication unit",
}
_HINT = "Was the log cut, or did two processes write into it?"


def looks_like_task(line: bytes) -> bool:
    """Whether a line has a task in it, whole or not."""
    return line.startswith(b"[rankId:") or _BEGUN.search(line) is not None


def read_line(line: bytes, number: int) -> LoggedTask | RankStart | QueueStart | None:
    """Return what a line says; None for one that says nothing about tasks. FileError for a task
    that is broken, or of a kind that is not read.
    """
    if line.startswith(b"rank id is"):
        return RankStart(_header(_RANK, line, number, "rank id is N"))
    if line.startswith(b"stream/queue id is"):
        return QueueStart(_header(_QUEUE, line, number, "stream/queue id is N"))
    if not looks_like_task(line):
        return None
    match = _TASK.fullmatch(_text(line))
    if match is None:
        raise _broken(line, number, "a whole task on a line of its own")
    rank, queue, position = map(int, match.groups()[:3])
    name, members = match[4], match[5]
    if name not in _PATTERNS:
        raise _unknown(name, number)
    found = _PATTERNS[name].fullmatch(members)
    if found is None:
        raise _broken(line, number, f"the members of {name}")
    task = LoggedTask(name, rank, queue, position, number)
    return _MAKERS[name](task, list(found.groups()))


def _header(pattern: re.Pattern[str], line: bytes, number: int, form: str) -> int:
    match = pattern.fullmatch(_text(line))
    if match is None:
        raise _broken(line, number, f'"{form}"')
    return int(match[1])


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode("ascii", "backslashreplace")


def _broken(line: bytes, number: int, expected: str) -> FileError:
    return defect(f"line {number}", expected, format_value(_text(line)[:400]), _HINT)


def _unknown(name: str, number: int) -> FileError:
    what = _NOT_READ.get(name)
    expected = f"a task of {', '.join(_FORMS)}"
    hint = f"It is {what}." if what else "Other versions of HCCL's checker may have more."
    return defect(f"line {number}", expected, name, hint)


def _local(task: LoggedTask, members: list[str]) -> LoggedTask:
    return task._replace(src=_slice(members[-6:-3]), dst=_slice(members[-3:]))


def _local_reduce(task: LoggedTask, members: list[str]) -> LoggedTask:
    return _local(_reducing(task, members), members)


def _topic(task: LoggedTask, members: list[str]) -> LoggedTask:
    return task._replace(topic=int(members[0]))


def _signal(task: LoggedTask, members: list[str]) -> LoggedTask:
    return _linked(task, members)._replace(notify=members[2], tag=members[3])


def _read(task: LoggedTask, members: list[str]) -> LoggedTask:
    here, there = _slice(members[-6:-3]), _slice(members[-3:])
    return _linked(task, members)._replace(src=there, dst=here)


def _write(task: LoggedTask, members: list[str]) -> LoggedTask:
    here, there = _slice(members[-6:-3]), _slice(members[-3:])
    return _linked(task, members)._replace(src=here, dst=there)


def _read_reduce(task: LoggedTask, members: list[str]) -> LoggedTask:
    return _read(_reducing(task, members[2:]), members)


def _write_reduce(task: LoggedTask, members: list[str]) -> LoggedTask:
    return _write(_reducing(task, members[2:]), members)


def _reducing(task: LoggedTask, members: list[str]) -> LoggedTask:
    return task._replace(dtype=int(members[0]), reduce=int(members[1]))


def _linked(task: LoggedTask, members: list[str]) -> LoggedTask:
    peer, proto = int(members[0]), members[1]
    if proto not in _LINKS:
        hint = "Links of the collective communication unit are not read."
        raise defect(f"line {task.line}", "a link of SDMA or RDMA", proto, hint)
    if proto == "RDMA" and task.name.startswith("Read"):
        hint = "Programs push over RDMA: a log with such reads cannot become one."
        raise defect(f"line {task.line}", "no read over RDMA", task.name, hint)
    return task._replace(peer=peer, link=_LINKS[proto])


def _slice(members: list[str]) -> LoggedSlice:
    return LoggedSlice(members[0], int(members[1]), int(members[2]))


_MAKERS: dict[str, Callable[[LoggedTask, list[str]], LoggedTask]] = {
    "LocalCopy": _local,
    "LocalReduce": _local_reduce,
    "LocalPostTo": _topic,
    "LocalWaitFrom": _topic,
    "Post": _signal,
    "Wait": _signal,
    "Read": _read,
    "Write": _write,
    "ReadReduce": _read_reduce,
    "WriteReduce": _write_reduce,
}
