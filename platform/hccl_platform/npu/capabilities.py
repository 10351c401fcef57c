"""Capabilities of the hardware and its runtime, found by trying, and agreed by all ranks.

Nothing is assumed that can be probed: docs/ascend.md has a table of probes and assumptions.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import numpy as np

from hccl_platform.npu.acl import STREAM_TIMEOUT, AclError
from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.driver import HARDWARE_REDUCTIONS, AclDriver
from hccl_platform.npu.peer_memory import KEYS, LISTED_KEYS, MEMORY_WAYS, KeyedMemory
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

    `memory` and `notifies`: how processes open each other's, see peer_memory.py. `inline_reduce`:
    reductions between the memories of two devices; if there are none, programs are recorded without
    them. `p2p_malloc`: memory for peers has a pool of its own, else it comes from the common one.
    `exception_info`: the runtime names the task that has failed.
    """

    memory: str
    notifies: str
    inline_reduce: frozenset[tuple[DataType, ReduceOp]]
    p2p_malloc: bool
    exception_info: bool

    def document(self) -> dict[str, object]:
        """Return the capabilities as a JSON object."""
        reductions = sorted(f"{op.spelling} {dtype.value}" for dtype, op in self.inline_reduce)
        return {**asdict(self), "inline_reduce": reductions}


@dataclass(frozen=True)
class Neighbourhood:
    """The ranks of a group, with the device's number on the board and the process number of each;
    `rank` is this one.
    """

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
    trial = _PeerTrial(driver, agreement, around)
    memory = _first("memory", MEMORY_WAYS, trial.opens_memory, trial)
    try:
        notifies = _first("notifies", (KEYS, LISTED_KEYS), trial.opens_notifies, trial)
        inline = _reductions(driver, agreement, around, trial.memory, trial.opened)
        pooled = agreement.all("to allocate memory for peers", driver.shared.is_pooled)
    finally:
        trial.end()
    if isinstance(driver.shared, KeyedMemory):
        driver.shared.is_pooled = pooled
    found_all = Capabilities(
        memory=memory,
        notifies=notifies,
        inline_reduce=inline,
        p2p_malloc=pooled,
        exception_info=agreement.all("to watch for errors", can_watch(driver)),
    )
    if around.rank == 0:
        LOGGER.info("NPUs can do: %s", json.dumps(found_all.document()))
    return found_all


def _first(what: str, ways: Sequence[str], works: Callable[[str], bool], trial: _PeerTrial) -> str:
    """Return the first way that works at every rank; NotSupportedError, with all reasons, if none
    does.
    """
    trial.reasons.clear()
    for way in ways:
        if works(way):
            return way
    raise NotSupportedError(
        f"Processes cannot open each other's {what}: {'; '.join(trial.reasons)}.",
        "In containers, share the host's process namespace (--pid=host); NPUs that are virtual "
        "have no such memory.",
    )


@dataclass
class _PeerTrial:
    """The opening of peers' memory and notifies. `memory` is this rank's and `own` its key,
    `opened` has the keys and addresses of its peers'; `reasons` tells why ways have failed.
    """

    driver: AclDriver
    agreement: Agreement
    around: Neighbourhood
    reasons: list[str] = field(default_factory=list)
    memory: int = 0
    own: bytes = b""
    opened: list[tuple[bytes, int]] = field(default_factory=list)

    def opens_memory(self, way: str) -> bool:
        """True if every rank opens the memory of every peer, and copies from it."""
        failures = len(self.reasons)
        self.driver.share(way)
        with self._noting(way):
            self.memory = self.driver.allocate(PROBE_BYTES, for_peers=True)
            self.own = self.driver.export(self.memory, PROBE_BYTES, self.around.processes)
        keys = self.agreement.gather("to export memory", self.own.hex())
        with self._noting(way):
            for peer in self.around.peers if all(keys) else ():
                key = bytes.fromhex(keys[peer])
                self.opened.append((key, self.driver.open(key)))
            for _, address in self.opened:
                self._copy_from(address)
        is_good = all(keys) and len(self.reasons) == failures
        works = self.agreement.all("to open its peers' memory", is_good)
        if not works:
            self.end()
        return works

    def opens_notifies(self, way: str) -> bool:
        """True if every rank opens a notify of every peer."""
        failures = len(self.reasons)
        self.driver.lists_processes = way == LISTED_KEYS
        own, handles = b"", [self.driver.make_notify()]
        with self._noting(way):
            own = self.driver.export_notify(handles[0], self.around.processes)
        keys = self.agreement.gather("to export a notify", own.hex())
        with self._noting(way):
            for peer in self.around.peers if all(keys) else ():
                handles.append(self.driver.open_notify(bytes.fromhex(keys[peer])))
        is_good = all(keys) and len(self.reasons) == failures
        works = self.agreement.all("to open its peers' notifies", is_good)
        for handle in reversed(handles):
            self.driver.destroy_notify(handle)
        return works

    def end(self) -> None:
        """Close peers' memory, and when all ranks have done so free this one's."""
        for key, _ in self.opened:
            self.driver.close(key)
        self.opened.clear()
        self.agreement.all("to end probing", True)
        if self.own:
            self.driver.close(self.own)
        if self.memory:
            self.driver.free(self.memory)
        self.own, self.memory = b"", 0

    def _copy_from(self, address: int) -> None:
        """Copy from a peer's memory into the end of this rank's; AclError if that fails."""
        stream = self.driver.make_stream()
        try:
            self.driver.copy(self.memory + PROBE_BYTES - _PLACE, address, _PLACE, stream)
            if not self.driver.synchronize(stream, _PROBE_S):
                raise AclError("aclrtMemcpyAsync", STREAM_TIMEOUT, "the copy does not end")
        finally:
            self.driver.destroy_stream(stream)

    @contextmanager
    def _noting(self, way: str) -> Iterator[None]:
        """Note the reason of a failure, and go on."""
        try:
            yield
        except AclError as error:
            self.reasons.append(f"{way}: {error.message.rstrip('.')}")


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
