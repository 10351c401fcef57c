"""Cost models of the products, with their sources and what is uncertain about them.

The rates are those that HCCL's own selection takes, effective ones: 18.3 GB/s for an HCCS link of
910B and 910_93 (28 GB/s of the link times some 0.65), 10 GB/s for HCCS of 910A, 20 GB/s for a RoCE
port of 200 Gb/s and 10 GB/s for one of 100 Gb/s, 13.6 GB/s for PCIe 3 x16, 204 GB/s for SIO between
the two dies of a package. Local copies at 750 GB/s and reductions at 483 GB/s are those of HCCL's
newest cost model. No α is published for any product: HCCL's selection takes 60 µs for all of them,
which is the model `selection` here; 10 µs is an engineering choice for wall-clock estimates.
"""

from __future__ import annotations

from hccl_py.simulator.cost import CostModel, LinkCost

__all__ = ["COSTS", "DEFAULT_COST"]

ALPHA_US = 10.0
SELECTION_ALPHA_US = 60.0

_HCCS = LinkCost(alpha_us=ALPHA_US, gbps=18.3)
_ROCE = LinkCost(alpha_us=ALPHA_US, gbps=20.0)
_SLOW_ROCE = LinkCost(alpha_us=ALPHA_US, gbps=10.0)
_SIO = LinkCost(alpha_us=ALPHA_US, gbps=204.0)
_PCIE3 = LinkCost(alpha_us=ALPHA_US, gbps=13.6)
_PCIE5 = LinkCost(alpha_us=ALPHA_US, gbps=54.4)

_NO_ALPHA = "α is an engineering choice: none is published."

_A2 = CostModel(
    name="atlas-800t-a2",
    hccs=_HCCS,
    sio=_SIO,
    pcie=_PCIE5,
    roce=_ROCE,
    reduce_gbps=483.0,
    copy_gbps=750.0,
    sources="HCCL's selection (18.3 and 20 GB/s), its newest cost model (750 and 483 GB/s)",
    uncertain=_NO_ALPHA,
)

_A3 = _A2.model_copy(
    update={
        "name": "atlas-900-a3",
        "hccs": _HCCS.model_copy(update={"ports": 7}),
        "sources": "HCCL's selection (18.3, 20 and 240·0.85 GB/s), its newest cost model",
        "uncertain": f"{_NO_ALPHA} The table's 585 GB/s between superpods is not taken: RoCE joins "
        "them. A die has seven ports to the HCCS switch, each of 18.3 GB/s.",
    }
)

_910A = _A2.model_copy(
    update={
        "name": "atlas-800-9000",
        "hccs": LinkCost(alpha_us=ALPHA_US, gbps=10.0),
        "pcie": _PCIE3,
        "roce": _SLOW_ROCE,
        "sources": "HCCL's selection (10 GB/s for HCCS and RoCE)",
        "uncertain": f"{_NO_ALPHA} Copies and reductions are those of HCCL's newest cost model, "
        "made for later products.",
    }
)

_DUO = _A2.model_copy(
    update={
        "name": "300i-duo",
        "pcie": _PCIE3,
        "roce": _SLOW_ROCE,
        "sources": "HCCL's selection (16·0.85 GB/s for PCIe 3 x16)",
        "uncertain": f"{_NO_ALPHA} RoCE between servers is taken for 100 Gb/s. Copies and "
        "reductions are those of HCCL's newest cost model, made for other products.",
    }
)

DEFAULT_COST = _A2.name


def _selection() -> CostModel:
    """Return what HCCL's selection counts with: 60 µs a step and its table of bandwidths."""
    links = {
        name: getattr(_A2, name).model_copy(update={"alpha_us": SELECTION_ALPHA_US})
        for name in ("hccs", "sio", "pcie", "roce")
    }
    free = {"reduce_gbps": None, "copy_gbps": None}
    told = {"name": "selection", "sources": "HCCL's selection", "uncertain": ""}
    return _A2.model_copy(update={**links, **free, **told})


COSTS = {cost.name: cost for cost in (_A2, _910A, _A3, _DUO, _selection())}
