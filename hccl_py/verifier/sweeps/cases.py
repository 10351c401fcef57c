"""The calls on which an executor is verified: one of them, and the user's narrowing of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, InPlace, Mode, ReduceOp
from hccl_py.topology.presets import DEFAULT_PRESET
from hccl_py.topology.topology import Topology

SMALL_CCL = 32 << 10
"""So small that little data takes several rounds; HCCL's executors need 16 KiB of head-room."""

LARGE_CCL = 200 << 20
"""HCCL_BUFFSIZE's default: what `hccl-py run` takes."""


MOST_AMOUNTS = 40
"""Characters of a list of amounts in the text of a case."""


@dataclass(frozen=True)
class Cases:
    """The narrowing of a sweep; members that are empty or None stay the sweep's own choice.

    `ranks` keeps the sweep's layouts with these numbers of ranks and adds that of `hccl-py run
    --ranks`; `servers`, `devices`, `superpods`, `topology` and `algo` are those of `hccl-py run`. A
    topology that is no product, a generated network or a file, is taken with all its ranks, or with
    the first `ranks` of them. `buffsize` is in MB.
    """

    ranks: tuple[int, ...] = ()
    servers: int | None = None
    devices: int | None = None
    superpods: int | None = None
    topology: str | None = None
    counts: tuple[int, ...] = ()
    dtypes: tuple[DataType, ...] = ()
    reduce_ops: tuple[ReduceOp, ...] = ()
    modes: tuple[Mode, ...] = ()
    roots: tuple[int, ...] = ()
    in_place: bool | InPlace | None = None
    buffsize: int | None = None
    algo: str = ""

    @property
    def has_layout(self) -> bool:
        """True if the number of ranks, or their servers, are narrowed."""
        return bool(self.ranks or self.servers or self.devices or self.superpods)


@dataclass(frozen=True, eq=False)
class Case:
    """One call: what `record` takes besides the executor; `spelling` is the topology's name."""

    topology: Topology
    op: OpParam
    ccl_bytes: int
    spelling: str = ""

    @property
    def is_trivial(self) -> bool:
        """True if there is nothing to communicate: one rank, or no data."""
        return self.topology.size == 1 or not self.op.count

    @cached_property
    def text(self) -> str:
        """The call in words; different calls have different texts."""
        op = self.op
        reduce = f" {op.reduce.spelling}" if op.reduce is not None else ""
        words = [self._layout, f"count {op.count}", f"{op.dtype.value}{reduce}", op.mode.value]
        if op.root is not None:
            words.append(f"root {op.root}")
        if op.in_place:
            at = f" ({op.in_place.value})" if isinstance(op.in_place, InPlace) else ""
            words.append(f"in place{at}")
        words += map(" ".join, op.words.items())
        words += self._amounts
        if self._preset != DEFAULT_PRESET:
            words.append(self._preset)
        if self.ccl_bytes != LARGE_CCL:
            words.append(f"CCL buffers of {self.ccl_bytes >> 10} KiB")
        return ", ".join(words)

    @cached_property
    def options(self) -> str:
        """The options of `hccl-py check` that narrow a sweep to this case and its like."""
        op, servers = self.op, self.topology.servers
        words = [f"--topology {self._preset}", f"--count {op.count}"]
        if len(servers) > 1 and self.topology.is_even:
            pods = len(self.topology.superpods)
            words.insert(0, f"--servers {len(servers) // pods} --devices {servers[0]}")
            if pods > 1:
                words.insert(0, f"--superpods {pods}")
        else:
            words.insert(0, f"--ranks {self.topology.size}")
        words.append(f"-d {op.dtype.value} --mode {op.mode.value}")
        if op.reduce is not None:
            words.append(f"-o {op.reduce.spelling}")
        if op.root is not None:
            words.append(f"-r {op.root}")
        if op.in_place:
            at = f" {op.in_place.value}" if isinstance(op.in_place, InPlace) else ""
            words.append(f"--in-place{at}")
        if op.words:
            levels = {"level0": "NA"} | op.words
            words.append(f'--algo "{";".join(map(":".join, levels.items()))}"')
        return " ".join(words)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """The sort key of cases: fewest ranks, rounds, data and extras first."""
        op, topology = self.op, self.topology
        return (
            topology.size,
            self.ccl_bytes < LARGE_CCL,
            op.size,
            len(topology.servers),
            not topology.is_even,
            self._preset != DEFAULT_PRESET,
            op.mode is not Mode.OP_BASE,
            bool(op.in_place),
            op.root or 0,
            self.text,
        )

    @property
    def _preset(self) -> str:
        return self.spelling or self.topology.product.name

    @property
    def _amounts(self) -> list[str]:
        """Return the amounts that differ by rank, shortened to a line."""
        op, found = self.op, []
        for name in ("counts", "displs", "matrix", "pairs"):
            numbers = str(getattr(op, name)).replace(" ", "")
            if numbers != "()":
                short = numbers if len(numbers) <= MOST_AMOUNTS else f"{numbers[:MOST_AMOUNTS]}.."
                found.append(f"{name} {short}")
        return found

    @property
    def _layout(self) -> str:
        servers, size = self.topology.servers, self.topology.size
        ranks = f"{size} rank{'s' if size > 1 else ''}"
        if len(servers) == 1:
            return ranks
        pods = self.topology.superpods
        joined = f" in superpods of {' + '.join(map(str, pods))}" if len(pods) > 1 else ""
        if self.topology.is_even:
            return f"{ranks} ({len(servers)} servers x {servers[0]}{joined})"
        return f"{ranks} (servers of {' + '.join(map(str, servers))}{joined})"
