"""The distributed platform: every rank is a process of its own."""

from hccl_platform.distributed.platform import DistributedPlatform

__all__ = ["DistributedPlatform"]
