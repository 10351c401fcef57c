"""A cost model whose kinds of links all differ, for tests."""

from hccl_py.simulator import CostModel, LinkCost

__all__ = ["COST"]

COST = CostModel(
    name="test",
    hccs=LinkCost(alpha_us=3.0, gbps=1.0),
    sio=LinkCost(alpha_us=1.0, gbps=3.0),
    pcie=LinkCost(alpha_us=5.0, gbps=0.7),
    roce=LinkCost(alpha_us=7.0, gbps=0.5),
    reduce_gbps=2.0,
    copy_gbps=10.0,
    notify_us=0.25,
    local_notify_us=0.375,
    task_us=0.125,
    post_us=0.0625,
    wait_us=0.03125,
)
