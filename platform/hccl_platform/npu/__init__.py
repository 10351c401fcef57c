"""The npu platform: one process for every NPU of a server, on CANN's runtime and torch_npu."""

from hccl_platform.npu.platform import NpuPlatform

__all__ = ["NpuPlatform"]
