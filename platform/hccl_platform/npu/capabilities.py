"""Capabilities of the hardware and its runtime, found by trying, and agreed by all ranks.

Nothing is assumed that can be probed: docs/ascend.md has a table of probes and assumptions.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from hccl_platform.npu.acl import AclError
from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.driver import HARDWARE_REDUCTIONS, AclDriver
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError

LOGGER = logging.getLogger("hccl_py.platforms.npu")
"""A logger below hccl_py, whose messages commands show."""

PROBE_BYTES = 2 << 20
"""Bytes of memory for probing: a page of exported memory."""

_PLACE = 512
_PROBE_S = 20.0


@dataclass(frozen=True)
class Capabilities:
    """The capabilities that all ranks of a group have.

    `pid_free_ipc` and `pid_list_ipc`: memory and notifies can be opened by other processes, without
    and with a list of them. `peer_access`: devices reach each other's memory. `notifies`: they can
    be made, exported and opened. `inline_reduce`: reductions between the memories of two devices;
    if there are none, programs are recorded without them. `p2p_malloc`: memory for peers has a pool
    of its own, else it comes from the common one. `exception_info`: the runtime names the task that
    has failed.
    """

    pid_free_ipc: bool
    pid_list_ipc: bool
    peer_access: bool
    notifies: bool
    inline_reduce: frozenset[tuple[DataType, ReduceOp]]
    p2p_malloc: bool
    exception_info: bool

    def document(self) -> dict[str, object]:
        """Return the capabilities as a JSON object."""
        reductions = sorted(f"{op.spelling} {dtype.value}" for dtype, op in self.inline_reduce)
        return {**asdict(self), "inline_reduce": reductions}


@dataclass(frozen=True)
class Neighbourhood:
    """The ranks of a group, with the device and the process number of each; `rank` is this one."""

    rank: int
    devices: Sequence[int]
    processes: Sequence[int]

    @property
    def peers(self) -> list[int]:
        """All ranks but this one."""
        return [rank for rank in range(len(self.devices)) if rank != self.rank]


def probe(driver: AclDriver, agreement: Agreement, around: Neighbourhood) -> Capabilities:
    """Probe all capabilities; afterwards the driver exports in the way that works.

    NotSupportedError if devices do not reach each other, or processes cannot open each other's
    memory or notifies.
    """
    reaches = [driver.reach(around.devices[peer]) for peer in around.peers]
    if not agreement.all("to reach its peers' devices", all(reaches)):
        raise NotSupportedError(
            f"The NPUs {', '.join(map(str, around.devices))} do not all reach each other's memory.",
            "See `npu-smi info -t topo`; take NPUs of one server, or --platform distributed.",
        )
    memory = _memory_for_peers(driver, agreement)
    reasons: list[str] = []
    opened: dict[bool, list[tuple[bytes, int]]] = {}
    try:
        for lists in (False, True):
            found = _open_all(driver, agreement, around, memory, lists, reasons)
            if found is not None:
                opened[lists] = found
            if opened and around.peers:
                break
        if not opened:
            raise NotSupportedError(
                f"Processes cannot open each other's memory: {'; '.join(reasons)}.",
                "In containers, share the host's process namespace (--pid=host); NPUs that are "
                "virtual have no such memory.",
            )
        driver.lists_processes = lists = next(iter(opened))
        inline = _reductions(driver, agreement, around, memory, opened[lists])
    finally:
        for keys in opened.values():
            for key, _ in keys:
                driver.close(key)
        agreement.all("to end probing", True)
        driver.free(memory)
    found_all = Capabilities(
        pid_free_ipc=not lists,
        pid_list_ipc=lists,
        peer_access=True,  # else probing has raised above
        notifies=True,
        inline_reduce=inline,
        p2p_malloc=driver.p2p_malloc,
        exception_info=agreement.all("to watch for errors", can_watch(driver)),
    )
    if around.rank == 0:
        LOGGER.info("NPUs can do: %s", json.dumps(found_all.document()))
    return found_all


def _memory_for_peers(driver: AclDriver, agreement: Agreement) -> int:
    """Return memory that peers may open, from a pool of its own if all ranks have one."""
    driver.p2p_malloc, memory = True, 0
    try:
        memory = driver.allocate(PROBE_BYTES, for_peers=True)
    except AclError as error:
        LOGGER.info("no memory of its own for peers: %s", error.message)
    driver.p2p_malloc = agreement.all("to allocate memory for peers", bool(memory))
    return memory or driver.allocate(PROBE_BYTES, for_peers=True)


def _open_all(
    driver: AclDriver,
    agreement: Agreement,
    around: Neighbourhood,
    memory: int,
    lists: bool,
    reasons: list[str],
) -> list[tuple[bytes, int]] | None:
    """Open the memory and a notify of every peer, with or without lists of processes. Return keys
    and addresses of the memories; None if one rank cannot open its peers'.
    """
    driver.lists_processes = lists
    keys, notify, given = [], driver.make_notify(), [""] * 2
    opened: list[tuple[bytes, int]] = []
    notifies: list[int] = []
    is_good = True
    try:
        given[0] = driver.export(memory, PROBE_BYTES, around.processes).hex()
        given[1] = driver.export_notify(notify, around.processes).hex()
    except AclError as error:
        reasons.append(error.message.rstrip("."))
        is_good = False
    keys = agreement.gather("to export memory", given)
    for peer in around.peers if is_good and all(all(pair) for pair in keys) else ():
        try:
            key = bytes.fromhex(keys[peer][0])
            opened.append((key, driver.open(key)))
            notifies.append(driver.open_notify(bytes.fromhex(keys[peer][1])))
        except AclError as error:
            reasons.append(error.message.rstrip("."))
            is_good = False
            break
    is_good = agreement.all("to open its peers' memory", is_good and all(all(k) for k in keys))
    for handle in (*notifies, notify):
        driver.destroy_notify(handle)
    if is_good:
        return opened
    for key, _ in opened:
        driver.close(key)
    return None


def _reductions(
    driver: AclDriver,
    agreement: Agreement,
    around: Neighbourhood,
    memory: int,
    opened: Sequence[tuple[bytes, int]],
) -> frozenset[tuple[DataType, ReduceOp]]:
    """Return the reductions that are right into and out of a peer's memory at every rank."""
    if not opened:
        return frozenset(_WAYS)
    _lay_out(driver, memory)
    agreement.all("to prepare for reductions", True)
    peer, is_good = opened[around.rank % len(opened)][1], []
    for place, (dtype, op) in enumerate(_WAYS):
        theirs, mine = peer + place * _PLACE, memory + (len(_WAYS) + place) * _PLACE
        is_good.append(_reduces(driver, theirs, mine, dtype, op))
    every = agreement.gather("to try reductions", is_good)
    return frozenset(way for place, way in enumerate(_WAYS) if all(e[place] for e in every))


