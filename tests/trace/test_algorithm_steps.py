"""Steps as numbers: who sends to whom in words, where nodes stand, and what comes when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import PRESETS
from hccl_py.trace.pictures.algorithm_steps import (
    MOST_MOVES,
    AlgorithmSteps,
    algorithm_steps,
    steps_of_scene,
)
from hccl_py.trace.pictures.film import draw_film, film_markup, frames_of
from hccl_py.trace.pictures.pairings import ServerPlaces, clauses_of, sentence
from hccl_py.trace.scene import Scene, scene_of
from tests.recording import op_of, recorded


def scene(servers: int, devices: int, name: str = "all_reduce", count: int = 1 << 12) -> Scene:
    topology = topology_of(servers=servers, devices=devices)
    return scene_of(hccl.Communicator(topology=topology).plan(op_of(name, count)).program, topology)


def said(pairs: list[tuple[int, int]], server: list[int], ending: str = "") -> str:
    source, target = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return sentence(clauses_of(source, target, ServerPlaces.of(np.array(server))), ending)


MESH_OF_64 = Topology(PRESETS["mesh"], (64,))
FOUR, TWICE_TWO = [0] * 4, [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("pairs", "server", "text"),
    [
        ([(r, (r + 1) % 4) for r in range(4)], FOUR, "Every rank sends to the next."),
        ([(r, (r - 1) % 4) for r in range(4)], FOUR, "Every rank sends to the one before."),
        ([(r, (r + 2) % 5) for r in range(5)], [0] * 5, "Every rank sends to the one 2 on."),
        ([(r, r ^ 1) for r in range(4)], FOUR, "Pairs of ranks 1 apart swap."),
        ([(r, 3 - r) for r in range(4)], FOUR, "Every rank sends to one other."),
        ([(0, 1), (1, 0)], [0, 0], "The two ranks swap."),
        ([(0, r) for r in range(1, 4)], FOUR, "Rank 0 sends to 3 others."),
        ([(r, 2) for r in (0, 1, 3)], FOUR, "3 ranks send to rank 2."),
        (
            [(r, s) for r in range(4) for s in range(4) if r != s],
            FOUR,
            "Every rank sends to every other.",
        ),
        (
            [(r, (r + k) % 6) for r in range(6) for k in (1, 5)],
            [0] * 6,
            "Every rank sends to both neighbours on a ring.",
        ),
        (
            [(r, r ^ k) for r in range(4) for k in (1, 2)],
            [0, 1, 2, 3],
            "Every rank sends to both neighbours on a ring.",
        ),
        ([(0, 1), (1, 0), (2, 3), (3, 2)], TWICE_TWO, "In every server, the two devices swap."),
        (
            [(0, 2), (2, 0), (1, 3), (3, 1)],
            TWICE_TWO,
            "Between servers, each device with its like: the two servers swap.",
        ),
        ([(0, 2), (2, 0)], TWICE_TWO, "Between servers, 1 pairs swap."),
        ([(0, 1), (1, 0)], TWICE_TWO, "1 pairs swap."),
    ],
)
def test_pairs_in_words(pairs: list[tuple[int, int]], server: list[int], text: str) -> None:
    assert said(pairs, server) == text


def test_two_rings_are_not_one() -> None:
    triangles = [(r, r // 3 * 3 + (r + k) % 3) for r in range(6) for k in (1, 2)]
    assert said(triangles, [0] * 6) == "Every rank sends to 2 others."


def test_what_the_receiver_does_is_said() -> None:
    ring = [(r, (r + 1) % 4) for r in range(4)]
    assert said(ring, FOUR, "adds").endswith("; the receiver adds it to its own.")


@pytest.mark.parametrize(
    ("executor", "op", "first"),
    [
        ("AllReduceRing", "all_reduce", "Every rank sends to the next"),
        ("AllGatherMeshOpbaseExecutor", "all_gather", "Every rank sends to every other"),
    ],
)
def test_steps_of_executors_in_words(executor: str, op: str, first: str) -> None:
    program = recorded(executor, op_of(op, 1 << 12), 8)
    assert algorithm_steps(program).steps[0].said.startswith(first)


def bytes_by_pair(steps: AlgorithmSteps) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    moves = steps.moves
    for source, target, size in zip(moves.source, moves.target, moves.bytes, strict=True):
        found[int(source), int(target)] = found.get((int(source), int(target)), 0) + int(size)
    return found


@given(
    servers=st.integers(1, 4),
    devices=st.integers(1, 3),
    name=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]),
)
def test_moves_are_the_traffic_and_steps_last_as_long(
    servers: int, devices: int, name: str
) -> None:
    drawn = scene(servers, devices, name, 1 << 10)
    steps, traffic = steps_of_scene(drawn), drawn.traffic
    pairs = zip(traffic.source.tolist(), traffic.target.tolist(), strict=True)
    assert bytes_by_pair(steps) == dict(zip(pairs, traffic.bytes.tolist(), strict=True))
    for number, step in enumerate(steps.steps, 1):
        own = steps.moves_of(number)
        assert len(own) == step.pairs
        assert step.begin_us == steps.moves.begin_us[own].min()
        assert step.end_us == steps.moves.end_us[own].max() <= drawn.total_us
    if steps.steps:
        np.testing.assert_allclose(steps.share[-1], 1.0)
        assert steps.cells is not None
        for holds, wanted in zip(steps.cells.holds[-1], steps.cells.wanted, strict=True):
            assert wanted & ~holds == 0


def test_many_ranks_are_servers_in_the_order_of_time() -> None:
    drawn = scene(6, 4)
    steps = steps_of_scene(drawn)
    assert steps.nodes.noun == "server"
    assert len(steps.nodes.names) == 6
    begins = [step.begin_us for step in steps.steps]
    assert begins == sorted(begins)
    assert sum(bytes_by_pair(steps).values()) == drawn.traffic.bytes.sum()
    assert steps.steps[0].inside == ((0, 1), (1, 0), (2, 3), (3, 2))


def test_transfers_without_numbered_labels_are_parted_by_time() -> None:
    """In a pairwise exchange of 20 ranks, each step begins when the one before has ended."""
    topology = topology_of(20)
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 64), topology)
    steps = steps_of_scene(scene_of(program, topology))
    assert len(steps.steps) > 1
    for before, after in zip(steps.steps, steps.steps[1:], strict=False):
        assert before.begin_us <= after.begin_us


def test_a_step_of_very_many_pairs_draws_those_with_most_bytes() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 64), MESH_OF_64)
    moves = algorithm_steps(program).moves
    assert np.bincount(moves.step).max() == MOST_MOVES


@pytest.mark.parametrize(
    ("servers", "devices", "kind"), [(1, 4, "ring"), (4, 1, "ring"), (2, 4, "rows"), (5, 4, "grid")]
)
def test_ranks_stand_as_they_are_joined(servers: int, devices: int, kind: str) -> None:
    assert steps_of_scene(scene(servers, devices)).seats.kind == kind


def test_ranks_of_a_torus_stand_on_its_grid() -> None:
    topology = hccl.Communicator(topology="torus:4x2").topology
    program = recorded("AllReduceRing", op_of("all_reduce", 64), topology)
    seats = algorithm_steps(program, topology).seats
    assert (seats.kind, seats.across, len(set(seats.y))) == ("grid", 4, 2)


def test_long_films_leave_frames_out() -> None:
    program = recorded("AllReduceRing", op_of("all_reduce", 1 << 10), 12)
    steps = algorithm_steps(program)
    assert len(steps.steps) == 22
    assert frames_of(steps) == [0, 1, 2, "8", 11, 12, 13, "8", 22]
    assert "8 more" in draw_film(steps, "long")


def test_labels_are_escaped() -> None:
    program = recorded("AllReduceRing", op_of("all_reduce", 64), 4)
    labels = type(program.labels)(f"<b>{label}" for label in program.labels)
    markup = film_markup(algorithm_steps(replace(program, labels=labels)))
    assert "<b>" not in markup
    assert "&lt;b&gt;" in markup
