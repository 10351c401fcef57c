"""One model of what there is to see of a program, which all drawings and exports read."""

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
    MemoryStates,
    Phases,
    Scene,
    SceneFinding,
    Segment,
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
    "MemoryStates",
    "Phases",
    "Scene",
    "SceneFinding",
    "Segment",
    "Traffic",
    "scene_of",
]