def local_reductions(driver: AclDriver, memory: int) -> list[tuple[DataType, ReduceOp]]:
    """Return the reductions that a device does in its own memory; `memory` has PROBE_BYTES."""
    _lay_out(driver, memory)
    found = []
    for place, (dtype, op) in enumerate(_WAYS):
        theirs, mine = memory + place * _PLACE, memory + (len(_WAYS) + place) * _PLACE
        if _reduces(driver, theirs, mine, dtype, op):
            found.append((dtype, op))
    return found


def _lay_out(driver: AclDriver, memory: int) -> None:
    """Write an operand of every reduction."""
    for place, (dtype, _) in enumerate(_WAYS):
        driver.write(memory + place * _PLACE, np.array([2, 3], dtype.numpy).tobytes())


_WAYS = sorted(HARDWARE_REDUCTIONS, key=lambda way: (way[0].value, way[1]))


def _reduces(driver: AclDriver, theirs: int, mine: int, dtype: DataType, op: ReduceOp) -> bool:
    """True if a device reduces from a peer's memory into its own, and back without effect."""
    start, other = np.array([1, 7], dtype.numpy), np.array([2, 3], dtype.numpy)
    right = {ReduceOp.SUM: start + other, ReduceOp.MAX: np.maximum(start, other)}.get(
        op, np.minimum(start, other)
    )
    stream = driver.make_stream()
    try:
        driver.write(mine, start.tobytes())
        driver.reduce(mine, theirs, start.nbytes, dtype, op, stream)
        if not driver.synchronize(stream, _PROBE_S):
            return False
        if driver.read(mine, start.nbytes) != right.astype(dtype.numpy).tobytes():
            return False
        driver.write(mine, _neutral(dtype, op).tobytes())
        driver.reduce(theirs, mine, start.nbytes, dtype, op, stream)
        return driver.synchronize(stream, _PROBE_S)
    except AclError as error:
        LOGGER.debug("no inline %s of %s: %s", op.spelling, dtype.value, error.message)
        return False
    finally:
        driver.destroy_stream(stream)


def _neutral(dtype: DataType, op: ReduceOp) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Return two elements that do not change 2 and 3."""
    value = {ReduceOp.SUM: 0, ReduceOp.MAX: 1}.get(op, 4)
    return np.array([value, value], dtype.numpy)


def can_watch(driver: AclDriver) -> bool:
    """True if the runtime names the task that has failed."""
    try:
        driver.watch(lambda _: None)
        driver.watch(None)
    except AclError:
        return False
    return True
