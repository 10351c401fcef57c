"""All ranks in one process on numpy memory: the default platform."""

from hccl_platform.emulated.session import EmulatedPlatform, EmulatedSession

__all__ = ["EmulatedPlatform", "EmulatedSession"]
