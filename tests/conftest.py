"""What all tests share: the hypothesis profiles, and no traces of what a test imports."""

import logging
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Which test is first to compile a kernel depends on the machine's cache; no test here looks at it.
logging.getLogger("hccl_py.program.kernels").setLevel(logging.WARNING)

# "ci" finds the same examples in every run and never fails because a machine is slow.
# "long" is for sweeps: HYPOTHESIS_PROFILE=long pytest
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=25,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

collect_ignore = ["authors_package"]  # an author's project: test_plugin_package.py runs its tests


@pytest.fixture(autouse=True)
def authors_leave_no_trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Take back what a test has imported from its folder: otherwise it stays for all tests."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    folder = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
            del sys.modules[name]
