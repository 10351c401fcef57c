"""Pictures in notebooks: films of programs and timelines, and ranks of topologies."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import replace

import pytest

import hccl_py as hccl
from hccl_py.topology import topology_of
from hccl_py.trace import notebook
from tests.recording import op_of, recorded


def pictures(html: str) -> list[str]:
    return [b64decode(data).decode() for data in re.findall(r"svg\+xml;base64,([\w+/=]+)", html)]


def test_a_program_begins_with_its_film() -> None:
    (film,) = pictures(recorded("AllGatherComm", op_of("all_gather", 64), 4)._repr_html_())
    assert film.count('class="frame"') == 4
    assert "µs" not in film


def test_a_timeline_has_the_times_of_its_steps() -> None:
    topology = topology_of(4)
    timeline = hccl.simulate(recorded("AllGatherComm", op_of("all_gather", 64), topology), topology)
    (film,) = pictures(timeline._repr_html_())
    assert film.count("µs") == 3


def test_a_plan_shows_its_program() -> None:
    with hccl.Communicator(ranks=4) as comm:
        html = comm.plan(op_of("all_gather", 64))._repr_html_()
    assert len(pictures(html)) == 1
    assert "<th>executor</th>" in html


@pytest.mark.parametrize(("servers", "devices"), [(1, 8), (2, 4), (32, 8)])
def test_a_topology_shows_every_rank(servers: int, devices: int) -> None:
    (picture,) = pictures(topology_of(servers=servers, devices=devices)._repr_html_())
    named = re.findall(r'class="ink">(\d+)<', picture)
    assert named == [str(rank) for rank in range(servers * devices)]
    assert picture.count('class="box"') == (servers if servers > 1 else 0)


def test_large_programs_and_topologies_have_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "MOST_TASKS", 5)
    assert not pictures(recorded("AllGatherComm", op_of("all_gather", 64), 4)._repr_html_())
    assert not pictures(topology_of(servers=64, devices=8)._repr_html_())


def test_names_are_escaped() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 64), 4)
    nasty = replace(program, labels=tuple(f"<b>{label}" for label in program.labels))
    (film,) = pictures(nasty._repr_html_())
    assert "<b>" not in film
