"""All ranks in one process on numpy memory: the default platform."""

from hccl_platform.emulated.platform import EmulatedPlatform

__all__ = ["EmulatedPlatform"]
