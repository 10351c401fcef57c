"""Run by test_torch_npu.py: programs over the torch_npu wheel, on the fake runtime.

Each function whose name begins with `check_` is one; what the script is given by name it runs, and
prints what went wrong as JSON. After an op that fails, torch_npu does nothing more in its process.
"""

import ctypes
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch_npu

DEVICE = "npu:0"
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
D2D, SUM, FP32 = 3, 10, 0


def same(found: Any, wanted: Any) -> None:
    host = found.cpu()
    assert host.dtype == wanted.dtype, (host.dtype, wanted.dtype)
    assert torch.equal(host, wanted), (host[:8], wanted[:8])


def check_devices() -> None:
    assert torch.npu.device_count() == 4
    assert torch.npu.get_device_name(0) == "Ascend910B1"
    assert torch.npu.can_device_access_peer(0, 1)


def check_copies() -> None:
    for dtype in (*INTEGERS, *FLOATS):
        host = torch.arange(100).to(dtype)
        near = host.to(DEVICE)
        same(near, host)
        same(torch.empty_like(near).copy_(near), host)
    far = torch.empty(100, device="npu:1")
    same(far.copy_(torch.arange(100.0).to(DEVICE)), torch.arange(100.0))


def check_pinned_memory() -> None:
    host = torch.arange(1000.0).pin_memory()
    assert host.is_pinned()
    near = host.to(DEVICE, non_blocking=True)
    back = torch.zeros(1000).pin_memory()
    back.copy_(near, non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(back, host)


def check_fills() -> None:
    for dtype in (*INTEGERS, *FLOATS):
        same(torch.zeros(5, dtype=dtype, device=DEVICE), torch.zeros(5, dtype=dtype))
        same(torch.ones(5, dtype=dtype, device=DEVICE), torch.ones(5, dtype=dtype))
        same(torch.full((5,), 3, dtype=dtype, device=DEVICE), torch.full((5,), 3, dtype=dtype))
        assert torch.empty(5, dtype=dtype, device=DEVICE).dtype == dtype


def check_views() -> None:
    host = torch.arange(24.0).view(4, 6)
    near = host.to(DEVICE)
    same(near[1:3], host[1:3])
    same(near.view(-1)[5:9], host.view(-1)[5:9])
    same(near.chunk(2)[1], host.chunk(2)[1])
    same(near[:, 1:4].contiguous(), host[:, 1:4])
    same(near.t().contiguous(), host.t())
    near[:, 2].copy_(torch.ones(4, device=DEVICE))
    host[:, 2].copy_(torch.ones(4))
    near.view(-1)[3:5].add_(torch.ones(2, device=DEVICE))
    host.view(-1)[3:5].add_(torch.ones(2))
    same(near, host)


def check_reduces() -> None:
    for dtype in (*INTEGERS, *FLOATS):
        a, b = torch.tensor([1, 5, 3, 100]).to(dtype), torch.tensor([3, 2, 3, 90]).to(dtype)
        near, other = a.to(DEVICE), b.to(DEVICE)
        same(near.clone().add_(other), a + b)
        same(near.clone().mul_(other), a * b)
        for out_of in (torch.add, torch.mul, torch.maximum, torch.minimum):
            same(out_of(near, other, out=torch.empty_like(near)), out_of(a, b))
    for dtype in FLOATS:
        same(torch.ones(3, dtype=dtype).to(DEVICE).div_(4), torch.full((3,), 0.25, dtype=dtype))


def check_casts() -> None:
    host = torch.tensor([1.0, 2.5, -3.25, 70000.0])
    for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.int64):
        same(host.to(DEVICE).to(dtype), host.to(dtype))


