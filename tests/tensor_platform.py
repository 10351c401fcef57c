"""A platform whose arrays are tensors of a device, which is the CPU: the emulated one inside.

No array of numpy's may reach it, and it never calls numpy on what it gets but for its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hccl_platform.emulated import EmulatedPlatform
from hccl_py.call.config import Config
from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.platforms import Group, Schedule, Session, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology

Inline = frozenset[tuple[DataType, ReduceOp]]


class TensorPlatform:
    """`inline` is what its device reduces on the way."""

    name = "tensors"
    clock = "wall"

    def __init__(self, inline: Inline | None = None) -> None:
        self._inline = inline

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> TensorSession:
        session = EmulatedPlatform().open(topology, config, schedule, group)
        assert session is not None
        return TensorSession(session, self._inline)


class TensorSession:
    """The emulated session of tensors' memory; it counts who waits for its runs."""

    def __init__(self, inner: Session, inline: Inline | None) -> None:
        self._inner = inner
        self.inline_reductions = inline
        self.waits = 0

    @property
    def local_ranks(self) -> range:
        return self._inner.local_ranks

    @property
    def likes(self) -> Sequence[DeviceArray]:
        import torch

        return [DeviceArray(torch.empty(0)) for _ in self.local_ranks]

    def synchronize(self) -> None:
        self.waits += 1

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        return self._inner.allocate(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        self._inner.expect(tag, program, runs)

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        stream: object = None,
    ) -> Work:
        memory = [[_memory(array) for array in side] for side in (inputs, outputs)]
        return self._inner.run(tag, program, *memory)

    def gather(self, data: bytes) -> list[bytes]:
        return self._inner.gather(data)

    def close(self) -> None:
        self._inner.close()


def _memory(array: Any) -> npt.NDArray[Any]:
    import torch

    if not array.size:
        return np.empty(0, array.dtype)
    assert isinstance(array, DeviceArray)
    assert array.flags.c_contiguous
    assert array.ndim == 1
    found: npt.NDArray[Any]
    name = str(array.tensor.dtype).removeprefix("torch.")
    if hasattr(ml_dtypes, name):
        integer = torch.int16 if name == "bfloat16" else torch.uint8
        found = array.tensor.view(integer).numpy().view(getattr(ml_dtypes, name))
    else:
        found = array.tensor.numpy()
    return found
