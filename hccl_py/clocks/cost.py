"""The cost model: what a user may state of time, in one pydantic model.

α is paid once per step: over SDMA as the latency of the Ack that lets the data go, over RDMA as
that of the DataSignal that follows the data. A data task costs bytes·β, and bytes·γ more where it
reduces. Other notifies and the start of any task have parameters of their own. Rates are in GB/s
(1e9 bytes a second); a rate that is left out (null) costs nothing.

The models of machines are files in `machines/`, each with its sources, what is uncertain about it,
and the measured times that it was held to. HCCL's selection counts with a model of its own,
`selection`: 60 µs a step and effective rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from hccl_py.clocks.measured import MeasuredSet

PROTOCOLS = ("Simple", "LL", "LL128")
"""How MSCCL's threadblocks hand data on; a program says by which, if by any."""

ENGINES = ("aicpu_ts", "ccu", "host")
"""What puts a program's tasks on streams; a recording says which, else the product's usual one."""

Microseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
LINKS = ("hccs", "sio", "pcie", "roce")
"""Sorts of links of products; the cost model has a field for each."""

GIVE_WAY = {
    "gbps": ("read_gbps", "write_gbps", "device_gbps"),
    "alpha_us": ("far_alpha_us",),
}
"""Members of a link that say more about another one: where that is stated anew without them, they
are left out."""

Rate = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)] | None
"""From a byte a second, so that no time is beyond what numbers hold."""


class LinkCost(BaseModel):
    """One sort of link: α in microseconds, the rate of one flow in GB/s.

    Alone, a flow has the whole rate, so β is its inverse; `read_gbps` and `write_gbps` are those of
    what is pulled and pushed where they are others than `gbps`. `ports` says how many flows leave
    (and as many enter) a device at full rate where links end in a switch; links from device to
    device are one flow wide. `device_gbps` is what all flows over links of this sort take together
    at a device, each way: one flow may take all of it, and several share it.

    `far_alpha_us` is α where the link leaves the server, `start_us` the time that a transfer keeps
    its stream before its bytes move.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha_us: Microseconds
    gbps: Rate
    ports: Annotated[int, Field(ge=1)] = 1
    read_gbps: Rate = None
    write_gbps: Rate = None
    device_gbps: Rate = None
    far_alpha_us: Microseconds | None = None
    start_us: Microseconds = 0.0

    @property
    def beta_us(self) -> float:
        """β of most flows: microseconds per byte."""
        return per_byte(self.gbps)

    def way_us(self, *, reads: bool) -> float:
        """Return the microseconds per byte of a flow that is pulled, or pushed."""
        own = self.read_gbps if reads else self.write_gbps
        return per_byte(self.gbps if own is None else own)

    @property
    def widest_gbps(self) -> float:
        """The rate of the fastest flow; inf: anything."""
        fastest = min(self.way_us(reads=True), self.way_us(reads=False))
        return 1e-3 / fastest if fastest else float("inf")

    @property
    def switched_gbps(self) -> float:
        """The rate that all flows of a device share where links end in a switch; inf: anything."""
        if self.device_gbps is not None:
            return self.device_gbps
        return self.widest_gbps * self.ports


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


class EngineCost(BaseModel):
    """Costs of programs of one engine: `call_us` is the least that a call takes, however little it
    moves; no task begins before `launch_us`.

    The others take the place of the model's own where an engine has them. `task_us`, `hccs_us` and
    `roce_us` are all of a data task but its bytes: on the rank itself, over hccs, and over the port
    to other servers. `notify_us` is the latency of notifies to other ranks. Rates are those of a
    flow over hccs, of a port, of one flow that reduces (`inline_gbps`), and of the memory that
    copies and reductions share.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_us: Microseconds = 0.0
    launch_us: Microseconds = 0.0
    task_us: Microseconds | None = None
    hccs_us: Microseconds | None = None
    roce_us: Microseconds | None = None
    notify_us: Microseconds | None = None
    local_notify_us: Microseconds | None = None
    post_us: Microseconds | None = None
    hccs_gbps: Rate = None
    roce_gbps: Rate = None
    inline_gbps: Rate = None
    memory_gbps: Rate = None

    def changes(self, cost: CostModel) -> dict[str, object]:
        """Return the fields of a cost model that this engine has in place of its own."""
        names = ("task_us", "notify_us", "local_notify_us", "post_us", "inline_gbps", "memory_gbps")
        found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.memory_gbps is not None:
            found |= {"copy_gbps": self.memory_gbps, "reduce_gbps": self.memory_gbps}
        task_us = cost.task_us if self.task_us is None else self.task_us
        for link, start, gbps in (
            ("hccs", self.hccs_us, self.hccs_gbps),
            ("roce", self.roce_us, self.roce_gbps),
        ):
            own: dict[str, object] = {}
            if start is not None:
                own["start_us"] = start - task_us  # every data task starts with task_us
            if gbps is not None:
                own["gbps"] = gbps
            if self.notify_us is not None:
                own |= {"alpha_us": self.notify_us, "far_alpha_us": None}
            if own:
                found[link] = getattr(cost, link).model_copy(update=own)
        return found


