"""CANN's runtime, libascendcl.so, called by ctypes: one table of all functions in use.

Source: acl/acl_rt.h, the same in CANN 8.5 to 9.2. Functions return an aclError, 0 for success.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from hccl_py.errors import HcclError, HcclResult, NotSupportedError

LIBRARY = "libascendcl.so"

KEY_BYTES = 65
"""Bytes of an export key, including the zero at its end."""

_INT, _UINT, _U64, _SIZE = ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
_HANDLE, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_OUT_HANDLE, _OUT_INT, _OUT_UINT = (ctypes.POINTER(t) for t in (_HANDLE, _INT, _UINT))

ExceptionCallback = ctypes.CFUNCTYPE(None, _HANDLE)

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "aclInit": (_TEXT,),
    "aclrtSetDevice": (_INT,),
    "aclrtGetDeviceCount": (_OUT_UINT,),
    "aclrtDeviceCanAccessPeer": (_OUT_INT, _INT, _INT),
    "aclrtDeviceEnablePeerAccess": (_INT, _UINT),
    "aclrtDeviceGetBareTgid": (_OUT_INT,),
    "aclrtMalloc": (_OUT_HANDLE, _SIZE, _INT),
    "aclrtFree": (_HANDLE,),
    "aclrtMemcpy": (_HANDLE, _SIZE, _HANDLE, _SIZE, _INT),
    "aclrtMemcpyAsync": (_HANDLE, _SIZE, _HANDLE, _SIZE, _INT, _HANDLE),
    "aclrtReduceAsync": (_HANDLE, _HANDLE, _U64, _INT, _INT, _HANDLE, _HANDLE),
    "aclrtIpcMemGetExportKey": (_HANDLE, _SIZE, _TEXT, _SIZE, _U64),
    "aclrtIpcMemSetImportPid": (_TEXT, _OUT_INT, _SIZE),
    "aclrtIpcMemImportByKey": (_OUT_HANDLE, _TEXT, _U64),
    "aclrtIpcMemClose": (_TEXT,),
    "aclrtCreateNotify": (_OUT_HANDLE, _U64),
    "aclrtDestroyNotify": (_HANDLE,),
    "aclrtRecordNotify": (_HANDLE, _HANDLE),
    "aclrtWaitAndResetNotify": (_HANDLE, _HANDLE, _UINT),
    "aclrtNotifyGetExportKey": (_HANDLE, _TEXT, _SIZE, _U64),
    "aclrtNotifySetImportPid": (_HANDLE, _OUT_INT, _SIZE),
    "aclrtNotifyImportByKey": (_OUT_HANDLE, _TEXT, _U64),
    "aclrtCreateStream": (_OUT_HANDLE,),
    "aclrtDestroyStreamForce": (_HANDLE,),
    "aclrtStreamGetId": (_HANDLE, _OUT_INT),
    "aclrtStreamQuery": (_HANDLE, _OUT_UINT),
    "aclrtSynchronizeStreamWithTimeout": (_HANDLE, _INT),
    "aclrtCreateEventExWithFlag": (_OUT_HANDLE, _UINT),
    "aclrtRecordEvent": (_HANDLE, _HANDLE),
    "aclrtStreamWaitEvent": (_HANDLE, _HANDLE),
    "aclrtDestroyEvent": (_HANDLE,),
    "aclrtSetExceptionInfoCallback": (ExceptionCallback,),
    "aclrtGetThreadLastTaskId": (_OUT_UINT,),
    "aclmdlRICaptureGetInfo": (_HANDLE, _OUT_INT, _OUT_HANDLE),
}

OPTIONAL: dict[str, tuple[Any, ...]] = {
    "aclrtGetPhyDevIdByLogicDevId": (_INT, _OUT_INT),
    "aclrtMallocPhysical": (_OUT_HANDLE, _SIZE, _HANDLE, _U64),
    "aclrtFreePhysical": (_HANDLE,),
    "aclrtReserveMemAddress": (_OUT_HANDLE, _SIZE, _SIZE, _HANDLE, _U64),
    "aclrtReleaseMemAddress": (_HANDLE,),
    "aclrtMapMem": (_HANDLE, _SIZE, _SIZE, _HANDLE, _U64),
    "aclrtUnmapMem": (_HANDLE,),
    "aclrtMemSetAccess": (_HANDLE, _SIZE, _HANDLE, _SIZE),
    "aclrtMemExportToShareableHandle": (_HANDLE, _INT, _U64, ctypes.POINTER(_U64)),
    "aclrtMemImportFromShareableHandle": (_U64, _INT, _OUT_HANDLE),
}
"""The functions without which sessions do less; where the runtime lacks one, it fails with LACKING.
"""

OTHERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "aclGetRecentErrMsg": (_TEXT, ()),
    "aclrtGetSocName": (_TEXT, ()),
    "aclrtGetTaskIdFromExceptionInfo": (_UINT, (_HANDLE,)),
    "aclrtGetStreamIdFromExceptionInfo": (_UINT, (_HANDLE,)),
    "aclrtGetDeviceIdFromExceptionInfo": (_UINT, (_HANDLE,)),
    "aclrtGetErrorCodeFromExceptionInfo": (_UINT, (_HANDLE,)),
}
"""The functions with another result than an aclError: type of the result, arguments."""

ACL_TYPES = {
    "fp32": 0,
    "fp16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "uint16": 7,
    "uint32": 8,
    "int64": 9,
    "uint64": 10,
    "fp64": 11,
    "bf16": 27,
}
"""aclDataType by the name of a DataType."""

REDUCE_KINDS = {"sum": 10, "max": 11, "min": 12}
"""aclrtReduceKind by op; there is no product."""

TASK_TIMEOUT = 107020
"""The error of a task that took too long: a wait whose notify did not come."""

STREAM_TIMEOUT = 507046
"""The error of aclrtSynchronizeStreamWithTimeout after its time-out."""

NO_NOTIFIES = 207009
"""The error of aclrtCreateNotify on a device without a free notify."""

LACKING = 207000
"""The error of a feature that is not supported, and here of a function that is not there."""

_REPEATED = 100002
"""The error of a second aclInit, for example after torch_npu's."""


