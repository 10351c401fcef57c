"""From an edit of a CCU kernel to the verdict: CPU seconds of `hccl-py check`.

    python benchmarks/ccu.py

A project of `hccl-py new --cpp --engine ccu` on 16 ranks with 512 MiB: its first check, which
compiles everything, one after an edit of the kernel, and one without.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 4.0  # CPU seconds after an edit


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*words: str, folder: str) -> float:
    """Run hccl-py in a folder that is its cache, too, and return its CPU seconds."""
    before = cpu()
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    subprocess.run(
        [sys.executable, "-m", "hccl_py", *words],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return cpu() - before


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run("new", "--cpp", "mine", "--engine", "ccu", "--op", "reduce_scatter", folder=folder)
        check = ("check", "mine", "--topology", "ascend950-2x8", "-b", "512M")
        first = run(*check, folder=folder)
        kernel = Path(folder, "mine/op_kernel_ccu/ccu_kernel.cc")
        kernel.write_text(kernel.read_text() + "// an edit\n")
        edited = run(*check, folder=folder)
        again = run(*check, folder=folder)
    print("16 ranks, 512 MiB: CPU seconds from an edit to the verdict")
    for what, seconds in (("first", first), ("after an edit", edited), ("unchanged", again)):
        print(f"  {what:14} {seconds:.1f}")
    if edited > LIMIT:
        raise SystemExit(f"an edit takes more than {LIMIT:.0f} s")


if __name__ == "__main__":
    main()