class Engines(BaseModel):
    """The costs of every engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    aicpu_ts: EngineCost = EngineCost()
    ccu: EngineCost = EngineCost()
    host: EngineCost = EngineCost()

    def of(self, engine: str) -> EngineCost:
        """Return the costs of one of ENGINES; nothing for programs of none, ""."""
        found: EngineCost = getattr(self, engine) if engine else EngineCost()
        return found


class ProtocolCost(BaseModel):
    """Costs of programs of one of MSCCL's protocols, besides those of their tasks.

    No task begins before `launch_us`. `gbps` is the most that one threadblock moves: no data task
    of a stream is faster, however fast its link is, so that a link is full only where several use
    it. `efficiency` is the share of data in what goes over links: the rest is flags. `alpha_us` and
    `task_us` are those of the model's links and data tasks, where a protocol has its own. With
    `slice_bytes`, messages stream: what MSCCL's XML is imported for writes, receives and sends on
    every slice before the next one is there; with `slices`, in at most so many, of at least
    `slice_bytes` each. Nothing of it counts where it is left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    launch_us: Microseconds = 0.0
    alpha_us: Microseconds | None = None
    task_us: Microseconds | None = None
    gbps: Rate = None
    efficiency: Annotated[float, Field(ge=1e-3, le=1)] = 1.0
    slice_bytes: Annotated[int, Field(ge=1)] | None = None
    slices: Annotated[int, Field(ge=1)] | None = None


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

    Data: `reduce_gbps` is γ's inverse, `inline_gbps` that of reductions inside transfers where that
    is another one, `copy_gbps` the rate of local copies, `task_us` the start of a data task. Local
    copies and reductions of one device that overlap share `memory_gbps` in contended simulation;
    without it they do not slow each other down. Where `memory_users` is `all`, data over links
    takes it, too, at both ends. `joined_tasks` says whether data tasks that are one step of a
    kernel take their sum together or as long as the longest, `inline_reductions` the same of a
    transfer and the reduction inside it.

    Notifies: `alpha_by` says which pay α: by `number` those of HCCL (Ack over SDMA, DataSignal over
    RDMA, extra ones over both), by `message` those that announce a message (`clocks/alpha.py`). The
    others take `notify_us`, between streams of one rank `local_notify_us` where that is stated.
    `post_us` and `wait_us` keep the stream of a post busy, and that of a wait whose notify is set.

    `jitter` is the standard deviation of random factors of tasks, `jitter_seed` chooses them.
    `engines` has the costs of a call as a whole, `protocols` those of programs of MSCCL. `sources`
    and `uncertain` are for people, `measured` says what the model was held to.
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
    inline_gbps: Rate = None
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
    engines: Engines = Engines()
    protocols: Protocols = Protocols()
    sources: str = ""
    uncertain: str = ""
    measured: Annotated[tuple[MeasuredSet, ...], Field(strict=False)] = ()

    @staticmethod
    def of(product: str) -> CostModel:
        """Return the model of a product; networks for study use `study`."""
        return COSTS.get(product, COSTS[DEFAULT_COST])

    def formula(self) -> CostModel:
        """Return the model of the closed formulas: only α, β and γ of links cost anything."""
        free: dict[str, object] = dict.fromkeys(("copy_gbps", "memory_gbps", "inline_gbps"))
        free |= dict.fromkeys(("notify_us", "task_us", "post_us", "wait_us", "hop_us"), 0.0)
        free |= {"protocols": Protocols(), "local_notify_us": None, "inline_reductions": "sum"}
        free |= {"jitter": 0.0, "shared_ports": (), "engines": Engines(), "measured": ()}
        one_rate = {"read_gbps": None, "write_gbps": None, "device_gbps": None}
        plain: dict[str, object] = {**one_rate, "far_alpha_us": None, "start_us": 0.0}
        free |= {name: getattr(self, name).model_copy(update=plain) for name in LINKS}
        return self.model_copy(update={"name": "formula", **free})

    def run_by(self, protocol: str, engine: str = "") -> CostModel:
        """Return the model as programs of a protocol and an engine have it: with its α and start of
        tasks, and what else an engine has of its own.
        """
        own = self.protocols.of(protocol)
        changed = self.engines.of(engine).changes(self)
        if own.alpha_us is not None:
            alpha = {"alpha_us": own.alpha_us, "far_alpha_us": None}
            changed |= {name: getattr(self, name).model_copy(update=alpha) for name in LINKS}
        if own.task_us is not None:
            changed["task_us"] = own.task_us
        return self.model_copy(update=changed) if changed else self

    def alone_us(self, link: str, *, reads: bool) -> float:
        """Return the microseconds per byte of a flow alone on one sort of link, by name: those of
        the link, or of what it has to go through at a device where that is slower.
        """
        own: LinkCost = getattr(self, link)
        ports = (per_byte(port.gbps) for port in self.shared_ports if link in port.links)
        return max(own.way_us(reads=reads), per_byte(own.device_gbps), *ports, 0.0)

    def device_ports(self, direct: tuple[str, ...]) -> tuple[SharedPort, ...]:
        """Return the ports that links of a device share: those stated, and one for each sort of
        links that lead from device to device (`direct`) and that have a rate of the device.
        """
        rates = ((name, getattr(self, name).device_gbps) for name in direct)
        own = [{"links": (name,), "gbps": gbps} for name, gbps in rates if gbps]
        return (*self.shared_ports, *map(SharedPort.model_validate, own))

    @property
    def inside_us(self) -> float:
        """The latency of notifies between streams of one rank."""
        return self.notify_us if self.local_notify_us is None else self.local_notify_us

    @property
    def gamma_us(self) -> float:
        """γ: microseconds per reduced byte."""
        return per_byte(self.reduce_gbps)

    @property
    def inline_gamma_us(self) -> float:
        """γ of reductions inside transfers."""
        return self.gamma_us if self.inline_gbps is None else per_byte(self.inline_gbps)

    @property
    def copy_us(self) -> float:
        """Microseconds per byte of a local copy."""
        return per_byte(self.copy_gbps)


def per_byte(gbps: float | None) -> float:
    """Return microseconds per byte of a rate in GB/s; nothing where there is none."""
    return 0.0 if gbps is None else 1e-3 / gbps


DEFAULT_COST = "study"
"""The model of networks for study, and of what has none of its own."""

MACHINES = (
    "atlas-800t-a2",
    "atlas-200t-a2-box16",
    "atlas-800-9000",
    "atlas-900-a3",
    "300i-duo",
    "ascend950",
    "mi300x",
    "selection",
    DEFAULT_COST,
)


class _Machines(Mapping[str, CostModel]):
    """The models of machines by their names, each read from its file when it is first asked for."""

    def __getitem__(self, name: str) -> CostModel:
        if name not in MACHINES:
            raise KeyError(name)
        return _read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MACHINES)

    def __len__(self) -> int:
        return len(MACHINES)


@cache
def _read(name: str) -> CostModel:
    path = Path(__file__).parent / "machines" / f"{name}.json"
    return CostModel.model_validate_json(path.read_bytes())


COSTS: Mapping[str, CostModel] = _Machines()
