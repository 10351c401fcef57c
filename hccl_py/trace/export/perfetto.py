"""Scenes as TrackEvent protobuf, which ui.perfetto.dev opens.

The messages are those of the `perfetto` package. Texts are interned, packets are compressed in
blocks, and a block is written as soon as it is full, so that neither file nor memory grows much.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import IO, Any

from hccl_py.errors import ParameterError
from hccl_py.trace.export.events import FLOWS, Arg, Counter, Event, Process, Track, sections
from hccl_py.trace.scene import Scene

__all__ = ["check_perfetto", "write_perfetto"]

_BLOCK = 4096
"""Packets that are compressed together."""

_TEMPLATES = 4096
"""Packets kept to be filled in again."""

_SEQUENCE = 1


def check_perfetto() -> None:
    """Raise ParameterError where the package is missing, before the work for it."""
    _schema()


def write_perfetto(file: IO[bytes], scenes: Mapping[str, Scene], flows: int = FLOWS) -> None:
    """Write scenes by their names, "" for a single one, with at most so many flows each.

    Timestamps are nanoseconds; what takes less than one is a moment.
    """
    writer = _Writer(file)
    for section in sections(scenes, flows):
        process = writer.process(section.process)
        for track, events in section.tracks:
            uuid = writer.track(track, process, section.process)
            last = 0
            for event in events:
                last = writer.event(event, uuid, last)
        for counter in section.counters:
            writer.counter(counter, process)
    writer.flush()


def _schema() -> Any:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise ParameterError(
            "Perfetto files need the package perfetto.",
            "pip install 'hccl-py[perfetto]' brings it; --chrome FILE needs nothing.",
        ) from None
    return perfetto_trace_pb2


class _Writer:
    """Turns events into packets of one sequence."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._pb = file, _schema()
        self._block = self._pb.Trace()
        self._texts = self._pb.InternedData()
        self._known: dict[tuple[str, str], int] = {}
        self._templates: dict[tuple[str, str, tuple[Arg, ...]], Any] = {}
        self._uuids = 0
        self._ranks: dict[int, int] = {}
        self._begin()
        self._end = self._packet(self._pb.TrackEvent.TYPE_SLICE_END)

    def _begin(self) -> None:
        """Write the root, which says that processes and threads have an order."""
        kinds = self._pb.TrackDescriptor
        packet = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE,
            sequence_flags=self._pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED,
        )
        packet.track_descriptor.uuid = 0
        packet.track_descriptor.process_ordering = kinds.PROCESS_ORDERING_EXPLICIT
        packet.track_descriptor.thread_ordering = kinds.THREAD_ORDERING_EXPLICIT
        self._write(self._pb.Trace(packet=[packet]).SerializeToString())

    def process(self, process: Process) -> int:
        """Describe a process; return its number."""
        uuid, descriptor = self._descriptor()
        descriptor.process.pid = process.place
        descriptor.process.process_name = process.name
        descriptor.process.legacy_sort_index = process.place
        descriptor.sibling_order_rank = process.place
        descriptor.child_ordering = self._pb.TrackDescriptor.EXPLICIT
        return uuid

    def track(self, track: Track, parent: int, process: Process) -> int:
        """Describe a track of a process; return its number."""
        uuid, descriptor = self._descriptor()
        descriptor.sibling_order_rank = uuid
        if track.is_stream:
            descriptor.thread.pid = process.place
            descriptor.thread.tid = uuid
            descriptor.thread.thread_name = track.name
            descriptor.thread.legacy_sort_index = uuid
        else:
            descriptor.parent_uuid = parent
            descriptor.name = track.name
        return uuid

    def counter(self, counter: Counter, parent: int) -> None:
        """Write a counter in percent, all of them on one scale."""
        uuid, descriptor = self._descriptor()
        descriptor.parent_uuid = parent
        descriptor.name = counter.name
        descriptor.sibling_order_rank = uuid
        descriptor.counter.unit_name = "%"
        descriptor.counter.y_axis_share_key = "load"
        packet = self._packet(self._pb.TrackEvent.TYPE_COUNTER)
        packet.track_event.track_uuid = uuid
        values = zip(counter.at_us.tolist(), counter.percent.tolist(), strict=True)
        for at_us, percent in values:
            packet.timestamp = round(at_us * 1e3)
            packet.track_event.double_counter_value = percent
            self._block.packet.append(packet)
        self._flush_if_full()

    def event(self, event: Event, uuid: int, last: int) -> int:
        """Write an event that begins at `last` nanoseconds at the earliest; return where it ends.

        Slices of a track may not overlap: of times that were measured, a stream's can.
        """
        begin = max(round(event.begin_us * 1e3), last)
        end = max(round(event.end_us * 1e3), begin)
        kinds = self._pb.TrackEvent
        packet = self._block.packet.add()
        packet.CopyFrom(self._template(event))
        packet.timestamp = begin
        into = packet.track_event
        into.type = kinds.TYPE_SLICE_BEGIN if end > begin else kinds.TYPE_INSTANT
        into.track_uuid = uuid
        for name, value in event.own:
            self._argue(into, name, value)
        if event.flow_out >= 0:
            into.flow_ids.append(event.flow_out + 1)
        if event.flow_in >= 0:
            into.terminating_flow_ids.append(event.flow_in + 1)
        if end > begin:
            self._end.timestamp = end
            self._end.track_event.track_uuid = uuid
            self._block.packet.append(self._end)
        self._flush_if_full()
        return end

    def _descriptor(self) -> tuple[int, Any]:
        self._uuids += 1
        packet = self._block.packet.add(trusted_packet_sequence_id=_SEQUENCE)
        packet.track_descriptor.uuid = self._uuids
        return self._uuids, packet.track_descriptor

    def _packet(self, kind: int) -> Any:
        packet = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE,
            sequence_flags=self._pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE,
        )
        packet.track_event.type = kind
        return packet

    def _template(self, event: Event) -> Any:
        """Return a packet that has what the event shares with others."""
        key = event.name, event.category, event.shared
        packet = self._templates.get(key)
        if packet is None:
            if len(self._templates) >= _TEMPLATES:
                self._templates.clear()
            packet = self._templates[key] = self._packet(self._pb.TrackEvent.TYPE_INSTANT)
            packet.track_event.category_iids.append(self._text("event_categories", event.category))
            packet.track_event.name_iid = self._text("event_names", event.name)
            for name, value in event.shared:
                self._argue(packet.track_event, name, value)
        return packet

    def _argue(self, event: Any, name: str, value: int | str) -> None:
        into = event.debug_annotations.add()
        into.name_iid = self._text("debug_annotation_names", name)
        if isinstance(value, int):
            into.int_value = value
        else:
            into.string_value_iid = self._text("debug_annotation_string_values", value)

    def _text(self, table: str, text: str) -> int:
        """Return the number of a text, which goes in front of the block that first uses it."""
        number = self._known.get((table, text))
        if number is None:
            number = self._known[table, text] = len(self._known) + 1
            entry = getattr(self._texts, table).add()
            entry.iid = number
            if table == "debug_annotation_string_values":
                entry.str = text.encode()
            else:
                entry.name = text
        return number

    def _flush_if_full(self) -> None:
        if len(self._block.packet) >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write what is not written yet."""
        texts = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE,
            sequence_flags=self._pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE,
            interned_data=self._texts,
        )
        head = self._pb.Trace(packet=[texts]).SerializeToString()
        self._write(head + self._block.SerializeToString())
        # What is cleared keeps its memory: a new one for every block gives it back.
        self._texts, self._block = self._pb.InternedData(), self._pb.Trace()

    def _write(self, packets: bytes) -> None:
        packed = self._pb.TracePacket(compressed_packets=zlib.compress(packets, 3))
        self._file.write(self._pb.Trace(packet=[packed]).SerializeToString())
