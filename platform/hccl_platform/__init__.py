"""The platforms that come with hccl-py, found by entry point like those of plugins."""

from hccl_platform.device import DevicePlatform
from hccl_platform.distributed import DistributedPlatform
from hccl_platform.emulated import EmulatedPlatform
from hccl_platform.npu import NpuPlatform

__all__ = ["PLATFORMS"]

PLATFORMS = (EmulatedPlatform, DistributedPlatform, NpuPlatform, DevicePlatform)
