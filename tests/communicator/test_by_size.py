"""Executors by size: the right one is recorded, everything knows the thresholds."""

from dataclasses import replace

import pytest

from hccl_executors.all_gather.mesh_opbase import AllGatherMeshOpbaseExecutor
from hccl_executors.flat import AllGatherComm, AllReduceComm
from hccl_py.call.config import Config
from hccl_py.enums import DataType, Mode
from hccl_py.errors import PluginError
from hccl_py.plugins.discovery import Registry
from hccl_py.plugins.executor import BySize
from hccl_py.selection import select
from hccl_py.topology import topology_of
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import space_of
from tests.recording import op_of, recorded


class Gather(BySize):
    op = "all_gather"
    algorithm = "level0:mesh"
    sizes = ((0, AllGatherMeshOpbaseExecutor), (4096, AllGatherComm))


class Ringwise(AllGatherComm):
    order = "arrival"


@pytest.mark.parametrize(
    ("count", "name"), [(1023, "AllGatherMeshOpbaseExecutor"), (1024, "AllGatherComm")]
)
def test_the_size_decides(count: int, name: str) -> None:
    op = op_of("all_gather", count)
    program = recorded(Gather(), op, 4)
    assert program.executor == "Gather"
    own = recorded(name, op, 4)  # whose call says what it does on level1
    assert replace(program, op=own.op).digest == own.digest
    registry = Registry()
    registry.add(Gather, "mine")
    selection, _ = select(op, topology_of(4), Config(), registry)
    bounds = "from 0 bytes on and below 4096" if count == 1023 else "from 4096 bytes on"
    said = f"{name} takes it, as all calls {bounds}; this one has {4 * count}"
    assert selection.reasons[-1] == said


@pytest.mark.parametrize(("dtype", "last"), [(DataType.FP32, 1023), (DataType.INT8, 4095)])
def test_a_sweep_tries_both_sides_of_a_threshold(dtype: DataType, last: int) -> None:
    cases = Cases(ranks=(4,), dtypes=(dtype,), modes=(Mode.OP_BASE,))
    counts = {case.op.count for case in space_of(Gather(), cases).cases}
    assert {last, last + 1} <= counts
    assert not {last, last + 1} & {case.op.count for case in space_of(AllGatherComm(), cases).cases}


def test_the_loosest_order_counts() -> None:
    class Loose(BySize):
        op = "all_gather"
        algorithm = "level0:mesh"
        sizes = ((0, AllGatherComm), (1, Ringwise))

    assert (Gather.order, Loose.order) == ("fixed", "arrival")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((), "sizes begin at nothing bytes"),
        (((1, AllGatherComm),), "sizes begin at 1 bytes"),
        (((0, AllGatherComm), (0, AllGatherComm)), "sizes begin at 0, 0 bytes"),
        (((0, AllReduceComm),), "is no executor of all_gather"),
        (((0, AllGatherComm()),), "is no executor of all_gather"),
    ],
)
def test_sizes_that_make_no_sense(sizes: tuple[tuple[int, type], ...], said: str) -> None:
    wrong = type("Wrong", (Gather,), {"sizes": sizes})
    with pytest.raises(PluginError, match=said):
        Registry().add(wrong, "mine")
