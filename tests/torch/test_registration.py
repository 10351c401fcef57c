"""How torch learns of the backend, and what it costs those who do not ask for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install hccl-py[torch]")


def run_python(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_torch_knows_the_backend_without_an_import_of_ours() -> None:
    code = (
        "import sys, torch.distributed as dist\n"
        "print('hccl_py' in dist.Backend.backend_list, 'hccl_py.communicator' in sys.modules)\n"
        "dist.init_process_group('hccl_py', store=dist.HashStore(), rank=0, world_size=1)\n"
        "t = torch.ones(2) if (torch := sys.modules['torch']) else None\n"
        "dist.all_reduce(t)\n"
        "print(t.tolist(), dist.get_backend())\n"
        "dist.destroy_process_group()\n"
    )
    assert run_python(code).splitlines() == ["True False", "[1.0, 1.0] hccl_py"]


def test_registering_imports_next_to_nothing() -> None:
    """The cost of `import torch`: three modules of ours, and none of our dependencies."""
    code = (
        "import sys, torch\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] == 'hccl_py'))\n"
        "print(sorted({'pydantic', 'numba', 'typer', 'rich'} & sys.modules.keys()))\n"
    )
    loaded, heavy = run_python(code).splitlines()
    assert loaded == "['hccl_py', 'hccl_py.moved', 'hccl_py.torch', 'hccl_py.torch.registration']"
    assert heavy == "[]"


def test_registering_takes_no_time_to_speak_of() -> None:
    """Processor time of one thread, the best of three: the machine may be busy."""
    code = (
        "import time, importlib.metadata, torch\n"
        "found = importlib.metadata.entry_points(group='torch.backends')\n"
        "(ours,) = [point for point in found if point.value.startswith('hccl_py')]\n"
        "start = time.thread_time()\n"
        "ours.load()()\n"
        "print(time.thread_time() - start)\n"
    )
    environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert min(float(run_python(code, **environment)) for _ in range(3)) < 0.005


def test_a_first_group_walks_none_of_torchs_objects() -> None:
    """A collection of the oldest generation, in whose time fits a third of the imports."""
    code = (
        "import gc, torch, torch.distributed as dist\n"
        "walks = []\n"
        "gc.callbacks.append(lambda phase, info: walks.append((phase, info['generation'])))\n"
        "dist.init_process_group('hccl_py', store=dist.HashStore(), rank=0, world_size=1)\n"
        "print(('start', 2) in walks, gc.isenabled())\n"
        "dist.destroy_process_group()\n"
    )
    assert run_python(code) == "False True\n"


def test_torch_without_plugins_is_told_by_our_import() -> None:
    code = (
        "import torch.distributed as dist\n"
        "before = 'hccl_py' in dist.Backend.backend_list\n"
        "import hccl_py.torch\n"
        "print(before, 'hccl_py' in dist.Backend.backend_list, hccl_py.torch.last_trace())\n"
    )
    assert run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False True None\n"


def test_other_backends_stay_as_they_are() -> None:
    code = (
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)\n"
        "print(dist.get_backend())\n"
        "t = torch.ones(1); dist.all_reduce(t); dist.destroy_process_group()\n"
        "dist.init_process_group('cpu:gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "print(dist.get_backend())\n"
        "dist.all_reduce(t); dist.destroy_process_group()\n"
    )
    first, second = run_python(code).splitlines()
    assert "hccl_py" not in first + second
    assert "gloo" in second
