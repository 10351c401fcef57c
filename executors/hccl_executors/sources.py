"""Where HCCL's own algorithms are read: files of public repositories, as of one commit."""

from __future__ import annotations

from hccl_py.plugins.executor import SourceFile

__all__ = ["hccl_executor", "hccl_newest", "hccl_template"]

_ALGORITHMS = "src/algorithm"
_NEWEST = "src/legacy/ascend910/algorithm"


def hccl_template(file: str) -> SourceFile:
    """Return a template, an algorithm on one plane, as of April 2026."""
    return _april(f"base/alg_template/{file}")


def hccl_executor(file: str) -> SourceFile:
    """Return an executor, which composes templates, as of April 2026."""
    return _april(f"impl/coll_executor/{file}")


def hccl_newest(file: str) -> SourceFile:
    """Return a file under `algorithm/` of A2, A3, 910A and 310P as of August 2026."""
    return SourceFile("libochao-huawei/hcomm", "8958adb", f"{_NEWEST}/{file}")


def _april(file: str) -> SourceFile:
    return SourceFile("xiaobingling93-pixel/cann-hcomm", "b5f3e5b", f"{_ALGORITHMS}/{file}")
