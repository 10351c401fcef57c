"""The contents of an MSCCL XML file as plain values: GPUs, threadblocks, steps.

    <algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce"
          inplace="1">
      <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
        <tb id="0" send="1" recv="1" chan="0">
          <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1"
                depid="-1" deps="-1" hasdep="0"/>

A threadblock runs its steps in order. It has at most one connection to send on and one to receive
from; a connection is a sender, a receiver and a channel. `depid` and `deps` name a step of another
threadblock that must be over. Source: the parsers of microsoft/msccl and ROCm/rccl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class StepType(NamedTuple):
    """The actions of a step: receiving and sending a message, and the sides that it uses of those
    that the XML names. `label` says it in words.
    """

    label: str
    receives: bool = False
    sends: bool = False
    reduces: bool = False
    src: bool = False
    dst: bool = False


STEP_TYPES = {
    "s": StepType("send", sends=True, src=True),
    "r": StepType("receive", receives=True, dst=True),
    "rcs": StepType("receive, copy, send", receives=True, sends=True, dst=True),
    "rrs": StepType("receive, reduce, send", receives=True, sends=True, reduces=True, src=True),
    "rrc": StepType("receive, reduce, copy", receives=True, reduces=True, src=True, dst=True),
    "rrcs": StepType(
        "receive, reduce, copy, send",
        receives=True,
        sends=True,
        reduces=True,
        src=True,
        dst=True,
    ),
    "cpy": StepType("copy", src=True, dst=True),
    "re": StepType("reduce", reduces=True, src=True, dst=True),
    "nop": StepType("wait"),
}
"""Every type of step by its name in the XML."""


class Connection(NamedTuple):
    """A connection that carries messages, in order, from one rank to another."""

    sender: int
    receiver: int
    channel: int

    def __str__(self) -> str:
        return f"{self.sender}→{self.receiver} on channel {self.channel}"


class Local(NamedTuple):
    """Chunks of a rank's own memory: buffer `i`, `o` or `s`, and the first chunk."""

    buffer: str
    offset: int


class XmlStep(NamedTuple):
    """One step. `depid` and `deps` are -1 where it waits for nothing; `s` is what the file calls
    it, `line` where it stands.
    """

    s: int
    type: str
    src: Local
    dst: Local
    cnt: int
    depid: int
    deps: int
    hasdep: bool
    line: int

    @property
    def form(self) -> StepType:
        """The meaning of its type."""
        return STEP_TYPES[self.type]

    def goes_on_from(self, before: XmlStep) -> bool:
        """True if the runtime does it at once with the step before: sums of several chunks are read
        together and stored once. Source: ROCm/rccl, msccl_parser.cc (continuationOfReductions).
        """
        sides = [(step.type, step.dst, step.src.buffer) for step in (before, self)]
        is_like = self.type == "re" and sides[0] == sides[1]
        return is_like and self.depid < 0 and not before.hasdep


@dataclass(frozen=True)
class ThreadBlock:
    """A queue of steps; `send` and `recv` are ranks, -1 for none."""

    id: int
    send: int
    recv: int
    channel: int
    steps: tuple[XmlStep, ...]
    line: int

    def actions(self) -> Iterator[range]:
        """Yield the steps in groups that the runtime does at once: mostly one by one."""
        begin = 0
        for end, before in enumerate(self.steps, 1):
            following = self.steps[end] if end < len(self.steps) else None
            is_more = following is not None and following.goes_on_from(before)
            if following is None or not is_more or following.cnt != before.cnt:
                yield range(begin, end)
                begin = end


@dataclass(frozen=True)
class Gpu:
    """A rank: chunks of its buffers, threadblocks by id, and (input chunk, output chunk, line) of
    the copies before all steps, which only some dialects have.
    """

    id: int
    i_chunks: int
    o_chunks: int
    s_chunks: int
    blocks: tuple[ThreadBlock, ...]
    copies: tuple[tuple[int, int, int], ...]
    line: int

    def outgoing(self, block: ThreadBlock) -> Connection:
        """Return the connection that a threadblock sends on."""
        return Connection(self.id, block.send, block.channel)

    def incoming(self, block: ThreadBlock) -> Connection:
        """Return the connection that a threadblock receives from."""
        return Connection(block.recv, self.id, block.channel)


@dataclass(frozen=True)
class XmlAlgorithm:
    """One `<algo>` of a file. `chunks` is nchunksperloop: into how many parts the larger one of
    input and output is cut. `min_bytes` and `max_bytes` say for which data sizes the runtime takes
    it, None where the file says nothing.
    """

    file: str
    name: str
    protocol: str
    channels: int | None
    chunks: int
    collective: str
    inplace: bool
    outofplace: bool
    gpus: tuple[Gpu, ...]
    line: int
    min_bytes: int | None = None
    max_bytes: int | None = None
    threads: int = 0

    @property
    def ranks(self) -> int:
        """The number of GPUs."""
        return len(self.gpus)

    def source(self, line: int) -> str:
        """Return a line of the file as findings name it."""
        return f"{self.file}:{line}"

    def steps(self) -> Iterator[tuple[Gpu, ThreadBlock, int, XmlStep]]:
        """Yield every step with its place."""
        for gpu in self.gpus:
            for block in gpu.blocks:
                for position, step in enumerate(block.steps):
                    yield gpu, block, position, step
