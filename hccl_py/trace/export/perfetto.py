"""Scenes as TrackEvent protobuf, which ui.perfetto.dev opens.

The messages are those of the `perfetto` package. Texts are interned, packets are compressed in
blocks, and a block is written as soon as it is full, so that neither file nor memory grows much.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from hccl_py.errors import ParameterError
from hccl_py.trace.export.events import sections
from hccl_py.trace.export.limits import FLOWS
from hccl_py.trace.export.slices import Arg, Counter, Process, Slice, Track
from hccl_py.trace.scene import Scene

_BLOCK = 4096
"""Packets that are compressed together."""

_MOST_KEPT = 1 << 16
"""Parts of messages that are kept to be used again."""

_SEQUENCE = 1


def check_perfetto() -> None:
    """Raise ParameterError where the package is missing, before the work for it."""
    _schema()


def write_perfetto(file: IO[bytes], scenes: Mapping[str, Scene], flows: int = FLOWS) -> None:
    """Write scenes by their names, "" for a single one, with at most so many flows each.

    Timestamps are nanoseconds; what takes less than one is a moment.
    """
    writer = _PacketWriter(file)
    for section in sections(scenes, flows):
        process = writer.process(section.process)
        for track, events in section.tracks:
            ends = writer.track(track, process, section.process)
            last = 0
            for event in events:
                last = writer.event(event, ends, last)
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


class _EventFrames(NamedTuple):
    """Serialized frames of a track's events: the begin of a slice, a moment, the end of a slice."""

    begin: bytes
    moment: bytes
    end: bytes


