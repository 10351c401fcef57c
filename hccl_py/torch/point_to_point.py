"""Sends and receives: in the mailboxes of the group's session, where they have a place for them.

Calls of two ranks (pairs.py) take their place between hosts, for tensors on devices, and where the
program names the executor of send_recv.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from hccl_py.enums import DataType
from hccl_py.errors import HcclError, PeerLostError
from hccl_py.plugins.platforms import Mailboxes
from hccl_py.torch.joining import Member
from hccl_py.torch.pairs import Pairs
from hccl_py.torch.tensor_arrays import Array, flat, is_on_host, put_back
from hccl_py.torch.work import MessageWork, TorchWork, as_torch_error


class PointToPoint:
    """The messages of a group; `open_mailboxes` returns those of its session."""

    def __init__(self, member: Member, open_mailboxes: Callable[[], Mailboxes | None]) -> None:
        self._pairs, self._member = Pairs(member), member
        self._open_mailboxes = open_mailboxes
        self._mailboxes: Mailboxes | None = None

    def send(self, tensor: torch.Tensor, destination: int, tag: int) -> TorchWork:
        """Send a tensor, which its owner leaves as it is until the work has ended."""
        mailboxes = self._mailboxes_of(tensor)
        if mailboxes is None:
            return self._pairs.send(tensor, destination, tag)
        self._member.check_other(destination)
        work = MessageWork(tensor, mailboxes, lambda: None)
        return self._posted(work, partial(mailboxes.send, destination, tag), flat(tensor))

    def recv(self, tensor: torch.Tensor, source: int, tag: int) -> TorchWork:
        """Receive the next message of a rank."""
        mailboxes = self._mailboxes_of(tensor)
        if mailboxes is None:
            return self._pairs.recv(tensor, source, tag)
        self._member.check_other(source)
        return self._received(mailboxes, tensor, source, tag)

    def recv_any(self, tensor: torch.Tensor, tag: int) -> TorchWork:
        """Receive the next message of the rank that sends first."""
        mailboxes = self._mailboxes_of(tensor)
        if mailboxes is None:
            return self._pairs.recv_any(tensor, tag)
        return self._received(mailboxes, tensor, None, tag)

    @property
    def has_failed(self) -> bool:
        """True if a message has failed so that the group cannot be used any more."""
        boxes = self._mailboxes
        return self._pairs.has_failed or (boxes is not None and boxes.error is not None)

    def close(self) -> None:
        """Let all messages end."""
        if self._mailboxes is not None:
            self._mailboxes.finish()
        self._pairs.close()

    def abort(self) -> None:
        """Give up all messages."""
        if self._mailboxes is not None:
            why = f"A rank has given up the process group of {self._member.name}."
            self._mailboxes.fail(PeerLostError(why, "Start the job anew."))
        self._pairs.abort()

    def _mailboxes_of(self, tensor: torch.Tensor) -> Mailboxes | None:
        """Return the mailboxes that take a tensor; None where none do."""
        if not is_on_host(tensor) or "send_recv" in (self._member.settings.executor or ()):
            return None
        if self._mailboxes is None:
            self._mailboxes = self._open_mailboxes()
        return self._mailboxes

    def _received(
        self, mailboxes: Mailboxes, tensor: torch.Tensor, source: int | None, tag: int
    ) -> TorchWork:
        data = flat(tensor)
        work = MessageWork(tensor, mailboxes, lambda: put_back(tensor, data))
        return self._posted(work, partial(mailboxes.receive, source, tag), data)

    def _posted(self, work: MessageWork, post: Callable[..., Any], data: Array) -> TorchWork:
        try:
            work.message = post(DataType.of(data.dtype), data.view(np.uint8), work.at_end)
        except HcclError as error:
            raise as_torch_error(error) from None
        return work
