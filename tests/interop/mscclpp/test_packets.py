"""Pairs of writes and waits of packets."""

from hccl_interop.mscclpp.packets import PacketFlags, PacketWrite, StepKey
from hccl_interop.mscclpp.plan import PlanOp
from hccl_interop.mscclpp.steps import PACKETS, PlanSlice, PlanStep


def step(name: str, *, reads: tuple[int, int] | None, writes: tuple[int, int]) -> PlanStep:
    """A step of rank 0 whose packets are at these offsets, of so many bytes."""
    src = () if reads is None else (PlanSlice(0, PACKETS, *reads),)
    return PlanStep(PlanOp(name, 1, "0"), -1, src, (PlanSlice(0, PACKETS, *writes),))


def test_a_step_does_not_wait_for_its_own_packets() -> None:
    """Bytes 0 to 32 are another block's, and the step that reads them writes 16 to 48."""
    reader, writer = StepKey(0, 0, 0), StepKey(0, 1, 0)
    flags = PacketFlags(
        {
            (0, 0): [step("recpkt", reads=(0, 32), writes=(16, 32))],
            (0, 1): [step("cpkt", reads=None, writes=(0, 32))],
        }
    )
    other = PacketWrite(writer, 0)
    assert dict(flags.writers) == {reader: [other]}
    assert {write: by for write, by in flags.readers.items() if by} == {other: [reader]}
