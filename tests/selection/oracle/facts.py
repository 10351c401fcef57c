"""A call as HCCL's operators see it, for the oracle: their conditions' facts from plain numbers.

Written from `alg_configurator.cc`, `coll_alg_operator.cc`, `coll_alg_utils.cc` and
`hccl_communicator.cc` of both releases, not from hccl_py: nothing here imports it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from math import ceil, gcd, log2

KB, MB = 1 << 10, 1 << 20

RING, HD, NHR, NHR_V1, NB, PIPELINE = "ring", "H-D_R", "NHR", "NHR_V1", "NB", "pipeline"
AHC, AHC_BROKE, WHOLE = "AHC", "AHC_BROKE", "whole ring"
JOINED = (AHC, AHC_BROKE)
NULL, PAIRWISE = "null", "pairwise"

MESH, SINGLE_RING, DOUBLE_RING, COMMON = "mesh", "single ring", "double ring", "common"
MESH_OF_4, RING_OF_8 = "mesh of 4", "ring of 8"

ALL_TO_ALL = ("all_to_all", "all_to_all_v", "all_to_all_vc")
FFTS_CAPACITY = 65535
FLOATS = ("fp16", "fp32", "bf16")

Taken = tuple[str | None, str]
"""An executor and the algorithm between servers; None where HCCL refuses."""

_SIX = ("fp32", "fp16", "int8", "int16", "int32", "bf16")
_COPIED = (*_SIX, "uint8", "uint16", "uint32", "int64", "uint64", "fp64")
_INLINE = {
    "910B": (_SIX, ("sum", "max", "min")),
    "910_93": (_SIX, ("sum", "max", "min")),
    "910A": (("fp32",), ("sum",)),
    "310P3": (("fp32", "fp16", "int16"), ("sum",)),
}


@dataclass(frozen=True)
class Call:
    """One call. `servers` has the devices of every module, `hosts` the host of every module, by
    default a host for each, `pods` the servers of every superpod.

    `bytes` are those of the op's count, of the largest part where parts differ. `level0`, `level1`
    and `level2` are HCCL_ALGO's words, empty for none. `elsewhere` is another op for which it says
    AHC, by HCCL_ALGO's name, and then it says nothing of this one. `registered`: user memory is,
    with all ranks. `matrix` has what an all-to-all sends, in bytes; the environment is said by the
    rest.
    """

    op: str
    device: str
    servers: tuple[int, ...]
    pods: tuple[int, ...]
    bytes: int
    dtype: str
    reduce: str
    graph: bool
    deterministic: str
    expansion: str
    ccl: int
    hosts: tuple[int, ...] = ()
    level0: str = ""
    level1: str = ""
    level2: str = ""
    elsewhere: str = ""
    no_inter_hccs: bool = False
    ports: int = 0
    lite: bool = False
    registered: bool = False
    matrix: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def op_base(self) -> bool:
        return not self.graph

    @property
    def ranks(self) -> int:
        return sum(self.servers)

    @property
    def server_num(self) -> int:
        return len(set(self.hosts)) if self.hosts else len(self.servers)

    @property
    def module_num(self) -> int:
        return len(self.servers)

    @property
    def pod_num(self) -> int:
        return len(self.pods)

    @property
    def host_devices(self) -> tuple[int, ...]:
        """Devices of every host."""
        if not self.hosts:
            return self.servers
        sizes = zip(self.hosts, self.servers, strict=True)
        found = dict.fromkeys(self.hosts, 0)
        for host, size in sizes:
            found[host] += size
        return tuple(found.values())

    @property
    def devices(self) -> int:
        """deviceNumPerAggregation_ of the first rank: half of a host whose modules both take part,
        all of another one (SetInnerServerAverageDevice).
        """
        modules = self.hosts.count(self.hosts[0]) if self.hosts else 1
        return self.host_devices[0] // modules

    @property
    def uneven_servers(self) -> bool:
        return len(set(self.servers)) > 1

    @property
    def uneven_pods(self) -> bool:
        return len(set(self.pods)) > 1

    @property
    def pod_devices(self) -> tuple[int, ...]:
        sizes, at = [], 0
        for number in self.pods:
            sizes.append(sum(self.servers[at : at + number]))
            at += number
        return tuple(sizes)

    @property
    def uneven_pod_devices(self) -> bool:
        return len(set(self.pod_devices)) > 1

    @property
    def single_mesh(self) -> bool:
        return self.module_num == 1

    @property
    def asks_ahc(self) -> bool:
        """IsConfigAHCAlgo: whether HCCL_ALGO has AHC for one of its ops."""
        return self.level1 in JOINED or bool(self.elsewhere)

    @property
    def one_level(self) -> bool:
        """useOneLevelAlgorithm of all-to-all."""
        return (self.level0, self.level1) == ("NA", PAIRWISE)

    @property
    def paired_inside(self) -> bool:
        """Whether CollRunAlltoAllVStaged goes pairwise inside servers because HCCL_ALGO says it,
        which asks for what is set for all ops.
        """
        return (self.level0, self.level1) == (PAIRWISE, PAIRWISE)

    @property
    def same_plane(self) -> bool:
        """Whether all ranks have the same device number, in their modules."""
        return set(self.servers) == {1}

    @property
    def inline(self) -> bool:
        """Whether SDMA reduces."""
        types, ops = _INLINE[self.device]
        return self.dtype in types and self.reduce in ops

    @property
    def rdma_inline(self) -> bool:
        """Whether RDMA reduces."""
        return self.dtype in _SIX and self.reduce in ("sum", "max", "min")

    @property
    def aiv(self) -> bool:
        return self.expansion == "AIV" and self.device in ("910B", "910_93")

    @property
    def aiv_reduces(self) -> bool:
        return self.dtype in _SIX and self.reduce in ("sum", "max", "min")

    @property
    def aiv_copies(self) -> bool:
        return self.dtype in _COPIED

    @property
    def asks_ai_cpu(self) -> bool:
        """Whether HCCL_OP_EXPANSION_MODE has the AI CPU on A3, where it is the default."""
        return self.device == "910_93" and self.expansion != "HOST"

    @property
    def power_of_servers(self) -> bool:
        return is_power(self.server_num)

    @property
    def power_of_ranks(self) -> bool:
        return is_power(self.ranks)

    @property
    def unfolded(self) -> bool:
        """aicpuUnfoldMode on A3: with one rank only for all-to-all, reductions only in line."""
        if not self.asks_ai_cpu:
            return False
        if self.op in ALL_TO_ALL:
            return True
        return self.ranks != 1 and (not self.reduce or self.inline)

    @property
    def zero_copy(self) -> bool:
        """IsSupportZeroCopy."""
        suits = self.unfolded and self.op_base and self.device == "910_93"
        return self.registered and suits and self.devices != 1 and not self.uneven_servers

    def with_even_pods(self) -> Call:
        """Cut superpods to the greatest number of servers that divides all."""
        if self.uneven_servers or not self.uneven_pods:
            return self
        servers = reduce(gcd, self.pods)
        return replace(self, pods=(servers,) * (self.server_num // servers))


def is_power(number: int) -> bool:
    return number & (number - 1) == 0


def links(call: Call) -> str:
    """What joins the devices of a module: GetDefaultAlgoLevel0Module."""
    if call.devices == 1:
        return SINGLE_RING  # IsStandardCard, or GetDefaultAlgoLevel0Module
    if call.device == "910B":
        return MESH
    if call.device == "910_93":
        return DOUBLE_RING if call.devices % 2 == 0 and call.devices > 2 else SINGLE_RING
    by_number = {8: RING_OF_8, 4: MESH_OF_4, 2: SINGLE_RING, 1: SINGLE_RING}
    return by_number.get(call.devices, COMMON)


def topology(call: Call) -> str:
    """The communicator's topoType_; level0:null is for all ops, and leaves none."""
    return COMMON if call.uneven_servers or call.level0 == NULL else links(call)


