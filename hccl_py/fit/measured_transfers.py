"""Programs of one transfer between two devices, for times that were measured point to point.

    read     the peer posts Ack, the rank waits for it and reads     over SDMA
    write    the peer posts Ack, the rank waits for it and writes    over SDMA
    either   one rank writes, and posts DataSignal behind it         over RDMA, which only pushes

So a time is α and the bytes at the rate of that way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, LinkKind
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.builder import ProgramBuilder
from hccl_py.program.program import Program
from hccl_py.program.transports import ACK, DATA_SIGNAL
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.topology.networks.product import MEDIA

KINDS = ("read", "write")

_PACKAGE = 2
"""Devices between which a link of the package's own (SIO) may lie."""


class Transfer(NamedTuple):
    """A transfer of `size` bytes: `read` or `write` over a sort of links, inside a server, or
    between two (`far`).
    """

    kind: str
    link: str
    size: int
    far: bool = False


@lru_cache(maxsize=256)
def transfer_program(transfer: Transfer, preset: str) -> tuple[Program, Topology]:
    """Return the program of a transfer and the devices it runs on; ParameterError for links that
    the product has not between two such devices.
    """
    _check(transfer, preset)
    topology, peer = _place(transfer, preset)
    is_rdma = transfer.link == "roce" and not PRESETS[preset].has_ub
    op = OpParam("send_recv", transfer.size, DataType.INT8, pairs=((0, peer),))
    builder = ProgramBuilder(op, topology.size, transfer.kind)
    builder.buffer("IN", transfer.size)
    builder.buffer("OUT", transfer.size)
    plane = "level1" if transfer.link == "roce" and not is_rdma else "flat"
    kind = LinkKind.RDMA if is_rdma else LinkKind.SDMA
    link = builder.link(0, peer, kind, plane=plane, exports=["IN", "OUT"])
    rank, other = builder.stream(0), builder.stream(peer)
    sides = ("IN", 0, transfer.size), ("OUT", 0, transfer.size)
    if is_rdma:
        rank.write(link, *sides)
        rank.post(link, DATA_SIGNAL)
        other.wait(link, DATA_SIGNAL)
    else:
        other.post(link, ACK)
        rank.wait(link, ACK)
        (rank.read if transfer.kind == "read" else rank.write)(link, *sides)
    return builder.build(), topology


def _check(transfer: Transfer, preset: str) -> None:
    if preset not in PRESETS:
        raise ParameterError(
            f"{transfer.kind} of {transfer.size} bytes: {preset!r} is no product.",
            did_you_mean(preset, PRESETS) or "Name a product with topology.",
        )
    for word, known, column in ((transfer.kind, KINDS, "kind"), (transfer.link, MEDIA, "link")):
        if word not in known:
            hint = did_you_mean(word, known) or f"Those known are {', '.join(known)}."
            raise ParameterError(f"{column} is {word!r:.60} in a time point to point.", hint)


def _place(transfer: Transfer, preset: str) -> tuple[Topology, int]:
    """Return devices of which 0 and the second one are joined by such a link."""
    far = transfer.far or transfer.link == "roce"
    servers, devices = (2, 1) if far else (1, 2 * _PACKAGE)
    topology = topology_of(preset=preset, servers=servers, devices=devices)
    return topology, 1 if far or transfer.link == "sio" else _PACKAGE
