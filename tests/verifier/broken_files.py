"""For every class of findings a program file that shows it, and the same one put right.

`example(True)` and `example(False)` differ in one detail. All are verified against a product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.verifier.sketches import Sketch, all_gather, all_reduce, sketch

PUT = {"name": "broadcast", "dtype": "fp32", "count": 16, "root": 1}
GIB = 1 << 30


def wait_without_post(wrong: bool) -> Sketch:
    """Rank 0 does not tell rank 2 that its CCL is ready."""
    drawn = all_gather()
    if wrong:
        drawn.drop(0, "post", 2, 0)
    return drawn


def unmatched_post(wrong: bool) -> Sketch:
    """Rank 2 does not wait until rank 0 has read from it."""
    drawn = all_gather()
    if wrong:
        drawn.drop(2, "wait", 0, 1)
    return drawn


def deadlock_cycle(wrong: bool) -> Sketch:
    """Ranks wait for the Ack of their neighbour before they send their own; one posts first."""
    drawn = all_gather()
    for rank in range(4 if wrong else 3):
        drawn.move(rank, ["wait", (rank + 1) % 4, 0], 2)
    return drawn


def notify_overrun(wrong: bool) -> Sketch:
    """Rank 1 takes the Ack for its DataSignal to rank 0, too."""
    drawn = all_gather()
    index = 0 if wrong else 2
    drawn.at(1)[drawn.find(1, "post", 0, 1)] = ["post", 0, index]
    drawn.at(0)[drawn.find(0, "wait", 1, 1)] = ["wait", 1, index]
    return drawn


def waits_unordered(wrong: bool) -> Sketch:
    """Rank 0's main and sub stream wait for one notify that counts, or for one each."""
    drawn = all_gather()
    drawn.document["notifies"] = "counting"
    index = 2 if wrong else 3
    drawn.put(1, ["post", 0, 2], ["post", 0, index])
    drawn.put(0, ["local_post", 1, 0], ["wait", 1, 2], ["local_wait", 0])
    drawn.put(0, ["local_wait", 0], ["wait", 1, index], ["local_post", 0, 0], stream=1)
    return drawn


def notify_index_out_of_range(wrong: bool) -> Sketch:
    """Ranks 0 and 1 have two notifies each way, and take the third one."""
    drawn = all_gather()
    drawn.at(1)[drawn.find(1, "post", 0, 1)] = ["post", 0, 2]
    drawn.at(0)[drawn.find(0, "wait", 1, 1)] = ["wait", 1, 2]
    return _requesting(drawn, 2 if wrong else 3)


def undeclared_channel(wrong: bool) -> Sketch:
    """Ranks 0 and 3 request no transport to each other."""
    drawn = _requesting(all_gather(), 2)
    if wrong:
        for rank, peer in ((0, 3), (3, 0)):
            del drawn.document["resources"][str(rank)]["channel_notifies"][str(peer)]
    return drawn


def resource_mismatch(wrong: bool) -> Sketch:
    """Rank 3 requests three notifies for its transport to rank 0, which requests two."""
    drawn = _requesting(all_gather(), 2)
    if wrong:
        drawn.document["resources"]["3"]["channel_notifies"]["0"] = 3
    return drawn


def _requesting(drawn: Sketch, notifies: int) -> Sketch:
    """Let every rank request notifies for its transports to all others."""
    drawn.document["resources"] = {
        str(r): {"channel_notifies": {str(p): notifies for p in range(4) if p != r}}
        for r in range(4)
    }
    return drawn


def undeclared_stream(wrong: bool) -> Sketch:
    """Rank 2 copies its own part on a sub stream that it has not requested."""
    drawn = _forked()
    drawn.document["resources"] = {"2": {"streams": 1 if wrong else 2}}
    return drawn


def stream_not_started(wrong: bool) -> Sketch:
    """Rank 2's sub stream does not wait for main."""
    drawn = _forked()
    if wrong:
        drawn.drop(2, "local_post")
        drawn.drop(2, "local_wait", stream=1)
    return drawn


def stream_not_joined(wrong: bool) -> Sketch:
    """Rank 2's main does not wait for its sub stream."""
    drawn = _forked()
    if wrong:
        drawn.drop(2, "local_wait")
        drawn.drop(2, "local_post", stream=1)
    return drawn


