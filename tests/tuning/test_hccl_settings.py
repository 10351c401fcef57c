"""Settings of HCCL: each leads to the executor that it is named for, as an environment too."""

import re

import pytest

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection.select import select
from hccl_py.topology import topology_of
from hccl_py.tuning.hccl_settings import settings_by_way, way_of

CALLS = [
    ("atlas-800t-a2", {"servers": 4, "devices": 8}),
    ("atlas-900-a3", {"servers": 4, "devices": 16}),
    ("atlas-900-a3", {"servers": 2, "devices": 16, "superpods": 2}),
    ("atlas-800-9000", {"servers": 2, "devices": 8}),
]


@pytest.mark.parametrize(("product", "shape"), CALLS)
def test_each_setting_leads_where_it_says(product: str, shape: dict[str, int]) -> None:
    topology = topology_of(preset=product, **shape)
    op, registry = (
        OpParam("all_reduce", 1 << 24, DataType.FP32, ReduceOp.SUM),
        installed_executors(),
    )
    found = settings_by_way(op, topology, Config(), registry)
    usual, _ = select(op, topology, Config(), registry)
    assert found
    assert way_of(usual.executor, usual.algorithm) not in found
    for way, setting in found.items():
        environment = dict(re.findall(r'(\w+)="?([^" ]+)"?', setting.text))
        chosen, _ = select(op, topology, Config.load(environment), registry)
        assert way_of(chosen.executor, chosen.algorithm) == way
        assert chosen.executor == chosen.hccl_executor


def test_the_fewest_words_are_named() -> None:
    topology = topology_of(preset="atlas-800t-a2", servers=4, devices=8)
    op = OpParam("all_reduce", 1 << 24, DataType.FP32, ReduceOp.SUM)
    found = settings_by_way(op, topology, Config(), installed_executors())
    ring = way_of("AllReduceMeshExecutor", {"level0": "mesh", "level1": "ring"})
    assert found[ring].text == 'HCCL_ALGO="level0:NA;level1:ring"'
    a3 = topology_of(preset="atlas-900-a3", servers=3, devices=4, superpods=2)
    found = settings_by_way(op, a3, Config(algo="level0:NA;level1:ring"), installed_executors())
    levels = {"level0": "double_ring", "level1": "NHR", "level2": "H-D_R"}
    fast = way_of("AllReduceFastDoubleRingFor91093Executor", levels)
    asked = {"level0:NA;level1:NHR;level2:H-D_R", "level0:NA;level1:NA;level2:H-D_R"}
    assert found[fast].config.algo in asked  # and not H-D_R, for which NHR runs as well
