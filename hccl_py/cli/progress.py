"""What is being done, on stderr, only for people who wait: a bar where it is counted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from hccl_py.cli.output import printable_console
from hccl_py.cli.streams import raw
from hccl_py.printable import one_line

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S = 1.0
"""How long nothing is shown: loading rich costs more than most runs."""

REFRESH_S = 0.1


class Bar:
    """Shows the iterations of one row; it vanishes at the end, before the row is printed."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self._title, self._total, self._done = title, total, 0
        self._next = time.monotonic() + PATIENCE_S
        self._shown: Progress | None = None

    def advance(self) -> None:
        """Count one iteration."""
        self.advance_to(self._done + 1, self._total)

    def advance_to(self, done: int, total: int | None) -> None:
        """Take over how many iterations are done, and of how many."""
        self._done, self._total = done, total
        now = time.monotonic()
        if now >= self._next:
            self._next = now + REFRESH_S
            if sys.stderr.isatty():
                self._show()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _show(self) -> None:
        if self._shown is None:
            from rich.progress import Progress

            # No refresh thread and no redirection: rows go to stdout, whoever reads it.
            self._shown = Progress(
                console=printable_console(raw(sys.stderr), is_terminal=True),
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._shown.add_task(self._title, total=self._total)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=self._done, total=self._total)
        self._shown.refresh()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done, and for how long already; the line vanishes at the end."""
    if not sys.stderr.isatty():
        yield
        return
    stream, ended, began = raw(sys.stderr), threading.Event(), time.monotonic()

    def tell() -> None:
        pause = PATIENCE_S
        while not ended.wait(pause):
            seconds = time.monotonic() - began
            stream.write(f"\r\x1b[K{one_line(what)}, {seconds:.0f} s")
            stream.flush()
            pause = REFRESH_S
        if pause == REFRESH_S:
            stream.write("\r\x1b[K")
            stream.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
