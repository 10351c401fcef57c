"""One line of a checker's log: a task, or where ranks and queues begin, in two dialects.

    hcomm   rank id is 0
            stream/queue id is 0
            [rankId:0, queueId:0, index:1] LocalCopy[srcSlice=DataSlice[BufferType::INPUT, ...
            [rankId:0, queueId:0, index:2] Post[remoteRank=7, link=link prototyp=LinkProtoStub::...
    hccl    rankId is : 0
            threadIdx : 0, taskNum : 3
            rankIdx:0, threadIdx:0, [LocalCopy]:[srcSlice=DataSlice[BufferType::INPUT, ...
            rankIdx:0, threadIdx:0, [Post]:[remoteRank=7, notifyId=12, link=link prototyp=...

What is printed, and what it means, was read in the releases of August 2026: of hcomm
(`Checker::PrintTask` in test/st/algorithm/utils/checker/checker.cc, the `Describe` functions in
task_stub.cc beside it) and of hccl (`Checker::PrintTask` in hccl_verifier/checker.cc, the
`Describe` functions in sim_world/sim_task.cc, both in test/st/algorithm/utils/src).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from hccl_py.documents.checks import defect, format_value
from hccl_py.enums import DataType, LinkKind, ReduceOp
from hccl_py.errors import FileError

Number = TypeVar("Number", DataType, ReduceOp)


class LoggedSlice(NamedTuple):
    """Memory of a rank: the buffer by the log's name for it, then bytes."""

    buffer: str
    offset: int
    size: int


class LoggedTask(NamedTuple):
    """A task as the log has it. `src` and `dst` are the memory that it reads and writes, `peer` and
    `link` say with whom and over what, `notify` and `tag` which notify of the peer, `topic` which
    of the rank's own, or of the two ranks' where it has a number. `position` is -1 where the log
    does not number tasks.
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
    dtype: DataType | None = None
    reduce: ReduceOp | None = None


class RankStart(NamedTuple):
    """The line with which a rank begins."""

    rank: int


class QueueStart(NamedTuple):
    """The line with which a queue begins, and its number of tasks; -1 where the log lacks it."""

    queue: int
    tasks: int = -1


def _slice(side: str, number: str) -> str:
    place = rf"offset=(?P<{side}_offset>{number}), size=(?P<{side}_size>{number})"
    return rf"{side}Slice=DataSlice\[BufferType::(?P<{side}_buffer>\w{{1,20}}), {place}\]"


_ID = "[0-9]{1,10}"
_PEER = rf"remoteRank=(?P<peer>{_ID})"
_LINK = r"link=link prototyp=LinkProtoStub::(?P<link>\w{1,20})"
_NOTIFY = r"notifyType=NotifyTypeStub::(?P<notify>\w{1,20}), originated tag=(?P<tag>\w{0,40})"
_REDUCES = rf"dataType=(?P<dtype>{_ID}), reduceOp=(?P<reduce>{_ID})"
_TOPIC = rf"topicId=(?P<topic>{_ID})"

_DECIMAL = "[0-9]{1,19}"
_HEXADECIMAL = "0x[0-9A-Fa-f]{1,16}"

_LINKS = {"SDMA": LinkKind.SDMA, "RDMA": LinkKind.RDMA}
_DTYPES = {number: DataType.from_number(number) for number in range(13)}
"""Nothing of other types is reduced; the dialects number them in different ways."""
_REDUCTIONS = {int(op): op for op in ReduceOp}

_NOT_READ = {
    "AivTaskStub": "a kernel on vector cores, whose own tasks the log does not print here",
    "LocalBatchReduce": "a reduction of the collective communication unit",
}
_HINT = "Was the log cut, or did two processes write into it?"


def _forms(number: str, signal: str) -> dict[str, re.Pattern[str]]:
    """Return the members in the brackets of every kind of task."""
    local = f"{_slice('src', number)}, {_slice('dst', number)}"
    remote = f"{_slice('local', number)}, {_slice('remote', number)}"
    moves, reduces = f"{_PEER}, {_LINK}, {remote}", f"{_PEER}, {_LINK}, {_REDUCES}, {remote}"
    forms = {
        "LocalCopy": local,
        "LocalReduce": f"{_REDUCES}, {local}",
        "LocalPostTo": _TOPIC,
        "LocalWaitFrom": _TOPIC,
        "Post": signal,
        "Wait": signal,
        "Read": moves,
        "Write": moves,
        "ReadReduce": reduces,
        "WriteReduce": reduces,
    }
    return {name: re.compile(form) for name, form in forms.items()}


@dataclass(frozen=True)
class Dialect:
    """The form of a log: the form of the lines of a rank, of a queue, of a task, each with what
    it begins with; `inside` finds a task behind something else, `first` is the first line of what a
    test prints. `says_passed` tells whether the checker says so when all its checks are passed.
    """

    first: bytes
    rank: tuple[str, re.Pattern[str]]
    queue: tuple[str, re.Pattern[str]]
    task: tuple[bytes, re.Pattern[str]]
    inside: re.Pattern[bytes]
    forms: Mapping[str, re.Pattern[str]]
    says_passed: bool


class LineReader:
    """Reads the lines of a test. Members that stand in many lines, of posts and waits above all,
    are taken apart once, and tasks share what they say.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[tuple[str, str], _Members] = {}

    def read(self, line: bytes, number: int) -> LoggedTask | RankStart | QueueStart | None:
        """Return the item of a line; None for one that is not about tasks. FileError for a task
        that is broken, or of a kind that is not read.
        """
        dialect, text = self._dialect, line.rstrip(b"\r\n").decode("ascii", "backslashreplace")
        if line.startswith(dialect.task[0]):
            return self._task(text, number)
        if text.startswith(dialect.rank[0]):
            found = _matched(dialect.rank[1], text, number, "the number of a rank")
            return RankStart(int(found["rank"]))
        if text.startswith(dialect.queue[0]):
            found = _matched(dialect.queue[1], text, number, "the number of a queue")
            return QueueStart(int(found["queue"]), int(found.get("tasks", -1)))
        return None if dialect.inside.search(line) is None else self._task(text, number)

    def _task(self, text: str, line: int) -> LoggedTask:
        found = _matched(self._dialect.task[1], text, line, "a whole task on a line of its own")
        key = found["name"], found["members"]
        members = self._known.get(key)
        if members is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            members = self._known[key] = _members(self._dialect, *key, line)
        rank, queue, position = found["rank"], found["queue"], found.get("position", -1)
        return LoggedTask(key[0], int(rank), int(queue), int(position), line, *members)