class _PacketWriter:
    """Turns events into packets of one sequence.

    Building a message for every task would take most of the time. Parts of messages, one behind the
    other, are the message that has them all; so what events have in common is serialized once, and
    only put into its frames here.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._pb = file, _schema()
        self._block: list[bytes] = []
        self._texts = self._pb.InternedData()
        self._known: dict[tuple[str, str], int] = {}
        self._shared: dict[int, tuple[Slice, bytes]] = {}
        self._heads: dict[tuple[str, str], bytes] = {}
        self._own: dict[Arg, bytes] = {}
        self._uuids = 0
        flags = self._pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        self._head = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE, sequence_flags=flags
        )
        self._packet_tag = _tag(self._pb.Trace.PACKET_FIELD_NUMBER)
        self._event_tag = _tag(self._pb.TracePacket.TRACK_EVENT_FIELD_NUMBER)
        self._begin()

    def _begin(self) -> None:
        """Write the root packet, which orders processes and threads and names hccl-py as the
        writer. It is not compressed: hccl-py looks for the name before it replaces a file.
        """
        kinds = self._pb.TrackDescriptor
        packet = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE,
            sequence_flags=self._pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED,
        )
        packet.track_descriptor.uuid = 0
        packet.track_descriptor.description = "hccl-py"
        packet.track_descriptor.process_ordering = kinds.PROCESS_ORDERING_EXPLICIT
        packet.track_descriptor.thread_ordering = kinds.THREAD_ORDERING_EXPLICIT
        self._file.write(self._pb.Trace(packet=[packet]).SerializeToString())

    def process(self, process: Process) -> int:
        """Describe a process; return its number."""
        descriptor = self._descriptor()
        descriptor.process.pid = process.place
        descriptor.process.process_name = process.name
        descriptor.process.legacy_sort_index = process.place
        descriptor.sibling_order_rank = process.place
        descriptor.child_ordering = self._pb.TrackDescriptor.EXPLICIT
        return self._described(descriptor)

    def track(self, track: Track, parent: int, process: Process) -> _EventFrames:
        """Describe a track of a process; return how its events begin and end."""
        descriptor = self._descriptor()
        uuid = descriptor.sibling_order_rank = descriptor.uuid
        if track.is_stream:
            descriptor.thread.pid = process.place
            descriptor.thread.tid = uuid
            descriptor.thread.thread_name = track.name
            descriptor.thread.legacy_sort_index = uuid
        else:
            descriptor.parent_uuid = parent
            descriptor.name = track.name
        self._described(descriptor)
        event = self._pb.TrackEvent
        kinds = (event.TYPE_SLICE_BEGIN, event.TYPE_INSTANT, event.TYPE_SLICE_END)
        return _EventFrames(
            *(event(type=kind, track_uuid=uuid).SerializeToString() for kind in kinds)
        )

    def counter(self, counter: Counter, parent: int) -> None:
        """Write a counter in percent, all of them on one scale."""
        descriptor = self._descriptor()
        descriptor.parent_uuid = parent
        descriptor.name = counter.name
        descriptor.sibling_order_rank = descriptor.uuid
        descriptor.counter.unit_name = "%"
        descriptor.counter.y_axis_share_key = "load"
        event = self._pb.TrackEvent(
            type=self._pb.TrackEvent.TYPE_COUNTER, track_uuid=self._described(descriptor)
        )
        values = zip(counter.at_us.tolist(), counter.percent.tolist(), strict=True)
        for at_us, percent in values:
            event.double_counter_value = percent
            self._add(round(at_us * 1e3), event.SerializeToString())

    def event(self, event: Slice, ends: _EventFrames, last: int) -> int:
        """Write an event that begins at `last` nanoseconds at the earliest; return where it ends.

        Slices of a track may not overlap: of times that were measured, a stream's can.
        """
        begin = max(round(event.begin_us * 1e3), last)
        end = max(round(event.end_us * 1e3), begin)
        parts = [ends.begin if end > begin else ends.moment, self._of_shared(event)]
        parts += [self._own.get(arg) or self._of_own(arg) for arg in event.own]
        if event.flow_out >= 0 or event.flow_in >= 0:
            parts.append(self._of_flows(event))
        self._add(begin, b"".join(parts))
        if end > begin:
            self._add(end, ends.end)
        return end

    def _of_shared(self, event: Slice) -> bytes:
        """Return the part of an event that it shares with others, known by the tuple that they
        share.
        """
        known = self._shared.get(id(event.shared))
        if known is not None and known[0][:2] == event[:2]:
            return known[1]
        if len(self._shared) >= _MOST_KEPT:
            self._shared.clear()
        head = self._heads.get(event[:2]) or self._of_head(event.name, event.category)
        args = [self._own.get(arg) or self._of_own(arg) for arg in event.shared]
        part = b"".join((head, *args))
        if event.shared:
            self._shared[id(event.shared)] = event, part
        return part

    def _of_head(self, name: str, category: str) -> bytes:
        if len(self._heads) >= _MOST_KEPT:
            self._heads.clear()
        message = self._pb.TrackEvent(
            category_iids=[self._text("event_categories", category)],
            name_iid=self._text("event_names", name),
        )
        part: bytes = message.SerializeToString()
        self._heads[name, category] = part
        return part

    def _of_own(self, arg: Arg) -> bytes:
        if len(self._own) >= _MOST_KEPT:
            self._own.clear()
        message = self._pb.TrackEvent(debug_annotations=[self._annotation(*arg)])
        part: bytes = message.SerializeToString()
        self._own[arg] = part
        return part

    def _of_flows(self, event: Slice) -> bytes:
        message = self._pb.TrackEvent()
        if event.flow_out >= 0:
            message.flow_ids.append(event.flow_out + 1)
        if event.flow_in >= 0:
            message.terminating_flow_ids.append(event.flow_in + 1)
        part: bytes = message.SerializeToString()
        return part

    def _annotation(self, name: str, value: int | str) -> Any:
        number = self._text("debug_annotation_names", name)
        if isinstance(value, int):
            return self._pb.DebugAnnotation(name_iid=number, int_value=value)
        text = self._text("debug_annotation_string_values", value)
        return self._pb.DebugAnnotation(name_iid=number, string_value_iid=text)

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

    def _descriptor(self) -> Any:
        self._uuids += 1
        return self._pb.TrackDescriptor(uuid=self._uuids)

    def _described(self, descriptor: Any) -> int:
        """Add the packet of a descriptor; return its number."""
        packet = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE, track_descriptor=descriptor
        )
        self._block.append(self._pb.Trace(packet=[packet]).SerializeToString())
        return int(descriptor.uuid)

    def _add(self, timestamp: int, event: bytes) -> None:
        """Put an event into its packet, and the packet into the trace."""
        self._head.timestamp = timestamp
        head = self._head.SerializeToString()
        inside = self._event_tag + _varint(len(event))
        length = _varint(len(head) + len(inside) + len(event))
        self._block.append(b"".join((self._packet_tag, length, head, inside, event)))
        if len(self._block) >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write the packets that are not written yet."""
        texts = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE,
            sequence_flags=self._pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE,
            interned_data=self._texts,
        )
        head = self._pb.Trace(packet=[texts]).SerializeToString()
        self._write(head + b"".join(self._block))
        # What is cleared keeps its memory: a new one for every block gives it back.
        self._texts = self._pb.InternedData()
        self._block.clear()

    def _write(self, packets: bytes) -> None:
        packed = self._pb.TracePacket(compressed_packets=zlib.compress(packets, 3))
        self._file.write(self._pb.Trace(packet=[packed]).SerializeToString())


def _tag(field: int) -> bytes:
    """Return the tag of a field that has a length."""
    return _varint(field << 3 | 2)


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
