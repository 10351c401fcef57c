"""What one rank does, stream by stream, in the words of HCCL's sources."""

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program

_NOTIFIES = ("ack", "data_signal", "data_ack")
_PREFIX = {TaskKind.NOTIFY_POST: "tx", TaskKind.NOTIFY_WAIT: "rx"}


def streams_of(program: Program, rank: int) -> list[str]:
    """Return the tasks of main and of every sub stream that has some, such as `copy, tx_ack 1,
    rx_data_signal 1` with peer 1; `post` and `wait` are local, `nothing` is a copy of no bytes.
    """
    tasks, stride = program.tasks, program.transports.stride
    found: dict[int, list[str]] = {0: []}
    for row in range(int(tasks.first[rank]), int(tasks.first[rank + 1])):
        kind, peer = TaskKind(int(tasks.kind[row])), int(tasks.peer[row])
        if kind in _PREFIX:
            if peer < 0:
                text = "post" if kind is TaskKind.NOTIFY_POST else "wait"
            else:
                text = f"{_PREFIX[kind]}_{_NOTIFIES[int(tasks.cell[row]) % stride]} {peer}"
        elif not tasks.size[row]:
            text = "nothing"
        else:
            text = kind.name.lower() + (f" {peer}" if peer >= 0 else "")
        found.setdefault(int(tasks.stream[row]), []).append(text)
    return [", ".join(found[stream]) for stream in sorted(found)]
