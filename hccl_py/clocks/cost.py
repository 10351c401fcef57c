"""The cost model: what a user may state of time, in one pydantic model.

α is paid once per step: over SDMA as the latency of the Ack that lets the data go, over RDMA as
that of the DataSignal that follows the data. A data task costs bytes·β, and bytes·γ more where it
reduces. Other notifies and the start of any task have parameters of their own. Rates are in GB/s
(1e9 bytes a second); a rate that is left out (null) costs nothing.

The models of the products stand at the end, with their sources and what is uncertain about them.
The rates are those that HCCL's own selection takes, effective ones: 18.3 GB/s for an HCCS link of
910B and 910_93 (28 GB/s of the link times some 0.65), 10 GB/s for HCCS of 910A, 20 GB/s for a RoCE
port of 200 Gb/s and 10 GB/s for one of 100 Gb/s, 13.6 GB/s for PCIe 3 x16, 204 GB/s for SIO between
the two dies of a package. Local copies at 750 GB/s and reductions at 483 GB/s are those of HCCL's
newest cost model. No α is published for any product: HCCL's selection takes 60 µs for all of them,
which is the model `selection` here; 10 µs is an engineering choice for wall-clock estimates.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

PROTOCOLS = ("Simple", "LL", "LL128")
"""How MSCCL's threadblocks hand data on; a program says by which, if by any."""

Microseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)] | None
"""From a byte a second, so that no time is beyond what numbers hold."""


class LinkCost(BaseModel):
    """One sort of link: α in microseconds, the rate of one flow in GB/s.

    Alone, a flow has the whole rate, so β is its inverse. `ports` says how many flows leave (and
    as many enter) a device at full rate where links end in a switch; links from device to device
    are one flow wide.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha_us: Microseconds
    gbps: Rate
    ports: Annotated[int, Field(ge=1)] = 1

    @property
    def beta_us(self) -> float:
        """β: microseconds per byte."""
        return per_byte(self.gbps)


def _sorts_once(links: tuple[str, ...]) -> tuple[str, ...]:
    if not links or len(set(links)) < len(links):
        hint = "Write those that share the port: hccs, sio, pcie, roce."
        context = {"expected": "sorts of links, each once", "hint": hint}
        raise PydanticCustomError("expected", "{expected}", context)
    return links


class SharedPort(BaseModel):
    """A port that links of several sorts share at every device of a product: `gbps` is what they
    take together, each way.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    links: Annotated[
        tuple[Literal["hccs", "sio", "pcie", "roce"], ...],
        Field(strict=False),
        AfterValidator(_sorts_once),
    ]
    gbps: Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]


def ports_once(ports: tuple[SharedPort, ...]) -> tuple[SharedPort, ...]:
    """Return ports no two of which are for the same links; a PydanticCustomError otherwise."""
    if len({frozenset(port.links) for port in ports}) < len(ports):
        context = {"expected": "one port for the same links", "hint": "Keep the slower one."}
        raise PydanticCustomError("expected", "{expected}", context)
    return ports


class ProtocolCost(BaseModel):
    """Costs of programs of one of MSCCL's protocols, besides those of their tasks.

    No task begins before `launch_us`. `gbps` is the most that one threadblock moves: no data task
    of a stream is faster, however fast its link is, so that a link is full only where several use
    it. `efficiency` is the share of data in what goes over links: the rest is flags. With
    `slice_bytes`, messages stream: what MSCCL's XML is imported for writes, receives and sends on
    every slice before the next one is there. Nothing of it counts where it is left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    launch_us: Microseconds = 0.0
    gbps: Rate = None
    efficiency: Annotated[float, Field(ge=1e-3, le=1)] = 1.0
    slice_bytes: Annotated[int, Field(ge=1)] | None = None


class Protocols(BaseModel):
    """The costs of every protocol, by its name in small letters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    simple: ProtocolCost = ProtocolCost()
    ll: ProtocolCost = ProtocolCost()
    ll128: ProtocolCost = ProtocolCost()

    def of(self, protocol: str) -> ProtocolCost:
        """Return the costs of one of PROTOCOLS; nothing for programs of none, ""."""
        found: ProtocolCost = getattr(self, protocol.lower()) if protocol else ProtocolCost()
        return found


