"""What our executors record, in the events of the oracle's models."""

from collections.abc import Mapping

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from tests.executors.fidelity.transports import Event

MOVES = {
    TaskKind.READ,
    TaskKind.READ_REDUCE,
    TaskKind.WRITE,
    TaskKind.WRITE_REDUCE,
    TaskKind.RDMA_WRITE,
    TaskKind.RDMA_WRITE_REDUCE,
}
SIGNALS = {TaskKind.NOTIFY_POST: "post", TaskKind.NOTIFY_WAIT: "wait"}


def events_of(program: Program, rank: int) -> Mapping[int, list[Event]]:
    """Return the events of every stream of a rank, in order, by stream."""
    tasks, transports = program.tasks, program.transports
    found: dict[int, list[Event]] = {}
    for row in range(int(tasks.first[rank]), int(tasks.first[rank + 1])):
        kind, cell = TaskKind(int(tasks.kind[row])), int(tasks.cell[row])
        events = found.setdefault(int(tasks.stream[row]), [])
        if kind in SIGNALS and cell < transports.cells:
            name = transports.name_of(cell % transports.stride)
            events.append((SIGNALS[kind], int(tasks.peer[row]), name))
        elif kind in SIGNALS:
            slots = program.local_notifies.slots
            events.append((SIGNALS[kind], *slots[(cell - transports.cells) % len(slots)]))
        elif kind in MOVES and tasks.size[row]:
            source, to = int(tasks.src_offset[row]), int(tasks.dst_offset[row])
            places = (source,) if source == to else (source, to)
            events.append((kind.spelling, int(tasks.peer[row]), *places, int(tasks.size[row])))
    return found


def moves(events: list[Event]) -> list[Event]:
    """Return the transfers among events."""
    return [event for event in events if event[0] not in SIGNALS.values()]


def travels(events: list[Event]) -> list[Event]:
    """Return what travels, in order: transfers of one kind with one peer that follow each other are
    one, whatever pieces they go in.
    """
    found: list[Event] = []
    for kind, peer, place, size in moves(events):
        if found and found[-1][:2] == (kind, peer):
            found[-1] = (kind, peer, _joined([*found[-1][2], (place, place + size)]))
        else:
            found.append((kind, peer, ((place, place + size),)))
    return found


def _joined(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)