def check_streams_and_events() -> None:
    side, event = torch.npu.Stream(), torch.npu.Event()
    near = torch.zeros(1000, device=DEVICE)
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        assert torch.npu.current_stream().npu_stream == side.npu_stream
        for _ in range(10):
            near.add_(torch.ones(1000, device=DEVICE))
        event.record(side)
    torch.npu.current_stream().wait_event(event)
    same(near.clone(), torch.full((1000,), 10.0))
    assert event.query()
    assert torch.npu.current_stream().npu_stream != side.npu_stream


def check_events_between_devices() -> None:
    near, far = torch.zeros(1000, device=DEVICE), torch.zeros(1000, device="npu:1")
    side, event = torch.npu.Stream(device=1), torch.npu.Event(interprocess=True)
    for _ in range(10):
        near.add_(torch.ones(1000, device=DEVICE))
    event.record()
    side.wait_event(event)
    with torch.npu.stream(side):
        far.copy_(near)
        same(far, torch.full((1000,), 10.0))


def check_allocator() -> None:
    before = torch.npu.memory_allocated()
    near = torch.empty(1 << 20, device=DEVICE)
    assert torch.npu.memory_allocated() >= before + (4 << 20)
    address = near.data_ptr()
    del near
    assert torch.npu.memory_allocated() == before
    assert torch.empty(1 << 20, device=DEVICE).data_ptr() == address
    free, total = torch.npu.mem_get_info()
    assert 0 < free < total


class Runtime:
    """libascendcl.so as a platform calls it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libascendcl.so")
        self.stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)

    def malloc(self, size: int) -> int:
        address = ctypes.c_void_p()
        assert not self.library.aclrtMalloc(ctypes.byref(address), ctypes.c_size_t(size), 0)
        assert address.value is not None
        return address.value

    def copy(self, to: int, source: int, size: int) -> None:
        count, ends = ctypes.c_size_t(size), (ctypes.c_void_p(to), ctypes.c_void_p(source))
        call = self.library.aclrtMemcpyAsync
        assert not call(ends[0], count, ends[1], count, D2D, self.stream)

    def add(self, to: int, source: int, size: int) -> None:
        ends = (ctypes.c_void_p(to), ctypes.c_void_p(source))
        call = self.library.aclrtReduceAsync
        assert not call(*ends, ctypes.c_uint64(size), SUM, FP32, self.stream, None)


def check_tensors_in_calls_of_the_runtime() -> None:
    """In the order of torch's stream: ops before and behind need no synchronization."""
    near, result = torch.zeros(5000, device=DEVICE), torch.empty(5000, device=DEVICE)
    near.add_(torch.ones(5000, device=DEVICE))
    runtime = Runtime()
    runtime.copy(result.data_ptr(), near.data_ptr(), 20000)
    runtime.add(result.data_ptr(), near.data_ptr(), 20000)
    result.mul_(torch.full((5000,), 3.0, device=DEVICE))
    same(result, torch.full((5000,), 6.0))


def check_memory_of_the_runtime_as_a_tensor() -> None:
    address = Runtime().malloc(4096)
    make = torch_npu._C._construct_NPU_Tensor_From_Storage_And_Metadata
    storage = torch_npu._C._construct_storage_from_data_pointer(address, torch.device(DEVICE), 4096)
    about = {"dtype": torch.bfloat16, "size": (8,), "stride": (1,), "storage_offset": 4}
    tensor = make(about, storage)
    assert tensor.data_ptr() == address + 8
    tensor.copy_(torch.arange(8).to(torch.bfloat16))
    tensor.add_(torch.ones(8, dtype=torch.bfloat16, device=DEVICE))
    same(tensor, torch.arange(1, 9).to(torch.bfloat16))
    assert ctypes.string_at(address + 8, 2) == b"\x80\x3f"  # 1.0


def outside_what_is_there() -> None:
    message = ""
    try:
        torch.ones(4).to(DEVICE).sin().cpu()
    except RuntimeError as error:
        message = str(error)
    assert "no operator Sin" in message, message


def outcome(check: Callable[[], None]) -> str | None:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    print(json.dumps({name: outcome(globals()[name]) for name in sys.argv[1:]}))
