"""Pipelines of Atlas A2 whose sums are the same in every run.

One template, `templates/deter_pipeline.py`, reduces and scatters, `templates/pipeline.py` gathers
backwards. Places lie in CCL_Out:

    reduce_scatter   a place takes a chunk, which lies as far behind a multiple of 16 KiB as in user
                     memory, and 16 KiB more; a sum from another server begins with its place. Where
                     a CCL buffer is so small that nothing would be left, places are cut without
                     (ours).
    all_reduce       the data is cut in a slot per rank, of multiples of 16 KiB, or of 128 bytes
                     where those would leave ranks without; places are these slots. Where even so
                     slots are empty, HCCL stops with an error; here places lie behind the data.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from hccl_executors.one_mesh import require_even_meshes, require_inline_reduce
from hccl_executors.sources import newest
from hccl_executors.templates.deter_pipeline import ADDERS, deter_reduce_scatter
from hccl_executors.templates.mesh_collect import ALIGN
from hccl_executors.templates.pipeline import pipeline_all_gather
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
    steps,
)


def _meeting(op: str) -> Fidelity:
    return steps(
        "Peers meet before every exchange; where turns do not overlap, HCCL's do not before the "
        "last one, and may lose a signal that is posted while the one before is still set.",
        *newest(
            f"coll_{op}_deter_pipeline_executor",
            "alg_template_multi_deter_pipeline",
            f"{op}_multi_deter_pipeline",
        ),
    )


class DeterPipeline(BaseExecutor):
    """Several servers of Atlas A2, three devices or more in each, in op-base mode."""

    op: str
    algorithm = "level0:mesh;level1:pipeline"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers alike, full meshes of SDMA links that reduce, CCL buffers, and RDMA between
        servers, of which SDMA may join two.
        """
        servers, devices = len(topology.servers), topology.servers[0]
        alike = require_even_meshes(op, topology) and require_inline_reduce(op, topology)
        pulls = topology.joins_servers and servers > 2
        return alike and require(
            (servers > 1, "goes between servers, there is one"),
            (devices > 2, f"needs three devices in every server, there are {devices}"),
            (not pulls, "SDMA joins two servers at most, more are joined by RDMA"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Meshes inside and between, and a stream for every peer and for every rank that adds."""
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"), PlaneRequest("level12", "mesh")),
            sub_streams=int(rank.level0.size) - 1 + ADDERS,
            max_count=self.room(op, rank) // op.unit,
        )

    @abstractmethod
    def room(self, op: OpParam, rank: RankView) -> int:
        """Return the bytes of a round: of one chunk, where ops have a slot per rank."""


class _Aligned(NamedTuple):
    """Chunks of a reduce-scatter that lie in places as in user memory, modulo `gap`."""

    inputs: Chunks
    size: int
    gap: int

    @property
    def average(self) -> int:
        return self.size

    def given(self, owner: int) -> Region:
        return self.inputs[owner]

    def place(self, number: int, owner: int) -> Region:
        start = number * (self.size + self.gap)
        behind = (int(self.inputs[owner].offset) - start) % self.gap if self.gap else 0
        return Region(Buffer.CCL_OUT, start + behind, self.size)

    def landed(self, number: int, owner: int) -> Region:
        return Region(Buffer.CCL_OUT, number * (self.size + self.gap), self.size)


class ReduceScatterDeterPipelineExecutor(DeterPipeline):
    """ReduceScatter straight from the user's input; the own server's sum grows in the output."""

    op = "reduce_scatter"
    fidelity = _meeting("reduce_scatter")

    def room(self, op: OpParam, rank: RankView) -> int:
        """Return one place's share of CCL_Out in bytes, less the bytes that alignment takes."""
        return rank.ccl_bytes // rank.size - _gap(op, rank)

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Reduce and scatter."""
        places = _Aligned(rank.user_in, int(rank.user_out.size), _gap(op, rank))
        deter_reduce_scatter(rank, rank.level0, rank.level12, places, rank.user_out, in_total=True)


def _gap(op: OpParam, rank: RankView | AnyRank) -> int:
    return ALIGN if rank.ccl_bytes // rank.size >= ALIGN + op.unit else 0


class _AllReduceSlots(NamedTuple):
    """Slots of an all-reduce, of `size` bytes but for the last ones, which are places, too."""

    inputs: Chunks
    size: int
    average: int

    def given(self, owner: int) -> Region:
        return self.inputs[owner]

    def place(self, number: int, owner: int) -> Region:
        return Region(Buffer.CCL_OUT, number * self.size, self.inputs[owner].size)

    def landed(self, number: int, owner: int) -> Region:
        return self.place(number, owner)


class AllReduceDeterPipelineExecutor(DeterPipeline):
    """AllReduce: the reduce-scatter of a slot per rank, then a pipelined all-gather backwards. The
    sum of the own slot comes to lie in CCL_Out.
    """

    op = "all_reduce"
    fidelity = _meeting("all_reduce")

    def room(self, op: OpParam, rank: RankView) -> int:
        """Return the bytes of a CCL buffer, as far as all slots but one have room in it."""
        slots = rank.ccl_bytes // (rank.size - 1) // SLICE_ALIGN * SLICE_ALIGN * rank.size
        return min(rank.ccl_bytes, slots)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Reduce and scatter, then gather."""
        mesh, ring, ranks = rank.level0, rank.level12, rank.size
        total = int(rank.user_in.size)
        align = _align(total, ranks)
        inputs, outputs = rank.user_in.split(ranks, align), rank.user_out.split(ranks, align)
        places = _AllReduceSlots(inputs, int(inputs.sizes[0, 0]), total // ranks)
        own = int(ring.id * mesh.size + mesh.id)
        is_last = int(mesh.id) == int(mesh.size) - 1
        deter_reduce_scatter(rank, mesh, ring, places, places.place(own, own), in_total=is_last)
        blocks = [memory.head(total).split(ranks, align) for memory in (rank.ccl_out, rank.ccl_in)]
        pipeline_all_gather(rank, mesh, ring, outputs, blocks, backwards=True)


def _align(size: int, ranks: int) -> int:
    """Return to what slots are rounded up: such that the last one is not empty, if possible."""
    each = -(-size // ranks)
    return ALIGN if -(-each // ALIGN) * ALIGN * (ranks - 1) < size else SLICE_ALIGN
