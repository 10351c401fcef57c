"""The scene: one model of a program with its times, which all drawings and exports read."""

from hccl_py.trace.scene.build import scene_of
from hccl_py.trace.scene.model import (
    CONNECTION,
    DONE,
    STUCK,
    UNREACHED,
    Bars,
    Critical,
    Lanes,
    LinkLoad,
    MemorySegment,
    MemoryStates,
    Phases,
    Scene,
    SceneFinding,
    Traffic,
)

__all__ = [
    "CONNECTION",
    "DONE",
    "STUCK",
    "UNREACHED",
    "Bars",
    "Critical",
    "Lanes",
    "LinkLoad",
    "MemorySegment",
    "MemoryStates",
    "Phases",
    "Scene",
    "SceneFinding",
    "Traffic",
    "scene_of",
]
