"""The steps of an algorithm in pictures: a film strip with a frame for each step, and its numbers.

`draw_steps` draws any program; `AlgorithmSteps` has what pages and the terminal show of it.
"""

from __future__ import annotations

from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.trace.pictures.algorithm_steps import algorithm_steps
from hccl_py.trace.pictures.film import draw_film

__all__ = ["draw_steps"]


def draw_steps(program: Program, title: str, topology: Topology | None = None) -> str:
    """Return an SVG picture of a program; with its topology, ranks stand server by server."""
    return draw_film(algorithm_steps(program, topology), title)
