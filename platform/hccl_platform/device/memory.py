"""Memory of all ranks as tensors of bytes: CCL buffers, scratch per tag, and the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hccl_platform.device.devices import Devices, Tensor
from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import Buffer
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program

_IN, _OUT = Buffer.USER_IN.spelling, Buffer.USER_OUT.spelling
_CCL = (Buffer.CCL_IN.spelling, Buffer.CCL_OUT.spelling)


class DeviceMemory:
    """The buffers of a session. CCL buffers belong to the communicator, all others to a tag. Of
    those that alternate there are two.
    """

    def __init__(self, devices: Devices, place: Sequence[int], ccl_bytes: int) -> None:
        self._devices, self._place, self._ccl_bytes = devices, place, ccl_bytes
        self._held: dict[tuple[str, int, str, int], Tensor] = {}

    def slots(
        self, tag: str, program: Program, used: Sequence[int], half: int
    ) -> dict[int, Tensor]:
        """Return the slots that a program uses, in a call that works in one `half` of what
        alternates; those of user memory left out.
        """
        sizes, slots = program.buffer_sizes.reshape(-1), {}
        for slot in used:
            rank, buffer = divmod(slot, len(program.buffers))
            name, size = program.buffers[buffer], int(sizes[slot])
            place = half if name in program.alternating else 0
            if name in _CCL:
                slots[slot] = self._hold(("", rank, name, place), max(size, self._ccl_bytes))
            elif name not in (_IN, _OUT):
                slots[slot] = self._hold((tag, rank, name, place), size)
        return slots

    def clear(self) -> None:
        """Let go of all buffers."""
        self._held.clear()

    def _hold(self, key: tuple[str, int, str, int], size: int) -> Tensor:
        if key not in self._held or len(self._held[key]) < size:
            if key in self._held:
                self._devices.synchronize()  # runs that use the smaller one
            self._held[key] = self._zeros(self._place[key[1]], size)
        return self._held[key]

    def _zeros(self, index: int, size: int) -> Tensor:
        device = self._devices.device(index)
        if device.type == "cpu":  # by numpy, pages that nobody touches cost nothing
            return torch.from_numpy(np.zeros(size, np.uint8))
        return torch.zeros(size, dtype=torch.uint8, device=device)


def user_slots(
    program: Program, inputs: Sequence[Any], outputs: Sequence[Any]
) -> dict[int, Tensor]:
    """Return the caller's arrays by their slots; ParameterError where one has the wrong size."""
    found: dict[int, Tensor] = {}
    for arrays, name, what in ((inputs, _IN, "input"), (outputs, _OUT, "output")):
        at = program.buffers.index(name)
        sizes = program.buffer_sizes[:, at].tolist()
        for rank, (array, size) in enumerate(zip(arrays, sizes, strict=True)):
            if array.nbytes != size:
                raise ParameterError(
                    f"Rank {rank}'s {what} has {array.nbytes} bytes, the program needs {size}.",
                    "Record a program for this count and data type.",
                )
            found[rank * len(program.buffers) + at] = bytes_of(array)
    return found


def bytes_of(array: Any) -> Tensor:
    """Return the memory of a flat array as a tensor of bytes."""
    if isinstance(array, DeviceArray):
        return array.tensor.view(torch.uint8)
    flat = array.view(np.uint8)
    return torch.from_numpy(flat if flat.flags.writeable else _unlocked(flat))


class _Unlocked:
    """The face of a read-only array that numpy takes for memory that may be written: torch warns of
    any other, also where it only reads.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {
            "data": (array.__array_interface__["data"][0], False)
        }


def _unlocked(array: Any) -> Any:
    return np.asarray(_Unlocked(array))
