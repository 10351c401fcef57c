"""The steps of an algorithm as an SVG picture: ranks as columns, a band for what happens at once.

In each band arrows say which chunks travel from which rank to which; below them stands what every
rank holds then. The picture brings its own background and follows the reader's light or dark
colours. It is text, and the same for the same program: fit to be kept, and compared.
"""

from __future__ import annotations

from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.trace.pictures.flow import flow_of
from hccl_py.trace.pictures.sheet import Page

__all__ = ["draw_steps"]


def draw_steps(program: Program, title: str, topology: Topology | None = None) -> str:
    """Return an SVG picture of a small program; with its topology, ranks stand server by server.

    ParameterError for a program that is too large or moves no data.
    """
    servers = [0] * program.ranks if topology is None else topology.server.tolist()
    return Page(flow_of(program), servers).svg(title)
