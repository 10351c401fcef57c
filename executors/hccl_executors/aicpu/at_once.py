"""Executors for a UBX board: one template in its mesh on one part of the data, and another one over
its Clos network on the rest, at the same time.

HCCL: Ins...ConcurrentExecutor. Main is the mesh's main thread, and wakes the Clos network's once.
Each template goes through its own share of the HCCL buffer as often as it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hccl_executors.aicpu.all_gather import MeshAllGather, NhrAllGather
from hccl_executors.aicpu.all_reduce import NhrAllReduce, TwoShotAllReduce
from hccl_executors.aicpu.all_to_all import PairsOfRanks
from hccl_executors.aicpu.on_aicpu import TRANSFER, OnAicpu
from hccl_executors.aicpu.reduce_scatter import MeshReduceScatter, NhrReduceScatter
from hccl_executors.aicpu.seats import (
    ALIGN,
    AnyChannelRank,
    Seat,
    flat,
    is_one_board,
    piece,
    post_sync,
    pre_sync,
    requests,
    seat,
    slots,
)
from hccl_executors.sources import like_ascend950
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import PerRank, values_of


class DataPart(NamedTuple):
    """Bytes of the data, the template that brings them, and its share of the HCCL buffer."""

    layer: int
    share: Region
    begin: int
    size: int

    def of(self, region: Region) -> Region:
        """Return these bytes of a region."""
        found: Region = region[self.begin :].head(self.size)
        return found


class AtOnce(OnAicpu):
    """The machinery. `weights` are the shares of mesh and Clos network, `templates` their own."""

    algorithm = "level0:mesh;level1:NHR"
    cluster = "ascend950-ubx-board"
    weights: ClassVar[tuple[int, int]]
    templates: ClassVar[tuple[Any, Any]]

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        found = super().suits(op, topology)
        return found and require((is_one_board(topology), "needs a UBX board of at most 4 devices"))

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        """Both templates ask for theirs, and for a notify each by which they meet. No rounds."""
        mesh, clos = (template.threads(rank.size) for template in self.templates)
        return ChannelResources(
            channels=tuple(
                channel
                for layer, template in enumerate(self.templates)
                for channel in requests(flat(rank)._replace(layer=layer), template)
            ),
            threads=(mesh[0] + 1, *mesh[1:], clos[0] + 1, *clos[1:]),
        )

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        n = rank.size
        subs = [len(template.threads(n)) - 1 for template in self.templates]
        threads = rank.threads[: subs[0] + 1], rank.threads[subs[0] + 1 :]
        seats = [
            seat(rank, flat(rank)._replace(layer=layer), own, op)
            for layer, own in enumerate(threads)
        ]
        pre_sync(rank.main, [threads[1][0]], subs[1])
        pieces = [
            [(layer, *one) for one in self.pieces(op, rank, layer)] for layer in range(len(seats))
        ]
        for k in range(max(map(len, pieces))):
            for layer, begin, count in (own[k] for own in pieces if k < len(own)):
                unit, share = op.unit, self.share(op, rank, layer)
                part = DataPart(layer, share, begin * unit, count * unit)
                self.record(rank, seats[layer], part)
        post_sync(rank.main, [threads[1][0]], [subs[0]])

    def pieces(self, op: OpParam, rank: AnyChannelRank, layer: int) -> Iterator[tuple[int, int]]:
        """Yield first element and number of elements of every pass of a template."""
        times = self.templates[layer].scratch(rank.size)
        room = self.share(op, rank, layer).size // times // ALIGN * ALIGN
        most = min(TRANSFER, int(room)) // op.unit
        align = max(ALIGN // op.unit, 1)
        first = self.first(op.extent) // align * align
        begin, end = ((0, first), (first, op.extent))[layer]
        for start in range(begin, end, max(most, 1)):
            yield start, min(most, end - start)

    def first(self, count: int) -> int:
        """Return the mesh's elements before they are cut to whole slices."""
        return count * self.weights[0] // sum(self.weights)

    def share(self, op: OpParam, rank: AnyChannelRank, layer: int) -> Region:
        """Return a template's share of the HCCL buffer, by the data and its copies."""
        demands = [
            weight * template.scratch(rank.size)
            for weight, template in zip(self.weights, self.templates, strict=True)
        ]
        first = int(rank.ccl_bytes * (demands[0] / sum(demands)))
        return self._share(rank, layer, first // ALIGN * ALIGN)

    def record(self, rank: AnyChannelRank, place: Seat, part: DataPart) -> None:
        """Run the template of a layer on a part of the data."""
        raise NotImplementedError

    def _share(self, rank: AnyChannelRank, layer: int, first: int) -> Region:
        found: Region = rank.buffer[first:] if layer else rank.buffer.head(first)
        return found


class AicpuAllReduceConcurMeshTwoShotNHR(AtOnce):
    """AllReduce of large data on a UBX board."""

    op = "all_reduce"
    on_the_way = True
    weights = (11, 10)
    templates = (TwoShotAllReduce(), NhrAllReduce())
    fidelity = like_ascend950("all_reduce/executor/ins_v2_all_reduce_concurrent_executor")

    def record(self, rank: AnyChannelRank, place: Seat, part: DataPart) -> None:
        source, target = map(part.of, (rank.user_in, rank.user_out))
        self.templates[part.layer].run(place, source, target, part.share, place.unit)


class AicpuReduceScatterConcurMeshNHR(AtOnce):
    """ReduceScatter of large data on a UBX board."""

    op = "reduce_scatter"
    on_the_way = True
    weights = (21, 20)
    templates = (MeshReduceScatter(), NhrReduceScatter())
    fidelity = like_ascend950("reduce_scatter/executor/ins_reduce_scatter_concurrent_executor")

    def record(self, rank: AnyChannelRank, place: Seat, part: DataPart) -> None:
        target, blocks = part.of(rank.user_out), piece(rank.user_in, part.begin, part.size)
        where: Any = slots(part.share, part.size, place.n) if part.layer else part.share
        self.templates[part.layer].run(place, [blocks], [target], [where])


class AicpuAllGatherConcurMeshNHR(AtOnce):
    """AllGather of large data on a UBX board."""

    op = "all_gather"
    weights = (37, 25)
    templates = (MeshAllGather(), NhrAllGather())
    fidelity = like_ascend950("all_gather/executor/ins_v2_all_gather_concurrent_executor")

    def first(self, count: int) -> int:
        return floor(self.weights[0] / sum(self.weights) * count)

    def share(self, op: OpParam, rank: AnyChannelRank, layer: int) -> Region:
        ratio = self.weights[0] / sum(self.weights)
        mesh, clos = ceil(ratio * rank.size), ceil((1 - ratio) * rank.size)
        block = rank.ccl_bytes // ALIGN // (mesh + clos) * ALIGN
        return self._share(rank, layer, mesh * block)

    def record(self, rank: AnyChannelRank, place: Seat, part: DataPart) -> None:
        source, blocks = part.of(rank.user_in), piece(rank.user_out, part.begin, part.size)
        where = slots(part.share, part.size, place.n)
        self.templates[part.layer].run(place, [source], [blocks], [where])


class AicpuAllToAllSoleMeshConcurrent(AtOnce):
    """AllToAll on a UBX board, cut block by block. A pass brings a part of every block."""

    op = "all_to_all"
    algorithm = "level0:mesh"
    weights = (10, 12)
    templates = (PairsOfRanks(), PairsOfRanks())
    fidelity = like_ascend950(
        "all_to_all_v/executor/ins_v2_all_to_all_concurrent_executor",
        "all_to_all_v/template/aicpu/ins_temp_all_to_all_v_mesh_1D",
    )

    def pieces(self, op: OpParam, rank: AnyChannelRank, layer: int) -> Iterator[tuple[int, int]]:
        most = self._most(op, rank)
        blocks = (self._part(chunks, layer, op.unit) for chunks in (rank.user_in, rank.user_out))
        largest = max(_largest(part) for part in blocks)
        for begin in range(0, largest // op.unit, most):
            yield begin, most  # blocks that end before are empty

    def share(self, op: OpParam, rank: AnyChannelRank, layer: int) -> Region:
        count = self.templates[0].scratch(rank.size)
        return self._share(rank, layer, count * self._most(op, rank) * op.unit)

    def record(self, rank: AnyChannelRank, place: Seat, part: DataPart) -> None:
        both, template = (rank.user_in, rank.user_out), self.templates[part.layer]
        blocks = (self._part(chunks, part.layer, place.unit) for chunks in both)
        given, result = (_clipped(chunks, part.begin, part.size) for chunks in blocks)
        template.run(place, given, result, slots(part.share, part.size, template.scratch(place.n)))

    def _most(self, op: OpParam, rank: AnyChannelRank) -> int:
        """Return the elements of a block that one pass brings."""
        times = sum(template.scratch(rank.size) for template in self.templates)
        room = min(TRANSFER, rank.ccl_bytes // times // ALIGN * ALIGN)
        return max(room // op.unit // rank.size, 1)

    def _part(self, blocks: Chunks, layer: int, unit: int) -> Chunks:
        """Return a template's part of every block."""
        first = blocks.sizes // unit // sum(self.weights) * self.weights[0] * unit
        if layer:
            return Chunks(blocks.buffer, blocks.offsets + first, blocks.sizes - first, blocks.row)
        return Chunks(blocks.buffer, blocks.offsets, first, blocks.row)


class AicpuAllToAllVSoleMeshConcurrent(AicpuAllToAllSoleMeshConcurrent):
    """AllToAllV on a UBX board."""

    op = "all_to_all_v"


def _largest(blocks: Chunks) -> int:
    """Return the bytes of a rank's largest block; splits the batch where ranks differ."""
    rows = blocks.sizes.max(axis=1)
    return int(PerRank.of(rows[np.atleast_1d(values_of(blocks.row))]))


def _clipped(blocks: Chunks, begin: int, size: int) -> Chunks:
    """Return the same piece of every block, as far as the block goes."""
    offsets = blocks.offsets + np.minimum(begin, blocks.sizes)
    sizes = np.clip(blocks.sizes - begin, 0, size)
    return Chunks(blocks.buffer, offsets, sizes, blocks.row)
