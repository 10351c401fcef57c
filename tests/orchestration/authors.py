"""Executors that do what a test says."""

from collections.abc import Callable
from typing import Any

from hccl_py.plugins.executor import ChannelResources, PlaneRequest, ResourceRequest

Request = ResourceRequest | ChannelResources
MESH = ResourceRequest((PlaneRequest("flat", "mesh"),))


class Author:
    """Records what `body` does and asks for `request`, which may be a function of the rank."""

    op = "all_gather"
    algorithm = "level0:NA"

    def __init__(
        self,
        body: Callable[[Any], object],
        request: Request | Callable[[Any], Request] = MESH,
    ) -> None:
        self.body = body
        self.request = request

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> Request:
        return self.request(rank) if callable(self.request) else self.request

    def orchestrate(self, op: Any, rank: Any) -> None:
        self.body(rank)


class MeshAuthor:
    """Asks for a mesh, sub streams and scratch memory; a test replaces the rest."""

    op = "all_gather"
    algorithm = "level0:ring"
    planes: tuple[PlaneRequest, ...] = (PlaneRequest("flat", "mesh"),)
    subs: Any = 0
    scratch: Any = 0

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(self.planes, sub_streams=self.subs, scratch_bytes=self.scratch)

    def orchestrate(self, op: Any, rank: Any) -> None:
        """Record nothing."""
