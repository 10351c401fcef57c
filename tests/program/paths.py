"""What comes after what in a program, by definition: all steps, and all paths."""

from collections import defaultdict

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program

Node = tuple[str, int]
"""A task on its stream, `task`, or what it put on an RDMA connection, `arrival`."""


def steps_from(program: Program) -> dict[Node, set[Node]]:
    """What comes right after what."""
    tasks, transports = program.tasks, program.transports
    ahead: dict[Node, set[Node]] = defaultdict(set)
    last: dict[tuple[str, int, int], Node] = {}
    for row in program.linked.order.tolist():
        node: Node = "task", row
        kind, end = TaskKind(int(tasks.kind[row])), int(tasks.end[row])
        stream = "stream", int(tasks.rank[row]), int(tasks.stream[row])
        if stream in last:
            ahead[last[stream]].add(node)
        last[stream] = node
        pushes = kind in (TaskKind.NOTIFY_POST, TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE)
        if pushes and end >= 0 and transports.is_rdma[end]:
            arrival: Node = "arrival", row
            ahead[node].add(arrival)
            connection = "connection", end, 0
            if connection in last:
                ahead[last[connection]].add(arrival)
            last[connection] = arrival
        if kind is TaskKind.NOTIFY_WAIT:
            post = int(program.linked.post_of[row])
            ahead["arrival" if ("arrival", post) in ahead["task", post] else "task", post].add(node)
    return ahead


def reached(ahead: dict[Node, set[Node]], start: Node) -> set[Node]:
    found, waiting = {start}, [start]
    while waiting:
        for node in ahead.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found