_MOST_KNOWN = 1 << 16


class _Members(NamedTuple):
    """The brackets of a task: the members of `LoggedTask` from `peer` on."""

    peer: int
    link: LinkKind | None
    notify: str
    tag: str
    topic: int
    src: LoggedSlice | None
    dst: LoggedSlice | None
    dtype: DataType | None
    reduce: ReduceOp | None


def _members(dialect: Dialect, name: str, text: str, line: int) -> _Members:
    if name not in dialect.forms:
        what = _NOT_READ.get(name)
        hint = f"It is {what}." if what else "Other versions of HCCL's checker may have more."
        raise defect(f"line {line}", f"a task of {', '.join(dialect.forms)}", name, hint)
    members = _matched(dialect.forms[name], text, line, f"the members of {name}")
    return _Members(
        peer=int(members.get("peer", -1)),
        link=_link(name, members["link"], line) if "link" in members else None,
        notify=members.get("notify", ""),
        tag=members.get("tag", ""),
        topic=int(members.get("topic", -1)),
        src=_memory(members, "remote" if name.startswith("Read") else "local", "src"),
        dst=_memory(members, "local" if name.startswith("Read") else "remote", "dst"),
        dtype=_known(_DTYPES, members, "dtype", "dataType", line),
        reduce=_known(_REDUCTIONS, members, "reduce", "reduceOp", line),
    )


def _matched(pattern: re.Pattern[str], text: str, line: int, expected: str) -> Mapping[str, str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise defect(f"line {line}", expected, format_value(text[:400]), _HINT)
    return match.groupdict()


def _link(name: str, proto: str, line: int) -> LinkKind:
    if proto not in _LINKS:
        hint = "Links of the collective communication unit are not read."
        raise defect(f"line {line}", "a link of SDMA or RDMA", proto, hint)
    if proto == "RDMA" and name.startswith("Read"):
        hint = "Programs push over RDMA: a log with such reads cannot become one."
        raise defect(f"line {line}", "no read over RDMA", name, hint)
    return _LINKS[proto]


def _memory(members: Mapping[str, str], *sides: str) -> LoggedSlice | None:
    for side in sides:
        if f"{side}_buffer" in members:
            offset, size = (int(members[f"{side}_{what}"], 0) for what in ("offset", "size"))
            return LoggedSlice(members[f"{side}_buffer"], offset, size)
    return None


def _known(
    known: Mapping[int, Number], members: Mapping[str, str], member: str, word: str, line: int
) -> Number | None:
    if member not in members:
        return None
    number = int(members[member])
    if number not in known:
        raise _no_such(line, word, number)
    return known[number]


def _no_such(line: int, what: str, number: int) -> FileError:
    hint = "The numbers are those of HCCL's HcclDataType and HcclReduceOp."
    return defect(f"line {line}", f"a {what} that HCCL reduces with", str(number), hint)


_NAME = r"(?P<name>\w{1,40})"

HCOMM = Dialect(
    first=b"rank id is 0",
    rank=("rank id is", re.compile(rf"rank id is (?P<rank>{_ID})")),
    queue=("stream/queue id is", re.compile(rf"stream/queue id is (?P<queue>{_ID})")),
    task=(
        b"[rankId:",
        re.compile(
            rf"\[rankId:(?P<rank>{_ID}), queueId:(?P<queue>{_ID}), index:(?P<position>{_ID})\] "
            rf"{_NAME}\[(?P<members>.*)\]"
        ),
    ),
    inside=re.compile(rb"\[rankId:[0-9]+, queueId:[0-9]+, index:[0-9]+\] [A-Za-z]+\["),
    forms=_forms(_DECIMAL, f"{_PEER}, {_LINK}, {_NOTIFY}"),
    says_passed=True,
)
HCCL = Dialect(
    first=b"rankId is : 0",
    rank=("rankId is :", re.compile(rf"rankId is : (?P<rank>{_ID}) ?")),
    queue=(
        "threadIdx :",
        re.compile(rf"threadIdx : (?P<queue>{_ID}), taskNum : (?P<tasks>{_ID}) ?"),
    ),
    task=(
        b"rankIdx:",
        re.compile(
            rf"rankIdx:(?P<rank>{_ID}), threadIdx:(?P<queue>{_ID}), "
            rf"\[{_NAME}\]:\[(?P<members>.*)\]"
        ),
    ),
    inside=re.compile(rb"rankIdx:[0-9]+, threadIdx:[0-9]+, \["),
    forms=_forms(_HEXADECIMAL, f"{_PEER}, notifyId=(?P<topic>{_ID}), {_LINK}, {_NOTIFY}"),
    says_passed=False,
)
DIALECTS = (HCOMM, HCCL)
"""Every dialect; that of a test is known by its first line."""
