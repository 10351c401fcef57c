"""The order of issue, and the waits between streams: all that a trace orders, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_interop.chakra.order import moves_of, ordered
from hccl_interop.chakra.values import NodeType, TraceNode
from hccl_py.errors import FileError


def node(id: int, deps: tuple[int, ...] = (), kind: NodeType = NodeType.COMP_NODE) -> TraceNode:
    return TraceNode(id, f"{id}", kind, deps, 1, None, False, 0, 0, None)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[TraceNode], list[int]]:
    """Nodes in any order of the file, without a cycle, and their streams, -1 for none."""
    size = draw(st.integers(1, 12))
    place = draw(st.permutations(range(size)))
    nodes: list[TraceNode] = [node(0)] * size
    for number in range(size):
        before = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        nodes[place[number]] = node(number, tuple(place[other] for other in before))
    streams = draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    return nodes, streams


def closed(pairs: set[tuple[int, int]], size: int) -> set[tuple[int, int]]:
    """Return all (earlier, later) that follow from pairs."""
    found = set(pairs)
    for middle in range(size):
        before = [a for a, b in found if b == middle]
        after = [b for a, b in found if a == middle]
        found |= {(a, b) for a in before for b in after}
    return found


@given(graphs())
def test_nodes_stand_behind_those_that_they_depend_on(
    graph: tuple[list[TraceNode], list[int]],
) -> None:
    nodes, _ = graph
    found = ordered(nodes)
    assert sorted(n.id for n in found) == sorted(n.id for n in nodes)
    ids = {n.id: {nodes[dep].id for dep in n.deps} for n in nodes}
    in_file = [n.id for n in nodes]
    done: set[int] = set()
    for n in found:
        assert {found[dep].id for dep in n.deps} == ids[n.id]
        could = [id for id in in_file if id not in done and ids[id] <= done]
        assert n.id == could[0]
        done.add(n.id)


@given(graphs())
def test_waits_say_what_the_trace_orders_and_no_more(
    graph: tuple[list[TraceNode], list[int]],
) -> None:
    nodes, streams = graph
    found = ordered(nodes)
    moves = moves_of(found, streams, buffered=False)
    assert [m.position for m in moves] == [k for k in range(len(found)) if streams[k] >= 0]
    number = {m.position: k for k, m in enumerate(moves)}
    deps = {(dep, k) for k, n in enumerate(found) for dep in n.deps}
    meant = {
        (number[a], number[b]) for a, b in closed(deps, len(found)) if a in number and b in number
    }
    rows = list(enumerate(moves))
    in_line = {(a, b) for a, m in rows for b, other in rows if a < b and m.stream == other.stream}
    waits = {(wait, k) for k, m in rows for wait in m.waits}
    assert closed(waits | in_line, len(moves)) == closed(meant | in_line, len(moves))
    for wait in waits:
        left = closed((waits - {wait}) | in_line, len(moves))
        assert wait not in left, "a wait that others say"


def test_what_depends_on_a_buffered_send_depends_on_what_that_does() -> None:
    send = node(1, (0,), NodeType.COMM_SEND_NODE)
    nodes, streams = [node(0), send, node(2, (1,))], [0, 1, 2]
    assert [m.waits for m in moves_of(nodes, streams, buffered=False)] == [(), (0,), (1,)]
    assert [m.waits for m in moves_of(nodes, streams, buffered=True)] == [(), (0,), (0,)]


def test_a_cycle_is_named_by_one_of_its_nodes() -> None:
    nodes = [node(7, (2,)), node(8, (2,)), node(9, (1,)), node(5)]
    with pytest.raises(FileError, match=r"^node [89]: dependencies: expected nodes that end"):
        ordered(nodes)
