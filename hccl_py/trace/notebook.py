"""Pictures for notebooks: the film strip of a program, and the ranks of a topology."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from hccl_py.trace.pictures.algorithm_steps import MOST_NODES, algorithm_steps, steps_of_timeline
from hccl_py.trace.pictures.film import draw_film
from hccl_py.trace.pictures.pairings import ServerPlaces
from hccl_py.trace.pictures.seats import seats_of_ranks
from hccl_py.trace.pictures.svg import STYLE, text

if TYPE_CHECKING:
    from hccl_py.program.program import Program
    from hccl_py.simulator.timeline import Timeline
    from hccl_py.topology import Topology

MOST_TASKS = 200_000
"""Tasks of a program up to which a notebook draws it: more take seconds."""


def program_film(program: Program, topology: Topology | None = None) -> str:
    """Return the film strip of a program; "" for one that is large or moves nothing."""
    if not 0 < program.task_count <= MOST_TASKS:
        return ""
    return _image(draw_film(algorithm_steps(program, topology), program.op_name), program.op_name)


def timeline_film(timeline: Timeline) -> str:
    """Return the film strip of a timeline, at its times; "" as `program_film`."""
    program = timeline.program
    if not 0 < program.task_count <= MOST_TASKS:
        return ""
    steps = steps_of_timeline(timeline)
    return _image(draw_film(steps, program.op_name), program.op_name)


def topology_picture(topology: Topology) -> str:
    """Return the servers of a topology with their ranks, as they stand in pictures of steps."""
    places = ServerPlaces.of(topology.server)
    seats = seats_of_ranks(places, topology, ())
    if topology.size > MOST_NODES:
        return ""
    across = round(1 / min((x for x in seats.x if x), default=1)) if seats.kind != "ring" else 8
    width = min(760, max(240, 46 * across))
    high = width if seats.kind == "ring" else 60 * len(set(seats.y))
    shapes = [
        f'<rect x="{left * width + 2:.0f}" y="{top * high + 2:.0f}" class="box" '
        f'width="{(right - left) * width - 4:.0f}" height="{(bottom - top) * high - 4:.0f}"/>'
        + text(6, round(top * high) + 15, name, "faint")
        for left, top, right, bottom, name in seats.boxes
    ]
    for rank, (u, v) in enumerate(zip(seats.x, seats.y, strict=True)):
        x, y = 20 + u * (width - 40), 18 + v * (high - 30)
        shapes.append(
            f'<rect x="{x - 16:.0f}" y="{y - 10:.0f}" width="32" height="20" class="node"/>'
        )
        shapes.append(text(round(x), round(y) + 4, str(rank), "ink", "middle"))
    return _image(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{high}" '
        f'viewBox="0 0 {width} {high}" role="img"><style>{STYLE}</style>'
        f'<rect width="{width}" height="{high}" class="paper"/>{"".join(shapes)}</svg>',
        topology.description,
    )


def _image(picture: str, name: str) -> str:
    """Return a picture as an image: a document of its own, with which its style stays."""
    data = b64encode(picture.encode()).decode()
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}">'