class _Location(ctypes.Structure):
    _fields_ = (("id", _UINT), ("type", _INT))

    @classmethod
    def of(cls, device: int) -> _Location:
        return cls(device, 1)  # ACL_MEM_LOCATION_TYPE_DEVICE


class PhysicalMemory(ctypes.Structure):
    """The kind of memory that aclrtMallocPhysical takes: aclrtPhysicalMemProp."""

    _fields_ = (
        ("handle_type", _INT),
        ("allocation_type", _INT),
        ("attribute", _INT),
        ("location", _Location),
        ("reserve", _U64),
    )

    @classmethod
    def on(cls, device: int) -> PhysicalMemory:
        """Return memory of a device, pinned, in plain pages: ACL_HBM_MEM_NORMAL."""
        return cls(0, 0, 5, _Location.of(device), 0)


class MemoryAccess(ctypes.Structure):
    """The device that may read and write mapped memory: aclrtMemAccessDesc."""

    _fields_ = (("flags", _INT), ("location", _Location), ("reserve", ctypes.c_uint8 * 12))

    @classmethod
    def of(cls, device: int) -> MemoryAccess:
        """Return read and write access of a device."""
        return cls(3, _Location.of(device))


class AclError(HcclError):
    """The failure of a function of CANN's runtime; `error` is its aclError."""

    result = HcclResult.E_INTERNAL

    def __init__(self, function: str, error: int, text: str) -> None:
        detail = f": {text}" if text else ""
        super().__init__(
            f"{function} returned {error}{detail}.",
            "`hccl-py doctor` shows what this machine has; CANN's list of error codes says more.",
        )
        self.function, self.error, self.text = function, error, text

    def __reduce__(self) -> tuple[Any, ...]:
        return AclError, (self.function, self.error, self.text)


class Library:
    """The runtime; `library.aclrtSetDevice(3)` raises AclError if it does not return 0."""

    def __init__(self, name: str = LIBRARY) -> None:
        """Load the library; OSError if that fails, AttributeError if it lacks a function."""
        self._cdll = ctypes.CDLL(name)
        for function, (result, arguments) in OTHERS.items():
            found = getattr(self._cdll, function)
            found.restype, found.argtypes = result, arguments
            setattr(self, function, found)
        for function, arguments in SIGNATURES.items():
            found = getattr(self._cdll, function)
            found.restype, found.argtypes = ctypes.c_int, arguments
            setattr(self, function, self._checked(function, found))
        for function, arguments in OPTIONAL.items():
            optional: Callable[..., int] = getattr(self._cdll, function, lambda *_: LACKING)
            if hasattr(self._cdll, function):
                optional.restype, optional.argtypes = ctypes.c_int, arguments  # type: ignore[attr-defined]
            setattr(self, function, self._checked(function, optional))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is not in the table of CANN's functions")

    def _checked(self, name: str, function: Callable[..., int]) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            error = function(*arguments)
            if error:
                text = (self.aclGetRecentErrMsg() or b"").decode("utf-8", "replace")
                raise AclError(name, error, " ".join(text.split())[:200])

        return call

    def made(self, name: str, *arguments: object) -> int:
        """Call a function whose first argument takes a handle or an address; return that."""
        found = ctypes.c_void_p()
        getattr(self, name)(ctypes.byref(found), *arguments)
        return found.value or 0

    def number(self, name: str, *arguments: object, kind: Any = _INT) -> int:
        """Call a function whose last argument takes a number; return that."""
        found = kind()
        getattr(self, name)(*arguments, ctypes.byref(found))
        return int(found.value)

    def count(self) -> int:
        """Return the number of devices that this process sees."""
        return self.number("aclrtGetDeviceCount", kind=_UINT)

    def can_access(self, device: int, peer: int) -> bool:
        """True if a device can access the memory of another one."""
        can = _INT()
        self.aclrtDeviceCanAccessPeer(ctypes.byref(can), device, peer)
        return bool(can.value)

    def physical(self, device: int) -> int:
        """Return the number on the board of a device of this process; its own number where the
        runtime does not tell.
        """
        found = _INT()
        try:
            self.aclrtGetPhyDevIdByLogicDevId(device, ctypes.byref(found))
        except AclError:
            return device
        return int(found.value)

    def key(self, name: str, *arguments: object, flags: int) -> bytes:
        """Call a function that exports something; return its key."""
        found = ctypes.create_string_buffer(KEY_BYTES)
        getattr(self, name)(*arguments, found, KEY_BYTES, flags)
        return found.value


@cache
def load(name: str = LIBRARY) -> Library:
    """Return the runtime, initialised; NotSupportedError if this machine has none."""
    try:
        library = Library(name)
    except OSError as error:
        raise NotSupportedError(
            f"CANN's runtime cannot be loaded: {error}.",
            "Install CANN 8.5 or newer and `source` its set_env.sh; "
            "`hccl-py doctor` shows what is missing.",
        ) from None
    except AttributeError as error:
        raise NotSupportedError(
            f"CANN's runtime is too old: {error}.", "Install CANN 8.5 or newer."
        ) from None
    try:
        library.aclInit(None)
    except AclError as error:
        if error.error != _REPEATED:
            raise
    return library