class CostModel(BaseModel):
    """Parameters of the model; the module explains it.

    Links: `hccs`, `sio`, `pcie` and `roce` are those of products. Networks for study take `hccs`
    for what they do not state themselves, and `hop_us` as the latency that each link of a route
    adds to α. `shared_ports` are ports that several sorts of links of a product's device share; a
    flow is no faster than the ports that it goes through.

    Data: `reduce_gbps` is γ's inverse, `copy_gbps` the rate of local copies, `task_us` the start of
    a data task. Local copies and reductions of one device that overlap share `memory_gbps` in
    contended simulation; without it they do not slow each other down. Where `memory_users` is
    `all`, data over links takes it, too, at both ends. `joined_tasks` says whether data tasks that
    are one step of a kernel take their sum together or as long as the longest, `inline_reductions`
    the same of a transfer and the reduction inside it.

    Notifies: `alpha_by` says which pay α: by `number` those of HCCL (Ack over SDMA, DataSignal over
    RDMA, extra ones over both), by `message` those that announce a message (`clocks/alpha.py`). The
    others take `notify_us`, between streams of one rank `local_notify_us` where that is stated.
    `post_us` and `wait_us` keep the stream of a post busy, and that of a wait whose notify is set.

    `jitter` is the standard deviation of random factors of tasks, `jitter_seed` chooses them.
    `protocols` is for programs of MSCCL. `sources` and `uncertain` are for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    hccs: LinkCost
    sio: LinkCost
    pcie: LinkCost
    roce: LinkCost
    reduce_gbps: Rate
    copy_gbps: Rate
    notify_us: Microseconds = 0.0
    local_notify_us: Microseconds | None = None
    task_us: Microseconds = 0.0
    post_us: Microseconds = 0.0
    wait_us: Microseconds = 0.0
    hop_us: Microseconds = 0.0
    memory_gbps: Rate = None
    memory_users: Literal["local", "all"] = "local"
    shared_ports: Annotated[tuple[SharedPort, ...], AfterValidator(ports_once)] = ()
    alpha_by: Literal["number", "message"] = "number"
    joined_tasks: Literal["sum", "longest"] = "sum"
    inline_reductions: Literal["sum", "longest"] = "sum"
    jitter: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    jitter_seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    protocols: Protocols = Protocols()
    sources: str = ""
    uncertain: str = ""

    @staticmethod
    def of(product: str) -> CostModel:
        """Return the model of a product; networks for study use that of Atlas 800T A2."""
        return COSTS.get(product, COSTS[DEFAULT_COST])

    def formula(self) -> CostModel:
        """Return the model of the closed formulas: only α, β and γ of links cost anything."""
        free: dict[str, object] = {"copy_gbps": None, "memory_gbps": None}
        free |= dict.fromkeys(("notify_us", "task_us", "post_us", "wait_us", "hop_us"), 0.0)
        free |= {"protocols": Protocols(), "local_notify_us": None, "inline_reductions": "sum"}
        free |= {"jitter": 0.0, "shared_ports": ()}
        return self.model_copy(update={"name": "formula", **free})

    def alone_us(self, link: str) -> float:
        """Return the microseconds per byte of a flow alone on one sort of link, by name: those of
        the link, or of a port that it has to go through where that is slower.
        """
        own: LinkCost = getattr(self, link)
        ports = (per_byte(port.gbps) for port in self.shared_ports if link in port.links)
        return max(own.beta_us, *ports, 0.0)

    @property
    def inside_us(self) -> float:
        """The latency of notifies between streams of one rank."""
        return self.notify_us if self.local_notify_us is None else self.local_notify_us

    @property
    def gamma_us(self) -> float:
        """γ: microseconds per reduced byte."""
        return per_byte(self.reduce_gbps)

    @property
    def copy_us(self) -> float:
        """Microseconds per byte of a local copy."""
        return per_byte(self.copy_gbps)


def per_byte(gbps: float | None) -> float:
    """Return microseconds per byte of a rate in GB/s; nothing where there is none."""
    return 0.0 if gbps is None else 1e-3 / gbps


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

_BOX16 = _A2.model_copy(
    update={
        "name": "atlas-200t-a2-box16",
        "sources": "HCCL's selection (18.3, 20 and 54.4 GB/s, the latter between two modules of a "
        "host), its newest cost model (750 and 483 GB/s)",
    }
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

_950 = CostModel(
    name="ascend950",
    hccs=LinkCost(alpha_us=0.0, gbps=50.0),
    sio=_SIO,
    pcie=_PCIE5,
    roce=LinkCost(alpha_us=0.0, gbps=400.0),
    reduce_gbps=1000.0,
    copy_gbps=1000.0,
    memory_gbps=1000.0,
    task_us=1.0,
    post_us=1.0,
    wait_us=1.0,
    sources="a contest's evaluation (2 servers of 8 NPUs): links are fitted to one set of its "
    "published times, memory and the stream's times to another (examples/contest_all_reduce)",
    uncertain="α is 0: 1 µs of a stream for each post, wait and data task has it. Posts, waits and "
    "tasks are not told apart. `roce` is the port to the Clos network. See docs/accuracy.md.",
)

DEFAULT_COST = _A2.name


def _selection() -> CostModel:
    """Return the model of HCCL's selection: 60 µs a step and its table of bandwidths."""
    links = {
        name: getattr(_A2, name).model_copy(update={"alpha_us": SELECTION_ALPHA_US})
        for name in ("hccs", "sio", "pcie", "roce")
    }
    free = {"reduce_gbps": None, "copy_gbps": None}
    names = {"name": "selection", "sources": "HCCL's selection", "uncertain": ""}
    return _A2.model_copy(update={**links, **free, **names})


COSTS = {cost.name: cost for cost in (_A2, _BOX16, _910A, _A3, _DUO, _950, _selection())}
