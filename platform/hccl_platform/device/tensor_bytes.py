"""The caller's arrays as tensors of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hccl_platform.device.devices import Tensor
from hccl_py.communicator.device_arrays import DeviceArray


def bytes_of(array: Any) -> Tensor:
    """Return the memory of a flat array as a tensor of bytes."""
    if isinstance(array, DeviceArray):
        return array.tensor.view(torch.uint8)
    flat = array.view(np.uint8)
    return torch.from_numpy(flat if flat.flags.writeable else _unlocked(flat))


class _Unlocked:
    """A read-only array that numpy takes for writable memory: torch warns of read-only arrays, even
    if it only reads them.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {
            "data": (array.__array_interface__["data"][0], False)
        }


def _unlocked(array: Any) -> Any:
    return np.asarray(_Unlocked(array))
