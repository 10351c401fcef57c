"""Groups of one backend, whichever of the makers' own a suite names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist

MAKERS_OWN = (None, "gloo", "hccl")


def making(backend: str) -> Callable[..., None]:
    """Return an init_process_group that makes groups of one backend."""
    init = dist.init_process_group

    def init_process_group(*arguments: Any, **named: Any) -> None:
        if not arguments and named.get("backend") in MAKERS_OWN:
            named["backend"] = backend
        init(*arguments, **named)

    return init_process_group
