"""Streams of torch_npu: the caller's, the session's own, and reductions that hardware lacks.

Streams are torch's, so that its allocator and its profiler know them; tasks are enqueued on them by
the runtime. Reading `npu_stream` submits the work that torch has queued on the host, so that tasks
enqueued later come after it.
"""

from __future__ import annotations

from typing import Any, Protocol

from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError


class SessionStreams(Protocol):
    """The streams on which a session enqueues its tasks, as handles of the driver."""

    def main(self, stream: object) -> int:
        """Return the caller's stream: the given one, or for None its current one."""

    def sub(self, number: int) -> int:
        """Return the session's stream with this number, from 1."""

    def like(self) -> DeviceArray:
        """Return an array in the device's memory."""

    def check(self, array: DeviceArray) -> None:
        """Refuse an array whose memory has another layout than its shape."""

    def reduce(
        self, dst: int, src: int, size: int, dtype: DataType, op: ReduceOp, stream: int
    ) -> None:
        """Enqueue a reduction of `size` bytes that hardware lacks, on the main stream, 0, or one of
        the session's.
        """

    def close(self) -> None:
        """Release the session's streams."""


def import_torch_npu() -> Any:
    """Return torch_npu; NotSupportedError if torch or torch_npu cannot be imported."""
    try:
        import torch
        import torch_npu
    except ImportError as error:
        raise NotSupportedError(
            f"The npu platform needs torch and torch_npu: {' '.join(str(error).split())[:200]}.",
            "Install the torch-npu that fits CANN and torch (docs/ascend.md has the versions); "
            "without NPUs take --platform emulated.",
        ) from None
    assert torch
    return torch_npu


class TorchStreams:
    """Streams of torch_npu on one device."""

    def __init__(self, device: int) -> None:
        import torch

        self._npu = import_torch_npu()
        self._torch: Any = torch
        self._device = torch.device("npu", device)
        self._torch.npu.set_device(self._device)
        self._main: Any = None
        self._subs: list[Any] = []

    def main(self, stream: object) -> int:
        if stream is None:
            stream = self._torch.npu.current_stream(self._device)
        handle = getattr(stream, "npu_stream", None)
        if handle is None:
            raise ParameterError(
                f"stream is a {type(stream).__name__}.", "Give a torch.npu.Stream, or None."
            )
        self._main = stream
        return int(handle)

    def sub(self, number: int) -> int:
        while len(self._subs) < number:
            self._subs.append(self._torch.npu.Stream(self._device))
        return int(self._subs[number - 1].npu_stream)

    def like(self) -> DeviceArray:
        return DeviceArray(self._torch.empty(0, device=self._device))

    def check(self, array: DeviceArray) -> None:
        found = int(self._npu.get_npu_format(array.tensor))
        if found not in PLAIN_FORMATS:
            raise NotSupportedError(
                f"A tensor of shape {array.shape} has the NPU's memory format {found}.",
                "Give torch_npu.npu_format_cast(tensor, 2), which is ND.",
            )

    def reduce(
        self, dst: int, src: int, size: int, dtype: DataType, op: ReduceOp, stream: int
    ) -> None:
        torch = self._torch
        into, what = self._tensor(dst, size, dtype), self._tensor(src, size, dtype)
        chosen = self._subs[stream - 1] if stream else self._main
        with torch.npu.stream(chosen):
            if op is ReduceOp.SUM:
                into.add_(what)
            elif op is ReduceOp.PROD:
                into.mul_(what)
            elif op is ReduceOp.MAX:
                torch.maximum(into, what, out=into)
            else:
                torch.minimum(into, what, out=into)
        _ = chosen.npu_stream  # submits the work that torch has queued

    def close(self) -> None:
        self._subs.clear()
        self._main = None

    def _tensor(self, address: int, size: int, dtype: DataType) -> Any:
        """Return a tensor of memory that the runtime has allocated."""
        internal = self._npu._C
        kind = getattr(self._torch, dtype.numpy_name)
        storage = internal._construct_storage_from_data_pointer(address, self._device, size)
        metadata = {
            "size": self._torch.Size([size // dtype.itemsize]),
            "stride": (1,),
            "storage_offset": 0,
            "dtype": kind,
            "nbytes": size,
            "device": self._device,
            "npu_format": ND,
        }
        return internal._construct_NPU_Tensor_From_Storage_And_Metadata(metadata, storage)


ND = 2
PLAIN_FORMATS = (-1, 0, ND, 30)
"""aclFormats with the layout of the shape: undefined, NCHW, ND, NCDHW."""