def resource_unused(wrong: bool) -> Sketch:
    """Rank 2 requests two sub streams for one."""
    drawn = _forked()
    drawn.document["resources"] = {"2": {"streams": 3 if wrong else 2}}
    return drawn


def _forked() -> Sketch:
    """A mesh all-gather in which rank 2 copies its own part on sub 0."""
    drawn = all_gather()
    tasks = drawn.at(2)
    copy = tasks.pop(1)
    tasks.insert(0, ["local_post", 1, 0])
    tasks.append(["local_wait", 0])
    drawn.put(2, ["local_wait", 0], copy, ["local_post", 0, 0], stream=1)
    return drawn


def resource_exceeded(wrong: bool) -> Sketch:
    """Rank 0 requests more notifies than a device has."""
    drawn = all_gather()
    spare = 8192 - 3 * 2
    drawn.document["resources"] = {
        "0": {
            "local_notifies": {"0": spare + wrong},
            "channel_notifies": {"1": 2, "2": 2, "3": 2},
        }
    }
    return drawn


def connection_unordered(wrong: bool) -> Sketch:
    """Rank 1 writes to rank 0 from two streams; sub 0 starts before main has written, or after."""
    drawn = _put("rdma")
    drawn.put(0, ["post", 1, 0], ["wait", 1, 1], ["copy", ["CCL", 0, 64], ["OUT", 0, 64]])
    drawn.put(0, ["post", 1, 2])
    first, second = ([name, 0, 32] for name in ("IN", "CCL")), ([n, 32, 32] for n in ("IN", "CCL"))
    write, start = ["write", 0, *first], ["local_post", 1, 0]
    drawn.put(1, ["wait", 0, 0], *([start, write] if wrong else [write, start]))
    drawn.put(1, ["local_wait", 0], ["post", 0, 1], ["wait", 0, 2])
    drawn.put(1, ["local_wait", 0], ["write", 0, *second], ["local_post", 0, 0], stream=1)
    return drawn


def rdma_source_reuse(wrong: bool) -> Sketch:
    """Rank 1 clears what it has sent before rank 0 has acknowledged it, or after."""
    drawn = _put("rdma")
    drawn.put(0, ["post", 1, 0], ["wait", 1, 1], ["copy", ["CCL", 0, 64], ["OUT", 0, 64]])
    drawn.put(0, ["post", 1, 2])
    drawn.put(1, ["copy", ["IN", 0, 64], ["CCL", 64, 64]], ["wait", 0, 0])
    drawn.put(1, ["write", 0, ["CCL", 64, 64], ["CCL", 0, 64]], ["post", 0, 1], ["wait", 0, 2])
    clear = ["copy", ["ZERO", 0, 64], ["CCL", 64, 64]]
    drawn.document["buffers"]["1"]["ZERO"] = 64
    drawn.put(1, ["copy", ["IN", 0, 64], ["ZERO", 0, 64]])
    drawn.at(1).insert(0, drawn.at(1).pop())
    drawn.at(1).insert(5 if wrong else 7, clear)
    return drawn


def _put(link: str = "sdma") -> Sketch:
    """A broadcast of two ranks from rank 1, which has its own part; no tasks for the transport."""
    drawn = sketch(PUT, 2, {"IN": 64, "OUT": 64, "CCL": 128}, link)
    drawn.put(1, ["copy", ["IN", 0, 64], ["OUT", 0, 64]])
    return drawn


def silent_rank(wrong: bool) -> Sketch:
    """Rank 3 does nothing."""
    drawn = all_gather()
    if wrong:
        drawn.at(3).clear()
    return drawn


def race_rw(wrong: bool) -> Sketch:
    """Rank 1 reads from rank 0 before it waits for rank 0's Ack."""
    drawn = all_gather()
    if wrong:
        drawn.move(1, ["read", 0], drawn.find(1, "wait", 0, 0))
    return drawn


def race_ww(wrong: bool) -> Sketch:
    """Ranks 1 and 2 write into the same place of rank 0, or side by side."""
    drawn = all_gather()
    for rank in (1, 2):
        slot = 64 if wrong else 64 * rank
        drawn.at(rank).insert(drawn.find(rank, "wait", 0, 0) + 1, _write(rank, slot))
    _buffer(drawn, "CCL", 256)
    return drawn


def _write(rank: int, offset: int) -> list[Any]:
    return ["write", 0, ["IN", 0, 64], ["CCL", offset, 64]]


def _buffer(drawn: Sketch, name: str, size: int) -> None:
    for buffers in drawn.document["buffers"].values():
        buffers[name] = size


