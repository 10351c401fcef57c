"""The built-in executors pass every check that looks at tasks one by one, and at resources."""

import pytest

from hccl_py.enums import Mode
from hccl_py.testing.calls import suits
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier.checks.bounds import find_bounds
from hccl_py.verifier.checks.hardware import find_hardware
from hccl_py.verifier.checks.resources import find_resources
from hccl_py.verifier.checks.slices import find_slices
from hccl_py.verifier.checks.unused import find_unused
from tests.recording import BY_NAME, SAMPLES, op_of, recorded
from tests.verifier.programs import PRODUCT, found

CHECKS = (find_bounds, find_slices, find_resources, find_unused, find_hardware)
TOPOLOGIES = [*map(topology_of, (1, 2, 3, 5, 8)), topology_of(servers=2, devices=4)]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: str(topology.servers))
@pytest.mark.parametrize("name", SAMPLES)
def test_built_in_executors_are_clean(name: str, topology: Topology, mode: Mode) -> None:
    executor = BY_NAME[name]()
    for count in (0, 1, 1000):
        for dtype in ("int64", "fp32"):
            op = op_of(str(executor.op), count, dtype, mode=mode)
            if not suits(executor, op, topology):
                continue
            program = recorded(executor, op, topology)
            for in_place in (False, True):
                for check in CHECKS:
                    findings = found(check, program, in_place=in_place, product=PRODUCT)
                    assert {finding.name for finding in findings} <= {"UNALIGNED"}
