"""All ranks in one process on torch's devices, several ranks on each: `cpu`, `cuda` or `npu`."""

from hccl_platform.device.platform import DevicePlatform

__all__ = ["DevicePlatform"]
