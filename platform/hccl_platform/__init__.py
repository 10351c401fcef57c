"""The platforms that come with hccl-py, through the same door that plugins use."""

from hccl_platform.device import DevicePlatform
from hccl_platform.distributed import DistributedPlatform
from hccl_platform.emulated import EmulatedPlatform
from hccl_platform.npu import NpuPlatform

__all__ = ["PLATFORMS"]

PLATFORMS = (EmulatedPlatform, DistributedPlatform, NpuPlatform, DevicePlatform)
