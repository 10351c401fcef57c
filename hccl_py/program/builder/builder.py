"""Programs built task by task.

    builder = ProgramBuilder(OpParam("all_gather", 16, DataType.FP32), ranks=2)
    builder.buffer("IN", 64)
    builder.buffer("OUT", 128)
    link = builder.link(0, 1, exports=["IN"])
    for rank in range(2):
        main = builder.stream(rank)
        main.copy(("IN", 0, 64), ("OUT", 64 * rank, 64))
        main.post(link, 0)  # my IN is there
        main.wait(link, 0)
        main.read(link, ("IN", 0, 64), ("OUT", 64 * (1 - rank), 64))
        main.post(link, 1)  # I have read yours
        main.wait(link, 1)
    program = builder.build()

Resources that are not requested are requested as tasks use them. Mistakes that a verifier finds are
built: notifies beyond those requested, slices beyond their buffers, waits that no post ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import LinkKind, ReduceOp
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.builder.columns import LinkColumns, RequestColumns, TaskColumns
from hccl_py.program.builder.layout import program_from
from hccl_py.program.builder.streams import NoteTexts, TaskRow, TaskStream, check_range
from hccl_py.program.limits import LIMIT, MAX_BUFFERS, MAX_NAMES, MAX_NUMBER, MAX_RANKS
from hccl_py.program.program import Program
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.topology.planes import PLANES
from hccl_py.values import IntArray


class _Link(NamedTuple):
    """A link; notifies and exports by side."""

    ranks: tuple[int, int]
    kind: LinkKind
    plane: str
    notifies: tuple[int, int]
    exports: tuple[list[int], list[int]]


class ProgramBuilder:
    """Collects buffers, links, requests and tasks of all ranks, and builds their program.

    `executor` names the algorithm, `notify_names` are the names of the first notifies of every
    link. Every method raises ParameterError for what no program can hold.
    """

    def __init__(
        self,
        op: OpParam,
        ranks: int,
        executor: str = "",
        *,
        notify_names: Sequence[str] = NOTIFY_NAMES,
    ) -> None:
        check_range("a number of ranks", ranks, 1, MAX_RANKS)
        check_range("a number of names", len(notify_names), 0, MAX_NAMES)
        self._op, self._ranks, self._executor = op, ranks, executor
        self._notify_names = tuple(notify_names)
        self._numbers: dict[str, int] = {}
        self._sizes: list[list[int]] = []
        self._links: list[_Link] = []
        self._streams: dict[tuple[int, int], TaskStream] = {}
        self._streams_requested = np.full(ranks, -1)
        self._local: dict[int, Mapping[int, int]] = {}
        self._sides: dict[int, dict[int, int]] = {}
        self._texts = NoteTexts()

    def buffer(self, name: str, size: int | Sequence[int]) -> None:
        """Add a buffer of so many bytes, on all ranks or by rank."""
        if name in self._numbers:
            raise ParameterError(f"There is a buffer {name!r} already.", "Add each buffer once.")
        check_range("a number of buffers", len(self._sizes) + 1, 0, MAX_BUFFERS)
        sizes = [size] * self._ranks if isinstance(size, int) else list(size)
        if len(sizes) != self._ranks:
            hint = "Give one size for all ranks, or one for each."
            raise ParameterError(f"{name} has {len(sizes)} sizes for {self._ranks} ranks.", hint)
        for number in sizes:
            check_range("a size in bytes", number, 0, LIMIT)
        self._numbers[name] = len(self._sizes)
        self._sizes.append(sizes)

    def link(
        self,
        one: int,
        other: int,
        kind: LinkKind = LinkKind.SDMA,
        *,
        plane: str = "flat",
        notifies: int | None = None,
        exports: Iterable[str] | Mapping[int, Iterable[str]] = (),
    ) -> int:
        """Add a link between two ranks; return its number, by which tasks name it.

        Each side has so many `notifies`, or as many as tasks use. `exports` names the buffers that
        the ranks show each other, alike or by rank. Writes over RDMA links become RDMA writes.
        """
        for rank in (one, other):
            self._check_rank(rank)
        if one == other:
            hint = "Inside a rank, use copy, local_post and local_wait."
            raise ParameterError(f"A link joins rank {one} with itself.", hint)
        check_range("a number of notifies", notifies or 0, 0, MAX_NUMBER)
        shown = exports if isinstance(exports, Mapping) else dict.fromkeys((one, other), exports)
        mine, theirs = ([*map(self._buffer, shown.get(rank, ()))] for rank in (one, other))
        count = -1 if notifies is None else notifies
        self._links.append(_Link((one, other), kind, plane, (count, count), (mine, theirs)))
        return len(self._links) - 1

    def request(
        self,
        rank: int,
        *,
        streams: int | None = None,
        local_notifies: Mapping[int, int] | None = None,
        link_notifies: Mapping[int, int] | None = None,
    ) -> None:
        """State the resources that a rank requests: streams (main is one), notifies by the stream
        that owns them, notifies of its side of links by the links' numbers. None: as tasks use it.
        """
        self._check_rank(rank)
        for count in [*(local_notifies or {}).values(), *(link_notifies or {}).values()]:
            check_range("a number of notifies", count, 0, MAX_NUMBER)
        if streams is not None:
            check_range("a number of streams", streams, 1, MAX_NUMBER)
            self._streams_requested[rank] = streams
        if local_notifies is not None:
            for stream in local_notifies:
                check_range("the number of a stream", stream, 0, MAX_NUMBER - 1)
            self._local[rank] = local_notifies
        if link_notifies is not None:
            self._sides[rank] = {self._side(rank, k): n for k, n in link_notifies.items()}

    def stream(self, rank: int, number: int = 0) -> TaskStream:
        """Return a stream of a rank, to append tasks to it; 0 is main."""
        if (rank, number) not in self._streams:
            self._check_rank(rank)
            check_range("the number of a stream", number, 0, MAX_NUMBER - 1)
            reduce = ReduceOp.SUM if self._op.reduce is None else self._op.reduce
            self._streams[rank, number] = TaskStream(
                rank, number, self._texts, self._buffer, self._side, self._op.dtype, reduce
            )
        return self._streams[rank, number]

    def build(self) -> Program:
        """Return the program; `dataclasses.replace` gives it protocols, calls and the like.

        BuildError for reads over RDMA links, and for more notifies or streams than a program has.
        """
        program = program_from(
            self._op,
            tuple(self._numbers),
            np.array(self._sizes, np.int64).reshape(-1, self._ranks).T.copy(),
            self._link_columns(),
            self._request_columns(),
            self._task_columns(),
            tuple(self._texts.labels),
            tuple(self._texts.lines),
        )
        return replace(program, executor=self._executor)

    def _link_columns(self) -> LinkColumns:
        planes = tuple(dict.fromkeys([*PLANES, *(link.plane for link in self._links)]))
        return LinkColumns(
            planes=planes,
            ranks=_pairs(link.ranks for link in self._links),
            plane=np.array([planes.index(link.plane) for link in self._links], np.int64),
            kind=np.array([link.kind for link in self._links], np.int8),
            exports=[side for link in self._links for side in link.exports],
            notifies=_pairs(link.notifies for link in self._links),
            notify_names=self._notify_names,
        )

    def _request_columns(self) -> RequestColumns:
        local = [(r, s, n) for r, counts in self._local.items() for s, n in counts.items()]
        rank, stream, count = np.array(local, np.int64).reshape(-1, 3).T
        sides = [pair for counts in self._sides.values() for pair in counts.items()]
        states_local, states_ends = (
            np.isin(np.arange(self._ranks), list(stating)) for stating in (self._local, self._sides)
        )
        return RequestColumns(
            streams=self._streams_requested,
            states_local=states_local,
            local=(rank, stream, count),
            states_ends=states_ends,
            ends=tuple(_pairs(sides).T),
        )

    def _task_columns(self) -> TaskColumns:
        streams = [stream for _, stream in sorted(self._streams.items())]
        lengths = [len(stream.rows) for stream in streams]
        tasks = TaskColumns(
            np.repeat(np.array([stream.rank for stream in streams], np.int64), lengths),
            np.repeat(np.array([stream.number for stream in streams], np.int64), lengths),
        )
        rows = [row for stream in streams for row in stream.rows]
        if rows:
            for name, column in zip(TaskRow._fields, zip(*rows, strict=True), strict=True):
                getattr(tasks, name)[:] = column
        return tasks

    def _check_rank(self, rank: int) -> None:
        check_range("a rank", rank, 0, self._ranks - 1)

    def _buffer(self, name: str) -> int:
        """Return the number of a buffer."""
        if name not in self._numbers:
            hint = did_you_mean(name, self._numbers)
            raise ParameterError(f"There is no buffer {name!r:.60}.", hint)
        return self._numbers[name]

    def _side(self, rank: int, link: int) -> int:
        """Return a rank's side of a link."""
        if not 0 <= link < len(self._links):
            raise ParameterError(
                f"There is no link {link}.", "link() returns the numbers of links."
            )
        ranks = self._links[link].ranks
        if rank not in ranks:
            raise ParameterError(
                f"Rank {rank} uses link {link}, which joins ranks {ranks[0]} and {ranks[1]}.",
                "A rank uses links of its own.",
            )
        return 2 * link + ranks.index(rank)


def _pairs(rows: Iterable[tuple[int, int]]) -> IntArray:
    """Return rows of two numbers, [rows, 2]."""
    return np.array(list(rows), np.int64).reshape(-1, 2)
