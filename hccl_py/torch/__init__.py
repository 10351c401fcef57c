"""PyTorch programs over our executors: a torch.distributed backend called `hccl_py`.

    import torch.distributed as dist
    import hccl_py.torch

    dist.init_process_group("hccl_py")
    dist.all_reduce(tensor)
    print(hccl_py.torch.last_trace())

Every collective goes through operator, selection and executor, on the platform `distributed`. Names
are loaded when they are first used: `import torch` imports this package to register the backend.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hccl_py.torch.registration import BACKEND, register

if TYPE_CHECKING:
    from hccl_py.torch.group import ProcessGroup
    from hccl_py.torch.settings import Settings
    from hccl_py.torch.trace import CallTrace, last_trace, traces

__all__ = ["BACKEND", "CallTrace", "ProcessGroup", "Settings", "last_trace", "traces"]

_HOMES = {
    "ProcessGroup": "group",
    "Settings": "settings",
    "CallTrace": "trace",
    "last_trace": "trace",
    "traces": "trace",
}

register()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hccl_py.torch' has no attribute {name!r}")
    return getattr(import_module(f"hccl_py.torch.{_HOMES[name]}"), name)