def reduce_order_nondet(wrong: bool) -> Sketch:
    """Ranks 1 to 3 add to rank 0's CCL in no order, in floating point or in integers."""
    drawn = all_reduce(dtype="fp32" if wrong else "int32")
    for tasks in (drawn.at(rank) for rank in range(4)):
        tasks.clear()
    drawn.document["op"] |= {"name": "reduce", "root": 0}
    drawn.put(0, ["copy", ["IN", 0, 64], ["CCL", 0, 64]])
    drawn.put(0, *(["post", peer, 0] for peer in (1, 2, 3)))
    drawn.put(0, *(["wait", peer, 0] for peer in (1, 2, 3)))
    drawn.put(0, ["copy", ["CCL", 0, 64], ["OUT", 0, 64]])
    for rank in (1, 2, 3):
        drawn.put(rank, ["wait", 0, 0])
        drawn.put(rank, ["write_reduce", 0, "sum", ["IN", 0, 64], ["CCL", 0, 64]])
        drawn.put(rank, ["post", 0, 0])
    return drawn


def inplace_clobber(wrong: bool) -> Sketch:
    """Rank 1 copies its own input to its place after it has read the others', or before."""
    drawn = all_gather()
    if wrong:
        drawn.put(1, drawn.at(1).pop(1))
    drawn.document["op"] = drawn.document["op"] | {"in_place": True}
    return drawn


def out_of_bounds(wrong: bool) -> Sketch:
    """The last part of the output does not fit."""
    drawn = all_gather()
    if wrong:
        drawn.at(0)[drawn.find(0, "read", 3)][3] = ["OUT", 224, 64]
    return drawn


def remote_not_exported(wrong: bool) -> Sketch:
    """Rank 0 reads rank 1's input itself."""
    drawn = all_gather()
    drawn.at(0)[drawn.find(0, "read", 1)][2] = ["IN", 0, 64]
    drawn.document["exported"] = ["CCL"] if wrong else ["CCL", "IN"]
    return drawn


