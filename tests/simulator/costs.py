"""Cost models for tests: kinds of links that all differ, and one kind that alone takes time."""

from hccl_py.simulator import CostModel, LinkCost

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

LINKS = CostModel(
    name="distinct",
    hccs=LinkCost(alpha_us=1, gbps=1, ports=7),
    sio=LinkCost(alpha_us=2, gbps=4),
    pcie=LinkCost(alpha_us=3, gbps=0.5),
    roce=LinkCost(alpha_us=5, gbps=0.25),
    reduce_gbps=None,
    copy_gbps=None,
)
"""Links alone take time."""

_FREE = LinkCost(alpha_us=0.0, gbps=None)
FREE = CostModel(
    name="free", hccs=_FREE, sio=_FREE, pcie=_FREE, roce=_FREE, reduce_gbps=None, copy_gbps=None
)


def only_hccs(alpha_us: float, bytes_per_us: float, **more: object) -> CostModel:
    """Return costs of links inside a server and, besides, of nothing but `more`."""
    hccs = LinkCost(alpha_us=alpha_us, gbps=bytes_per_us * 1e-3)
    return FREE.model_copy(update={"hccs": hccs, **more})
