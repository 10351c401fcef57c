"""Checks between the files of a trace: groups, calls of a group, messages, names of streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from hccl_interop.chakra.reading import CHAKRA
from hccl_interop.chakra.values import WORLD, Collective, RankFile, Trace, TraceGroup, TraceMessage
from hccl_py.documents.checks import defect
from hccl_py.documents.kind import named
from hccl_py.errors import FileError


def checked_trace(name: str, ranks: tuple[RankFile, ...]) -> Trace:
    """Return the trace of all ranks; ProgramFileError, with the file, where they do not fit."""
    for rank in ranks:
        named(f"{rank.file:.200}", CHAKRA, partial(_check_alone, rank, ranks))
    return named(f"{name:.200}", CHAKRA, lambda: _joined(name, ranks))


def _check_alone(rank: RankFile, ranks: tuple[RankFile, ...]) -> None:
    """Check the references of one file to other ranks."""
    size = len(ranks)
    if rank.streams != ranks[0].streams:
        raise defect("GlobalMetadata", "the streams of rank 0", "others", "Name the same.")
    for name, group in rank.groups.items():
        beyond = next((member for member in group.ranks if member >= size), None)
        if beyond is not None:
            raise _beyond(f"group {name}", beyond, size)
        if len(set(group.ranks)) < len(group.ranks):
            raise defect(f"group {name}", "every rank once", "one twice", "List ranks.")
    for node in rank.nodes:
        if isinstance(node.call, TraceMessage):
            for end in (node.call.source, node.call.destination):
                if end >= size:
                    raise _beyond(f"node {node.id}", end, size)


def _beyond(at: str, rank: int, size: int) -> FileError:
    hint = "Every rank has a file, PREFIX.RANK.et."
    return defect(at, f"ranks from 0 to {size - 1}, those with files", f"rank {rank}", hint)


class _Calls(NamedTuple):
    """The calls of a group that a rank makes, in its order, with their nodes."""

    calls: list[Collective]
    nodes: list[int]


def _joined(name: str, ranks: tuple[RankFile, ...]) -> Trace:
    calls: dict[str, dict[int, _Calls]] = {}
    ends: dict[tuple[int, int], tuple[list[TraceMessage], list[TraceMessage]]] = {}
    streams: dict[tuple[int, int], set[int | None]] = {}
    for number, rank in enumerate(ranks):
        for node in rank.nodes:
            if isinstance(node.call, Collective):
                mine = calls.setdefault(node.call.group, {})
                listed = mine.setdefault(number, _Calls([], []))
                listed.calls.append(node.call)
                listed.nodes.append(node.id)
            elif isinstance(node.call, TraceMessage):
                pair = node.call.source, node.call.destination
                both = ends.setdefault(pair, ([], []))
                both[number != node.call.source].append(node.call)
                streams.setdefault(pair, set()).add(node.stream if rank.streams else None)
    groups = _groups(ranks, calls)
    for key, by_rank in calls.items():
        _check_calls(key, groups[key], by_rank)
    in_order = {
        pair: _in_order(pair, *both) and len(streams[pair]) == 1 for pair, both in ends.items()
    }
    return Trace(name, ranks, groups, in_order)


def _groups(
    ranks: tuple[RankFile, ...], calls: dict[str, dict[int, _Calls]]
) -> dict[str, TraceGroup]:
    """Return the groups of all calls: as the files state them, else of the ranks that call."""
    all_ranks = tuple(range(len(ranks)))
    stated: dict[str, TraceGroup] = {}
    for rank in ranks:
        for name, group in rank.groups.items():
            group = group._replace(ranks=group.ranks or all_ranks)
            if stated.setdefault(name, group) != group:
                where = f"others in {rank.file:.200}"
                raise defect(f"group {name}", "the same ranks in all files", where, "Name it anew.")
    found: dict[str, TraceGroup] = {}
    for name, by_rank in calls.items():
        deduced = all_ranks if name == WORLD else tuple(sorted(by_rank))
        found[name] = stated.get(name, TraceGroup(deduced, name))
    return found


def _check_calls(name: str, group: TraceGroup, by_rank: dict[int, _Calls]) -> None:
    """Refuse a call that not all ranks of its group make alike."""
    first, members = group.ranks[0], set(group.ranks)
    for rank, listed in by_rank.items():
        if rank not in members:
            at = f"rank {rank}: node {listed.nodes[0]}"
            hint = f"Its ranks are {_first(group.ranks)}."
            raise defect(at, f"a rank of group {name}", "another rank", hint)
    wanted = by_rank.get(first, _Calls([], []))
    for call, node in zip(*wanted, strict=True):
        if call.root >= len(group.ranks):
            at, most = f"rank {first}: node {node}: root", len(group.ranks) - 1
            raise defect(at, f"a rank of group {name}, 0 to {most}", str(call.root), "Name one.")
    for rank in group.ranks:
        listed = by_rank.get(rank, _Calls([], []))
        if listed.calls == wanted.calls:
            continue
        pairs = zip(listed.calls, wanted.calls, strict=False)
        number = next((k for k, (mine, its) in enumerate(pairs) if mine != its), None)
        hint = "All ranks of a group make the same calls in the same order."
        if number is None:
            counts = len(wanted.calls), len(listed.calls)
            at = f"group {name}"
            raise defect(
                at, f"{counts[0]} calls, as of rank {first}", f"{counts[1]} of rank {rank}", hint
            )
        at = f"rank {rank}: node {listed.nodes[number]}"
        expected = (
            f"{_phrase(wanted.calls[number])}, call {number + 1} of group {name} on rank {first}"
        )
        raise defect(at, expected, _phrase(listed.calls[number]), hint)


def _phrase(call: Collective) -> str:
    return f"{call.op} of {call.size} bytes"


def _first(ranks: Iterable[int]) -> str:
    shown = list(ranks)
    return ", ".join(map(str, shown[:8])) + " ..." * (len(shown) > 8)


def _in_order(
    pair: tuple[int, int], sent: list[TraceMessage], received: list[TraceMessage]
) -> bool:
    """Return True if the k-th message sent is the k-th received; FileError where messages do not
    match, tag by tag.
    """
    if sent == received:
        return True
    at = f"messages from rank {pair[0]} to rank {pair[1]}"
    hint = "The k-th that is sent with a tag is the k-th that is received with it."
    counts = Counter(m.tag for m in sent), Counter(m.tag for m in received)
    for tag in sorted(counts[0] | counts[1]):
        if counts[0][tag] != counts[1][tag]:
            expected = f"{counts[0][tag]} of tag {tag}, as are sent"
            raise defect(at, expected, f"{counts[1][tag]} received", hint)
    for mine, its in zip(_by_tag(sent), _by_tag(received), strict=True):
        if mine != its:
            expected = f"{mine.size} bytes with tag {mine.tag}, as are sent"
            raise defect(at, expected, f"{its.size} received", hint)
    return False


def _by_tag(messages: list[TraceMessage]) -> Iterator[TraceMessage]:
    yield from sorted(messages, key=lambda message: message.tag)
