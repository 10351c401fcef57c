"""Telling torch of the backend; also the entry point of torch's own group `torch.backends`, which
is called at the end of `import torch`.

Only a name is registered: what the backend needs is imported when a group is made. Nothing is ever
raised here, because that would break every `import torch`.
"""

from __future__ import annotations

from typing import Any

BACKEND = "hccl_py"


def register() -> None:
    """Register the backend, once; do nothing where torch was built without torch.distributed."""
    try:
        import torch.distributed as dist

        if dist.is_available() and BACKEND not in dist.Backend.backend_list:
            dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu"])
            # Not by `devices`: that would also make this backend the one for NPUs by default.
            dist.Backend.backend_capability[BACKEND] = ["cpu", "npu"]
    except Exception:
        return


def _create(options: Any, settings: Any) -> Any:
    """Make a group when init_process_group or new_group asks for one. The collector would walk all
    of torch's objects while hccl-py is imported: a quarter of the time.
    """
    from hccl_py.documents.kind import paused_collector

    with paused_collector():
        from hccl_py.torch.group import create

        return create(options, settings)
