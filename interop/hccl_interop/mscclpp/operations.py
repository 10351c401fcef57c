"""The operations: the chunks that each of them takes, and those that are packets.

A packet is data with a flag beside it: its reader waits until the flag is that of the call. Packets
lie in scratch, and take twice the room. Source: microsoft/mscclpp 0.9.0, execution_kernel.hpp.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_OPS = 64
"""Operations that the executor takes of a threadblock."""

NONE = 1 << 8
"""No chunks of a side are packets."""


class OpForm(NamedTuple):
    """The chunks of an operation: `src` and `dst` are patterns over its chunks, which are local
    (`l`), a peer's (`r`) or a switch's (`w`). From `src_packets` and `dst_packets` on they are
    packets.
    """

    words: str
    src: str = ""
    dst: str = ""
    src_packets: int = NONE
    dst_packets: int = NONE
    reduces: bool = False
    types: tuple[str, ...] = ()
    """The types of channels over which the executor does it, where it has any."""

    @property
    def moves(self) -> bool:
        """True if it moves data."""
        return bool(self.dst)

    @property
    def has_packets(self) -> bool:
        """True if it reads or writes packets."""
        return min(self.src_packets, self.dst_packets) < NONE


_BOTH, _MEMORY, _PORT, _SWITCH = ("memory", "port"), ("memory",), ("port",), ("switch",)

FORMS = {
    "nop": OpForm("threads meet"),
    "barrier": OpForm("threadblocks meet"),
    "signal": OpForm("signal", types=_BOTH),
    "rlxsignal": OpForm("relaxed signal", types=_BOTH),
    "wait": OpForm("wait", types=_BOTH),
    "rlxwait": OpForm("relaxed wait", types=_BOTH),
    "flush": OpForm("flush", types=_PORT),
    "sem_acquire": OpForm("acquire a semaphore"),
    "sem_release": OpForm("release a semaphore"),
    "pipeline": OpForm("pipeline"),
    "copy": OpForm("copy", "l", "l"),
    "put": OpForm("put", "l+", "r+", types=_BOTH),
    "pws": OpForm("put with signal", "l+", "r+", types=_BOTH),
    "pwsf": OpForm("put with signal and flush", "l+", "r+", types=_BOTH),
    "get": OpForm("get", "r+", "l+", types=_MEMORY),
    "re": OpForm("reduce", "l+", "l", reduces=True),
    "res": OpForm("reduce, send", "l+", "lr*", reduces=True, types=_MEMORY),
    "rre": OpForm("read, reduce", "lr*", "l", reduces=True, types=_MEMORY),
    "rres": OpForm("read, reduce, send", "lr*", "lr*", reduces=True, types=_MEMORY),
    "ppkt": OpForm("put packets", "l+", "r+", dst_packets=0, types=_BOTH),
    "rppkt": OpForm("read packets, put them", "l", "r+", 0, 0, types=_BOTH),
    "cpkt": OpForm("copy to packets", "l", "l", dst_packets=0),
    "upkt": OpForm("unpack packets", "l", "l", src_packets=0),
    "repkt": OpForm("reduce packets", "l+", "l", src_packets=1, reduces=True),
    "recpkt": OpForm("reduce packets, copy", "l+", "ll", 1, 1, reduces=True),
    "respkt": OpForm("reduce packets, send", "l+", "lr*", 1, 1, reduces=True, types=_MEMORY),
    "recspkt": OpForm(
        "reduce packets, copy, send", "l+", "llr*", 1, 1, reduces=True, types=_MEMORY
    ),
    "glres": OpForm("load, reduce, store by a switch", "w", "w", reduces=True, types=_SWITCH),
    "gstore": OpForm("store by a switch", "l", "w", types=_SWITCH),
    "gstorepkt": OpForm("store packets by a switch", "l", "w", 0, 0, types=_SWITCH),
    "glre": OpForm("load, reduce by a switch", types=_SWITCH),
}
"""Every operation by its name in a plan; `glre` is the DSL's, and the executor does not know it."""
