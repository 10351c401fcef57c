"""Checks of a machine for `hccl-py doctor` that several platforms share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from hccl_py.plugins.platforms import Check, Fact


def installed(distribution: str) -> str:
    """Return the installed version of a distribution; empty if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _torch() -> Iterator[Fact]:
    if find_spec("torch") is None:
        hint = 'pip install "hccl-py[torch]"; for NPUs the torch that torch-npu takes.'
        yield Fact("torch", "not installed", False, hint)
        return
    yield Fact("torch", installed("torch") or "of unknown version")
    begun = time.monotonic()
    try:
        import torch
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        hint = "`python -c 'import torch'` says more; pip install it anew."
        if find_spec("torch_npu"):
            hint = "torch loads torch_npu by itself: TORCH_DEVICE_BACKEND_AUTOLOAD=0 forbids it."
        yield Fact("import torch", text, False, hint)
        return
    yield Fact("import torch", f"in {time.monotonic() - begun:.1f} s", True)
    yield Fact("gloo", _gloo())
    for kind in ("cuda", "npu"):
        module: Any = getattr(torch, kind, None)
        if module is not None:
            yield Fact(f"{kind} devices", str(module.device_count()))


def _gloo() -> str:
    import torch.distributed as dist

    is_there = dist.is_available() and dist.is_gloo_available()
    return "can carry messages between hosts" if is_there else "not in this torch"


TORCH = Check("torch", _torch)
