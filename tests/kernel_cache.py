"""Whether numba's cache on disk has every kernel, and filling it before the workers start.

Otherwise each worker of pytest-xdist, and each process that it starts, compiles what it needs for
itself: 80 s of work altogether, several times.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

SOURCES = (ROOT / "hccl_py", ROOT / "platform")

HALVES = ("verifier", "simulator")
"""What two processes compile side by side, with about the same work."""

KERNEL = re.compile(r"^@kernel(?:_calling)?\b(?s:.)*?^def (\w+)", re.MULTILINE)


def kernels_in(folder: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield the file, line and name of every kernel."""
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for match in KERNEL.finditer(text):
            yield path, text.count("\n", 0, match.start()) + 1, match[1]


def is_cold() -> bool:
    """Whether a kernel has no compiled form that is younger than its file."""
    return not all(_is_kept(*kernel) for folder in SOURCES for kernel in kernels_in(folder))


def _is_kept(path: Path, line: int, name: str) -> bool:
    index = f"{path.stem}.{name}-{line}.py{sys.version_info[0]}{sys.version_info[1]}.nbi"
    folder = os.environ.get("NUMBA_CACHE_DIR")
    places = Path(folder).rglob(index) if folder else (path.parent / "__pycache__").glob(index)
    return any(place.stat().st_mtime >= path.stat().st_mtime for place in places)


def warm_up() -> None:
    """Compile all kernels, in two processes side by side."""
    running = [compile_half(half) for half in HALVES]
    for process in running:
        process.communicate()


def compile_half(half: str) -> subprocess.Popen[str]:
    """Start to compile; the process writes the names of its kernels, one a line."""
    command = [sys.executable, "-m", "tests.compile_kernels", half]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def kernels_loaded() -> dict[str, Any]:
    """Return the compiled forms that this process has made or loaded, by the kernels' names."""
    found = {}
    for name in [name for name in sys.modules if name.startswith(("hccl_py.", "hccl_platform."))]:
        for kernel in vars(sys.modules[name]).values():
            form = getattr(kernel, "__dict__", {}).get("compiled")
            if getattr(form, "signatures", ()):
                found[kernel.plain.__name__] = form
    return found


def compiled_anew() -> list[str]:
    """Return the kernels that this process has compiled rather than loaded."""
    return [name for name, form in kernels_loaded().items() if form.stats.cache_misses]