def ring_or_comm(op: str, call: Call) -> str:
    """910B where its links are no mesh: a ring of cards, or of a single device."""
    return f"{op}RingExecutor" if topology(call) == SINGLE_RING else f"{op}Comm"


def default_level1(call: Call) -> str:
    """GetDefaultAlgoLevel1V1."""
    number = call.module_num
    found = HD if number >= 8 or (number != 1 and is_power(number)) else RING
    return NHR if found == HD and call.device == "910_93" else found


def configured(
    call: Call, pipelined: tuple[str, ...], joining: tuple[str, ...]
) -> tuple[str, bool]:
    """SetAlgoLevel1: the algorithm, and whether it is automatic; `joining` are the ops of AHC."""
    word = call.level1
    if word == PIPELINE and (call.device not in pipelined or call.graph):
        word = ""
    if word in JOINED and call.op not in joining:
        word = ""
    if word in (RING, HD, NHR, NHR_V1, NB, PIPELINE, *JOINED):
        return word, False
    return default_level1(call), call.device == "910B"


def groups(call: Call) -> tuple[int, ...]:
    """The sizes of AHC's groups: on A2 hosts of devices, on A3 superpods of devices where level0 is
    null, else of servers (SelectAlgforAHC, AHCCommSubgroupInit).
    """
    if call.device == "910B":
        return call.host_devices
    return call.pod_devices if call.level0 == NULL else call.pods


def cheapest(call: Call) -> str:
    """SelectAlgoTypeFor...: ring, NHR or H-D by their seconds; all move 1 s of data here.

    The share of the data, (m - 1) / m, is the same for ring, NHR and for H-D of a power of two;
    others' is larger.
    """
    number, delay, data = call.module_num, 60.0, 1e6
    share = (number - 1) / number * data
    ring = (number - 1) * delay + share
    nhr = ceil(log2(number)) * delay + share
    halving = log2(number) * delay + share
    if not is_power(number):
        halving = ceil(log2(number)) * delay + (2 * number - 1) / number * data
    found = NHR if nhr < ring else RING
    return HD if halving < min(nhr, ring) else found
