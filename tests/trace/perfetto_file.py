"""What stands in a Perfetto file, read with the package's own classes, texts put back."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

BEGIN, END = schema.TrackEvent.TYPE_SLICE_BEGIN, schema.TrackEvent.TYPE_SLICE_END
INSTANT, COUNTER = schema.TrackEvent.TYPE_INSTANT, schema.TrackEvent.TYPE_COUNTER


@dataclass
class Slice:
    """A slice or a moment, in nanoseconds."""

    name: str
    category: str
    begin: int
    end: int
    args: dict[str, int | str]
    flows_out: list[int]
    flows_in: list[int]


@dataclass
class Row:
    """A track: its process, its name, what is on it."""

    process: str
    name: str
    is_thread: bool
    slices: list[Slice] = field(default_factory=list)
    values: list[tuple[int, float]] = field(default_factory=list)


def packets(path: Path) -> Iterator[Any]:
    """Yield all packets, those that are compressed unpacked."""
    trace = schema.Trace()
    trace.ParseFromString(path.read_bytes())
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            block = schema.Trace()
            block.ParseFromString(zlib.decompress(packet.compressed_packets))
            yield from block.packet
        else:
            yield packet


def read_perfetto(path: Path) -> list[Row]:
    """Return the tracks, as a viewer would build them: every slice must nest and end."""
    rows: dict[int, Row] = {}
    processes: dict[int, str] = {}
    texts: dict[tuple[str, int], str] = {}
    tids: set[tuple[int, int]] = set()
    for packet in packets(path):
        assert packet.trusted_packet_sequence_id
        for table, entries in packet.interned_data.ListFields():
            for entry in entries:
                text = entry.str.decode() if hasattr(entry, "str") else entry.name
                assert texts.setdefault((table.name, entry.iid), text) == text
        if packet.HasField("track_descriptor"):
            describe(packet.track_descriptor, rows, processes, tids)
        elif packet.HasField("track_event"):
            put(packet, rows, texts)
    assert all(one.end >= one.begin for row in rows.values() for one in row.slices)
    return list(rows.values())


def describe(
    track: Any, rows: dict[int, Row], processes: dict[int, str], tids: set[tuple[int, int]]
) -> None:
    if not track.uuid:
        assert track.process_ordering == schema.TrackDescriptor.PROCESS_ORDERING_EXPLICIT
        return
    assert track.uuid not in rows
    assert track.uuid not in processes
    if track.HasField("process"):
        processes[track.uuid] = track.process.process_name
        processes[-track.process.pid] = track.process.process_name
    elif track.HasField("thread"):
        place = track.thread.pid, track.thread.tid
        assert place not in tids
        tids.add(place)
        rows[track.uuid] = Row(processes[-track.thread.pid], track.thread.thread_name, True)
    else:
        rows[track.uuid] = Row(processes[track.parent_uuid], track.name, False)


def put(packet: Any, rows: dict[int, Row], texts: dict[tuple[str, int], str]) -> None:
    event, row = packet.track_event, rows[packet.track_event.track_uuid]
    if event.type == COUNTER:
        row.values.append((packet.timestamp, event.double_counter_value))
        return
    if event.type == END:
        assert row.slices[-1].end == -1
        row.slices[-1].end = packet.timestamp
        return
    args: dict[str, int | str] = {}
    for argument in event.debug_annotations:
        name = texts["debug_annotation_names", argument.name_iid]
        assert name not in args or name == "left out"
        args[name] = (
            argument.int_value
            if argument.HasField("int_value")
            else texts["debug_annotation_string_values", argument.string_value_iid]
        )
    if row.slices:
        assert packet.timestamp >= row.slices[-1].end >= 0
    row.slices.append(
        Slice(
            texts["event_names", event.name_iid],
            texts["event_categories", event.category_iids[0]],
            packet.timestamp,
            -1 if event.type == BEGIN else packet.timestamp,
            args,
            list(event.flow_ids),
            list(event.terminating_flow_ids),
        )
    )
