"""The memory and the notifies of a group, as one of its ranks has them.

    once per group    CCL_In and CCL_Out, one allocation, opened by every peer
    per tag           scratch, opened by the peers whose tasks touch it; a notify for every cell in
                      use, made by the rank that waits and opened by the one that posts

All ranks see the same programs in the same order, so every rank knows the resources that the others
make; keys go through the group's store, once for every program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hccl_platform.lowering.call import call_of
from hccl_platform.lowering.memory import USER_BUFFERS
from hccl_platform.lowering.part import Cell, RankPart
from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.capabilities import Neighbourhood
from hccl_platform.npu.driver import AclDriver
from hccl_platform.npu.issue import ABSOLUTE, USER_IN, USER_OUT, Place
from hccl_py.enums import Buffer
from hccl_py.errors import MismatchError, NotSupportedError
from hccl_py.program.program import Program
from hccl_py.program.slots import remote_slots

_PAGE = 2 << 20

LAST_S = 10.0
"""Seconds that closing waits for peers to close the resources that they have opened."""


@dataclass
class _Memory:
    """Memory of this rank, and its key if it is exported to peers."""

    address: int
    size: int
    key: bytes = b""


@dataclass
class _Tag:
    """The resources of a tag: notifies by cell, scratch of this rank and of peers."""

    notifies: dict[Cell, int] = field(default_factory=dict)
    scratch: _Memory | None = None
    scratch_sizes: tuple[int, ...] = ()
    peers: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    """Key and address of the scratch of ranks whose scratch is open."""


class Resources:
    """The resources that this rank has made and opened. All ranks call the methods in the same
    order.
    """

    def __init__(
        self, driver: AclDriver, agreement: Agreement, around: Neighbourhood, ccl_bytes: int
    ) -> None:
        self._driver, self._agreement, self._around = driver, agreement, around
        self._ccl_bytes = ccl_bytes
        self._tags: dict[str, _Tag] = {}
        size = 2 * ccl_bytes
        address = driver.allocate(size, for_peers=True)
        self._ccl = _Memory(address, size)
        self._ccl_of: dict[int, tuple[bytes, int]] = {}
        self._ccl.key = driver.export(address, size, around.processes)
        keys = agreement.gather("to export its CCL buffers", self._ccl.key.hex())
        for peer in around.peers:
            key = bytes.fromhex(keys[peer])
            self._ccl_of[peer] = (key, driver.open(key))
        agreement.all("to open its peers' CCL buffers", True)  # no rank ends before

    def provide(
        self, tag: str, program: Program, part: RankPart, sizes: tuple[int, ...]
    ) -> tuple[dict[int, Place], Mapping[Cell, int]]:
        """Make and open the resources that a program needs and its tag lacks; return the memory of
        every slot and the notify of every cell. `sizes` has the scratch bytes of the tag at every
        rank. MismatchError if another rank runs another program; NotSupportedError for a program
        that accesses peers' user memory.
        """
        self._refuse_user_memory(program, part)
        held = self._tags.setdefault(tag, _Tag())
        retired = self._grow(held, sizes)
        buffers = len(program.buffers)
        shown = remote_slots(program, (Buffer.SCRATCH.spelling,))
        rank = self._around.rank
        words = call_of(program).text.decode()
        offer: dict[str, Any] = {"digest": program.digest, "call": words}
        if held.scratch and shown & set(range(rank * buffers, (rank + 1) * buffers)):
            if not held.scratch.key:
                held.scratch.key = self._driver.export(
                    held.scratch.address, held.scratch.size, self._around.processes
                )
            offer["scratch"] = held.scratch.key.hex()
        offer["retired"] = retired.key.hex() if retired else ""
        offer["notifies"] = self._make_notifies(held, part, program)
        offers = self._agreement.gather(f"to come to this: it {words}", offer)
        self._compare(offers)
        self._open_notifies(held, part, offers)
        self._open_scratch(held, part, buffers, offers)
        if any(each["retired"] for each in offers):
            self._agreement.all("to release scratch", True)
            if retired:
                self._release(retired)
        return self._places(program, part, held), held.notifies

    @property
    def notifies(self) -> int:
        """The number of notifies that this rank has made or opened."""
        return sum(len(held.notifies) for held in self._tags.values())

    def close(self, *, in_step: bool) -> None:
        """Release all resources: first those that are opened, then, when all peers have done so,
        those that are made. Without `in_step` this does not wait for peers, which may have ended.
        """
        rank = self._around.rank
        for held in self._tags.values():
            for cell, notify in held.notifies.items():
                if cell.waiter != rank:
                    self._driver.destroy_notify(notify)
            for key, _ in held.peers.values():
                self._driver.close(key)
        for key, _ in self._ccl_of.values():
            self._driver.close(key)
        self._agreement.leave(self._around.peers if in_step else (), LAST_S)
        for held in self._tags.values():
            for cell, notify in held.notifies.items():
                if cell.waiter == rank:
                    self._driver.destroy_notify(notify)
            if held.scratch:
                self._release(held.scratch)
        self._tags.clear()
        self._release(self._ccl)

    def _release(self, memory: _Memory) -> None:
        if memory.key:
            self._driver.close(memory.key)
        self._driver.free(memory.address)

    def _grow(self, held: _Tag, sizes: tuple[int, ...]) -> _Memory | None:
        """Make the scratch of a tag, or a larger one if a program needs more. Return the old one if
        peers have opened it, else release it. No program of the tag runs now.
        """
        if sizes == held.scratch_sizes:
            return None
        held.scratch_sizes = sizes
        old, needed = held.scratch, sizes[self._around.rank]
        if old is not None and old.size >= needed:
            return None
        rounded = -(-needed // _PAGE) * _PAGE
        held.scratch = (
            _Memory(self._driver.allocate(rounded, for_peers=True), rounded) if needed else None
        )
        if old is not None and not old.key:
            self._release(old)
            return None
        return old

    def _make_notifies(self, held: _Tag, part: RankPart, program: Program) -> dict[str, str]:
        """Make the notifies that this rank waits for; return the keys of those that peers post, by
        a name that is the same at both.
        """
        rank, keys = self._around.rank, {}
        for cell in part.cells.values():
            if cell.waiter != rank:
                continue
            if cell not in held.notifies:
                held.notifies[cell] = self._driver.make_notify()
                if cell.poster != rank:
                    key = self._driver.export_notify(
                        held.notifies[cell], [self._around.processes[cell.poster]]
                    )
                    keys[_name(cell)] = key.hex()
        return keys

    def _open_notifies(self, held: _Tag, part: RankPart, offers: Sequence[dict[str, Any]]) -> None:
        rank = self._around.rank
        for cell in part.cells.values():
            if cell.waiter == rank or cell in held.notifies:
                continue
            key = offers[cell.waiter]["notifies"].get(_name(cell))
            if key is None:
                raise MismatchError(
                    f"Rank {rank} posts notify {cell.notify} of rank {cell.waiter} on plane "
                    f"{cell.plane}, which does not wait for it.",
                    "The executor leaves a notify posted: `hccl-py check` shows where.",
                )
            held.notifies[cell] = self._driver.open_notify(bytes.fromhex(key))

    def _open_scratch(
        self, held: _Tag, part: RankPart, buffers: int, offers: Sequence[dict[str, Any]]
    ) -> None:
        """Open the scratch of peers whose key is new."""
        touched = {slot // buffers for slot in part.moves.slots}
        for peer in self._around.peers:
            offered = bytes.fromhex(offers[peer].get("scratch", ""))
            known = held.peers.get(peer)
            if known is not None and known[0].hex() == offers[peer]["retired"]:
                self._driver.close(known[0])
                known = held.peers.pop(peer) and None
            if offered and known is None and peer in touched:
                held.peers[peer] = (offered, self._driver.open(offered))

    def _places(self, program: Program, part: RankPart, held: _Tag) -> dict[int, Place]:
        rank, buffers = self._around.rank, program.buffers
        places: dict[int, Place] = {}
        for slot in part.moves.slots:
            owner, number = divmod(slot, len(buffers))
            name = buffers[number]
            if name == Buffer.USER_IN.spelling:
                places[slot] = (USER_IN, 0)
            elif name == Buffer.USER_OUT.spelling:
                places[slot] = (USER_OUT, 0)
            elif name == Buffer.SCRATCH.spelling:
                mine = held.scratch.address if held.scratch else 0
                places[slot] = (ABSOLUTE, mine if owner == rank else held.peers[owner][1])
            else:
                block = self._ccl.address if owner == rank else self._ccl_of[owner][1]
                behind = self._ccl_bytes if name == Buffer.CCL_OUT.spelling else 0
                places[slot] = (ABSOLUTE, block + behind)
        return places

    def _refuse_user_memory(self, program: Program, part: RankPart) -> None:
        if part.remote_user_slots:
            slot = min(part.remote_user_slots)
            raise NotSupportedError(
                f"{program.executor} touches user memory of rank {slot // len(program.buffers)} "
                f"from other ranks ({' or '.join(USER_BUFFERS)}), and NPUs share CCL buffers only.",
                "Take an executor of op-base mode that goes through CCL_In and CCL_Out.",
            )

    def _compare(self, offers: Sequence[dict[str, Any]]) -> None:
        mine = offers[self._around.rank]
        for rank, other in enumerate(offers):
            if other["digest"] != mine["digest"]:
                raise MismatchError(
                    f"Rank {self._around.rank} {mine['call']}; rank {rank} {other['call']}.",
                    "All ranks make the same calls, with the same settings and plugins, in the "
                    "same order.",
                )


def _name(cell: Cell) -> str:
    return f"{cell.poster}/{cell.plane}/{cell.turn}/{cell.notify}"
