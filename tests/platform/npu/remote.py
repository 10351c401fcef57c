"""A process of the fake machine, which does what a test asks of it.

The test holds an `Npu`; the process behind it runs this file as a script, loads libascendcl.so as
any program would, and answers over its standard streams. So tests of several processes read as one
text.
"""

import ctypes
import os
import pickle
import subprocess
import sys
from types import TracebackType
from typing import Any

# What a function writes through a pointer, in place of the argument.
POINTER, INT, LONG, KEY, TEXT = "<pointer>", "<int>", "<long>", "<key>", "<text>"
OUTPUTS = {POINTER: ctypes.c_void_p, INT: ctypes.c_int32, LONG: ctypes.c_size_t}
BYTES = {KEY: 65, TEXT: 4096}

H2D, D2H, D2D = 1, 2, 3
SUM, MAX, MIN = 10, 11, 12


class Refused(Exception):
    """A call of the runtime that failed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class Npu:
    """A process whose thread has set one device."""

    def __init__(self, environment: dict[str, str], device: int | None = 0) -> None:
        command = [sys.executable, "-S", "-E", __file__]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if device is not None:
            self.call("aclInit", None)
            self.call("aclrtSetDevice", device)

    def __enter__(self) -> "Npu":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.process.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def kill(self) -> None:
        """End the process in the middle of whatever it does."""
        self.process.kill()
        self.process.wait(60)

    def ask(self, *question: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump(question, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def call(self, function: str, *arguments: object) -> Any:
        """What the function writes: nothing, one value or several."""
        code, outputs, message = self.ask("call", function, arguments)
        if code != 0:
            raise Refused(code, message)
        return outputs[0] if len(outputs) == 1 else outputs

    def code(self, function: str, *arguments: object) -> int:
        """What the function returns."""
        code: int = self.ask("call", function, arguments)[0]
        return code

    def peek(self, address: int, count: int) -> bytes:
        found: bytes = self.ask("peek", address, count)
        return found

    def poke(self, address: int, data: bytes) -> None:
        self.ask("poke", address, data)

    def exceptions(self) -> list[dict[str, int]]:
        """What the callback was told; the first time it only sets the callback."""
        told: list[dict[str, int]] = self.ask("exceptions")
        return told

    # What most tests begin with.

    def malloc(self, count: int) -> int:
        address: int = self.call("aclrtMalloc", POINTER, count, 0)
        return address

    def stream(self) -> int:
        stream: int = self.call("aclrtCreateStream", POINTER)
        return stream

    def notify(self) -> int:
        notify: int = self.call("aclrtCreateNotify", POINTER, 0)
        return notify

    def record(self, notify: int, stream: int) -> None:
        self.call("aclrtRecordNotify", notify, stream)

    def wait(self, notify: int, stream: int, seconds: int = 60) -> None:
        self.call("aclrtWaitAndResetNotify", notify, stream, seconds)

    def copy(self, to: int, source: int, count: int, stream: int) -> None:
        self.call("aclrtMemcpyAsync", to, count, source, count, D2D, stream)

    def synchronize(self, *streams: int) -> None:
        for stream in streams:
            self.call("aclrtSynchronizeStream", stream)

    def bare_tgid(self) -> int:
        pid: int = self.call("aclrtDeviceGetBareTgid", INT)
        return pid

    def live(self, kind: str) -> int:
        return self.code("fakeacl_live", kind.encode())

    def complaints(self) -> list[str]:
        """What hardware would let pass in silence."""
        text: bytes = self.ask("call", "fakeacl_complaints", (TEXT, 4096))[1][0]
        return text.decode().splitlines()


FIELDS = ("TaskId", "StreamId", "ThreadId", "DeviceId", "ErrorCode")


class Answers:
    """The other side."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libascendcl.so")
        self.library.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self.library.aclrtGetSocName.restype = ctypes.c_char_p
        self.told: list[dict[str, int]] = []
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.tell)

    def tell(self, info: int) -> None:
        names = {name: f"aclrtGet{name}FromExceptionInfo" for name in FIELDS}
        at = ctypes.c_void_p(info)
        self.told.append({name: getattr(self.library, names[name])(at) for name in FIELDS})

    def call(self, function: str, arguments: tuple[Any, ...]) -> tuple[int, list[Any], str]:
        outputs: list[Any] = []
        given = [self.argument(one, outputs) for one in arguments]
        code = getattr(self.library, function)(*given)
        return code, [one.value for one in outputs], (code and self.message()) or ""

    def message(self) -> str | None:
        message: bytes | None = self.library.aclGetRecentErrMsg()
        return None if message is None else message.decode()

    def argument(self, given: Any, outputs: list[Any]) -> Any:
        if given is None or isinstance(given, bytes):
            return ctypes.c_char_p(given)
        if isinstance(given, list):  # of process numbers
            return (ctypes.c_int32 * len(given))(*given)
        if isinstance(given, int):
            return ctypes.c_long(given)
        if given in BYTES:
            outputs.append(ctypes.create_string_buffer(BYTES[given]))
            return outputs[-1]
        outputs.append(OUTPUTS[given]())
        return ctypes.byref(outputs[-1])

    def peek(self, address: int, count: int) -> bytes:
        return ctypes.string_at(address, count)

    def poke(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    def attributes(self, address: int) -> tuple[int, int, int]:
        """A device; whether the memory is host's (0), the device's (1), nobody's (2); a page."""
        found = (ctypes.c_uint32 * 7)()
        assert self.library.aclrtPointerGetAttributes(ctypes.c_void_p(address), found) == 0
        return found[0], found[1], found[2]

    def exceptions(self) -> list[dict[str, int]]:
        self.library.aclrtSetExceptionInfoCallback(self.callback)
        return self.told


def answer() -> None:
    answers = Answers()
    while True:
        try:
            verb, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(getattr(answers, verb)(*arguments), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    answer()
