"""Random programs that end: tasks and pairs of post and wait, put on streams in turn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from hccl_py.formats import from_json
from hccl_py.program.program import Program

__all__ = ["programs"]

SIZE = 8
BUFFERS = {"IN": SIZE, "OUT": SIZE, "CCL": SIZE}


@dataclass
class Script:
    """What has been put on streams so far, and which notifies are taken."""

    ranks: int
    streams: int
    kinds: dict[tuple[int, int], str]
    tasks: dict[tuple[int, int], list[list[Any]]] = field(default_factory=dict)
    used: dict[object, int] = field(default_factory=dict)

    def put(self, rank: int, stream: int, task: list[Any]) -> None:
        self.tasks.setdefault((rank, stream), []).append(task)

    def notify(self, key: object, most: int) -> int:
        """Return the next notify of an owner; they are taken in turn and used again."""
        self.used[key] = self.used.get(key, -1) + 1
        return self.used[key] % most

    def sync(self, draw: Any, most: int) -> None:
        """Let one stream wait for another, of the same rank or over a link."""
        rank, stream = draw(_places(self))
        peer, other = draw(_places(self))
        if rank == peer:
            if stream != other:
                index = self.notify((peer, other, stream), most) + most * stream
                self.put(rank, stream, ["local_post", other, index])
                self.put(peer, other, ["local_wait", index])
            return
        index = self.notify((rank, peer), most)
        self.put(rank, stream, ["post", peer, index])
        self.put(peer, other, ["wait", rank, index])

    def move(self, draw: Any) -> None:
        """Put a copy or a reduction, here or over a link."""
        rank, stream = draw(_places(self))
        name = draw(
            st.sampled_from(("copy", "reduce", "read", "read_reduce", "write", "write_reduce"))
        )
        remote = name not in ("copy", "reduce")
        peer = draw(st.sampled_from([r for r in range(self.ranks) if r != rank]))
        if (
            remote
            and name.startswith("read")
            and self.kinds[min(rank, peer), max(rank, peer)] == "rdma"
        ):
            name = name.replace("read", "write")
        size = draw(st.integers(1, SIZE))
        src, dst = (
            [draw(st.sampled_from(list(BUFFERS))), draw(st.integers(0, SIZE - size)), size]
            for _ in range(2)
        )
        op = ["sum"] if "reduce" in name else []
        self.put(rank, stream, [name, *([peer] if remote else []), *op, src, dst])

    def program(self) -> Program:
        tasks: dict[str, dict[str, Any]] = {str(r): {} for r in range(self.ranks)}
        for (rank, stream), listed in self.tasks.items():
            tasks[str(rank)][str(stream)] = listed
        links = [
            {
                "id": k,
                "ranks": list(pair),
                "kind": kind,
                "exports": {str(r): ["IN", "CCL"] for r in pair},
            }
            for k, (pair, kind) in enumerate(self.kinds.items())
        ]
        document = {
            "format": "hccl-py.program/1",
            "op": {"name": "all_reduce", "dtype": "fp32", "count": SIZE // 4, "reduce": "sum"},
            "ranks": self.ranks,
            "buffers": {str(r): BUFFERS for r in range(self.ranks)},
            "links": links,
            "tasks": tasks,
        }
        return from_json(json.dumps(document))


def _places(script: Script) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, script.ranks - 1), st.integers(0, script.streams - 1))


@st.composite
def programs(draw: Any, steps: int = 24) -> Program:
    """A program of 2 to 4 ranks with up to 3 streams, over SDMA and RDMA links."""
    ranks = draw(st.integers(2, 4))
    pairs = [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]
    kinds = {pair: draw(st.sampled_from(("sdma", "rdma"))) for pair in pairs}
    script = Script(ranks, draw(st.integers(1, 3)), kinds)
    most = draw(st.sampled_from((1, 2, 40)))
    for is_sync in draw(st.lists(st.booleans(), min_size=1, max_size=steps)):
        script.sync(draw, most) if is_sync else script.move(draw)
    return script.program()
