"""One model of what there is to see of a program, which all drawings and exports read."""

from hccl_py.trace.scene.build import scene_of
from hccl_py.trace.scene.model import (
    DONE,
    STUCK,
    UNREACHED,
    WIRE,
    Bars,
    Critical,
    Lanes,
    LinkLoad,
    MemoryStates,
    Phases,
    Scene,
    SceneFinding,
    Segment,
    Traffic,
)

__all__ = [
    "DONE",
    "STUCK",
    "UNREACHED",
    "WIRE",
    "Bars",
    "Critical",
    "Lanes",
    "LinkLoad",
    "MemoryStates",
    "Phases",
    "Scene",
    "SceneFinding",
    "Segment",
    "Traffic",
    "scene_of",
]