def transfer_too_large(wrong: bool) -> Sketch:
    """A copy of more than 4 GiB in one task."""
    size = 4 * GIB + 4 * wrong
    op = {"name": "all_gather", "dtype": "fp32", "count": size // 4}
    drawn = sketch(op, 1, {"IN": size, "OUT": size, "CCL": 0})
    drawn.put(0, ["copy", ["IN", 0, size], ["OUT", 0, size]])
    return drawn


def unsupported_inline_reduce(wrong: bool) -> Sketch:
    """No DMA engine multiplies."""
    drawn = all_reduce(reduce="prod" if wrong else "max")
    drawn.each(
        lambda task: (
            [*task[:2], drawn.document["op"]["reduce"], *task[3:]]
            if task[0] == "read_reduce"
            else task
        )
    )
    return drawn


def unaligned(wrong: bool) -> Sketch:
    """Rank 0 reads a kilobyte from a place that begins 4 bytes off."""
    drawn = sketch(PUT | {"count": 256}, 2, {"IN": 1024, "OUT": 1024, "CCL": 2048})
    offset = 4 if wrong else 0
    staged = ["CCL", offset, 1024]
    drawn.put(1, ["copy", ["IN", 0, 1024], staged], ["copy", ["IN", 0, 1024], ["OUT", 0, 1024]])
    drawn.put(1, ["post", 0, 0], ["wait", 0, 1])
    drawn.put(0, ["wait", 1, 0], ["read", 1, staged, ["OUT", 0, 1024]], ["post", 1, 1])
    return drawn


def self_overlap(wrong: bool) -> Sketch:
    """Rank 0 shifts what it has by less than its length, or by as much."""
    drawn = all_gather()
    _buffer(drawn, "CCL", 128)
    drawn.put(0, ["copy", ["CCL", 0, 64], ["CCL", 32 if wrong else 64, 64]])
    return drawn


def slice_len_mismatch(wrong: bool) -> Sketch:
    """Rank 0 reads 64 bytes into 32."""
    drawn = all_gather()
    if wrong:
        drawn.at(0)[drawn.find(0, "read", 1)][3][2] = 32
    return drawn


def dtype_mismatch(wrong: bool) -> Sketch:
    """Rank 0 reduces fp16 in a call on fp32."""
    drawn = all_reduce()
    if wrong:
        drawn.at(0)[drawn.find(0, "read_reduce", 1)].append({"dtype": "fp16"})
    return drawn


def read_undefined(wrong: bool) -> Sketch:
    """Rank 0 does not stage its input for the others."""
    drawn = all_gather()
    if wrong:
        drawn.drop(0, "copy")
    return drawn


def reduce_into_undefined(wrong: bool) -> Sketch:
    """Rank 0 does not put its own input into the output first."""
    drawn = all_reduce()
    if wrong:
        del drawn.at(0)[1]
    return drawn


def output_missing(wrong: bool) -> Sketch:
    """Rank 0 does not read what rank 2 has."""
    drawn = all_gather()
    if wrong:
        drawn.drop(0, "read", 2)
    return drawn


def wrong_source(wrong: bool) -> Sketch:
    """Rank 0 reads from rank 1 twice, once where it should read from rank 2."""
    drawn = all_gather()
    if wrong:
        drawn.at(0)[drawn.find(0, "read", 2)][1] = 1
        drawn.move(0, ["read", 1, ["CCL", 0, 64], ["OUT", 128, 64]], drawn.find(0, "post", 1, 1))
    return drawn


def wrong_offset(wrong: bool) -> Sketch:
    """Rank 0 reads the halves of what rank 2 has in the wrong order."""
    drawn = all_gather()
    at = drawn.find(0, "read", 2)
    into = (160, 128) if wrong else (128, 160)
    drawn.at(0)[at : at + 1] = [
        ["read", 2, ["CCL", src, 32], ["OUT", dst, 32]]
        for src, dst in zip((0, 32), into, strict=True)
    ]
    return drawn


def wrong_reduce_op(wrong: bool) -> Sketch:
    """Rank 0 takes the maximum with what rank 3 has."""
    drawn = all_reduce()
    if wrong:
        drawn.at(0)[drawn.find(0, "read_reduce", 3)][2] = "max"
    return drawn


def missing_contribution(wrong: bool) -> Sketch:
    """Rank 0 does not add what rank 2 has."""
    drawn = all_reduce()
    if wrong:
        drawn.drop(0, "read_reduce", 2)
    return drawn


def double_contribution(wrong: bool) -> Sketch:
    """Rank 0 adds what rank 2 has twice."""
    drawn = all_reduce()
    if wrong:
        at = drawn.find(0, "read_reduce", 2)
        drawn.at(0).insert(at, drawn.at(0)[at])
    return drawn


def concurrent_ops(wrong: bool) -> Sketch:
    """The caller runs the op on a second stream that does not wait for the first."""
    drawn = all_gather()
    drawn.document["calls"] = [{"stream": 0}, {"stream": 1, "after": [] if wrong else [0]}]
    return drawn


def redundant_sync(wrong: bool) -> Sketch:
    """Rank 1 waits for a later post of rank 0 first: that says what the Ack says, and more."""
    drawn = all_gather()
    if wrong:
        drawn.at(0).insert(drawn.find(0, "post", 1, 0) + 1, ["post", 1, 2])
        drawn.at(1).insert(drawn.find(1, "wait", 0, 0), ["wait", 0, 2])
    return drawn


def dead_transfer(wrong: bool) -> Sketch:
    """Rank 0 stages its input twice."""
    drawn = all_gather()
    if wrong:
        drawn.at(0).insert(0, drawn.at(0)[0])
    return drawn


FILES: dict[str, Callable[[bool], Sketch]] = {
    example.__name__.upper(): example
    for example in (
        wait_without_post,
        deadlock_cycle,
        unmatched_post,
        notify_overrun,
        waits_unordered,
        notify_index_out_of_range,
        undeclared_channel,
        undeclared_stream,
        resource_mismatch,
        resource_exceeded,
        concurrent_ops,
        connection_unordered,
        silent_rank,
        stream_not_started,
        stream_not_joined,
        race_rw,
        race_ww,
        rdma_source_reuse,
        inplace_clobber,
        out_of_bounds,
        remote_not_exported,
        transfer_too_large,
        unsupported_inline_reduce,
        self_overlap,
        slice_len_mismatch,
        dtype_mismatch,
        read_undefined,
        reduce_into_undefined,
        output_missing,
        wrong_source,
        wrong_offset,
        wrong_reduce_op,
        missing_contribution,
        double_contribution,
        reduce_order_nondet,
        resource_unused,
        unaligned,
        redundant_sync,
        dead_transfer,
    )
}
