"""AHC of HCCL, written from its sources: one function per template, as one rank runs it.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm/base. Lines
are those of alg_template/asymmetric_hierarchical_concatenate_base.cc, where nothing else is said.
Names of ranks are their places in the plane.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import gcd, lcm

from tests.executors.fidelity.rings import ring_all_reduce
from tests.executors.fidelity.transports import Event, Part, Slice
from tests.executors.fidelity.trees import nhr_all_gather, nhr_all_reduce, nhr_reduce_scatter

Groups = list[list[int]]
SMALL = 128 * 1024
"""sizeAlignedMinSize of :734, :911, :1210 and :1489."""
MIN_SLICE_ALIGN = 128


def _round_up(number: int, divisor: int) -> int:
    """AlgTemplateBase::RoundUpWithDivisor."""
    return -(-number // divisor) * divisor


def _rounded(size: int) -> int:
    """As all sizes of slices are, :735-739."""
    return _round_up(size, MIN_SLICE_ALIGN if size > SMALL else SMALL)


def split(groups: Groups) -> Groups:
    """communicator/topo_info_extractor.cc:1425 AHCSubGroupInit."""
    least, most = min(map(len, groups)), max(map(len, groups))
    if gcd(*map(len, groups)) != least and most // least <= 1:
        return groups
    found: Groups = []
    for group in groups:
        pieces = max(len(group) // least, 1)
        found += [group[i * least : (i + 1) * least] for i in range(pieces - 1)]
        found.append(group[(pieces - 1) * least :])
    return found


class Ahc(ABC):
    """A rank of an all-reduce of `count` elements of `unit` bytes; CommAHCBaseInfo."""

    def __init__(self, rank: int, groups: Groups, count: int, unit: int) -> None:
        self.rank, self.groups, self.count, self.unit = rank, groups, count, unit
        self.events: list[Event] = []
        self.group = next(group for group in groups if rank in group)
        self.intra_rank = self.group.index(rank)
        self.smallest = min(groups, key=len)  # the first one of its size, :79

    def _sliced(self, total: int, each: int, parts: int, start: int = 0) -> list[Slice]:
        """Slices of one size, as far as there is data."""
        found, rest = [], total
        for _ in range(parts):
            size = min(rest, each)
            found.append(Slice(start + total - rest, size))
            rest -= size
        return found

    def run(self, rdma: Callable[[Sequence[int]], bool]) -> list[Event]:
        """AllReduceAHCBase::RunAsync of *_alg_template_base.cc:453; `rdma` says it of the members
        of one of its communicators, as calc_ahc_transport_req_base.cc:112 does.
        """
        if not self.count:
            return self.events
        inside = self.intra_slices()
        me = Part(self.events, self.group, self.rank, rdma=rdma(self.group))
        if len(self.group) > 1:  # *_alg_template_base.cc:559
            nhr_reduce_scatter(me, inside, meets=True)
        for card, slices in self.cards():
            part = Part(self.events, card, self.rank, rdma=rdma(card))
            if len(card) < 2:
                continue
            if len(self.groups) <= 3:  # impl/operator/coll_alg_operator.cc:1035
                ring_all_reduce(part, slices)
            else:
                nhr_all_reduce(part, slices, meets=True)
        if len(self.group) > 1:
            nhr_all_gather(me, inside)
        return self.events

    @abstractmethod
    def intra_slices(self) -> list[Slice]:
        """What each member of the own group has."""

    @abstractmethod
    def cards(self) -> list[tuple[list[int], list[Slice]]]:
        """Who shares which slices with members of other groups."""


class Broke(Ahc):
    """CommBrokeAlignInfo."""

    def intra_slices(self) -> list[Slice]:
        """:722 CalcIntraSlicesAndLinks."""
        n = len(self.smallest)
        each = _rounded(-(-self.count // n) * self.unit)
        found = self._sliced(self.count * self.unit, each, n)
        end = sum(found[-1])
        return found + [Slice(end, 0)] * (len(self.group) - n)

    def cards(self) -> list[tuple[list[int], list[Slice]]]:
        """:651 IsNeedInterProc, :892 CalcInterSlicesAndLinksForAR."""
        if self.intra_rank >= len(self.smallest):
            return []
        mine, n = self.intra_slices()[self.intra_rank], len(self.groups)
        each = _rounded(-(-(mine.size // self.unit) // n) * self.unit)
        members = [group[self.intra_rank] for group in self.groups]
        return [(members, self._sliced(mine.size, each, n, mine.offset))]


class Align(Ahc):
    """CommAHCAlignInfo."""

    def __init__(self, rank: int, groups: Groups, count: int, unit: int) -> None:
        """:962 InitSliceInfo, :1007 InitLogicCardInfo."""
        super().__init__(rank, groups, count, unit)
        self.segments = lcm(*map(len, groups))
        cuts = {self.segments // len(g) * (j + 1) for g in groups for j in range(len(g))}
        self.bounds = sorted(cuts | {0})
        self.members = [
            [g[-(-bound // (self.segments // len(g))) - 1] for g in groups]
            for bound in self.bounds[1:]
        ]
        self.segment_bytes = _rounded(-(-count // (self.segments * len(groups))) * unit) * len(
            groups
        )

    def intra_slices(self) -> list[Slice]:
        """:1198 CalcIntraSlicesAndLinks."""
        n = len(self.group)
        each = self.segment_bytes * (self.segments // n)
        return self._sliced(self.count * self.unit, each, n)

    def cards(self) -> list[tuple[list[int], list[Slice]]]:
        """:1471 CalcInterSlicesAndLinksForAR: in the order of their way from where the smallest
        group's member begins, :1054.
        """
        way = self.segments // len(self.smallest)
        mine = [k for k, card in enumerate(self.members) if self.rank in card]
        mine.sort(key=lambda k: self.bounds[k] % way)
        return [(self.members[k], self._card(k)) for k in mine]

    def _card(self, k: int) -> list[Slice]:
        """:1361 PrepareWholeLogicSlices, :1386 of part of the data, :1425 of none; :1437."""
        own = self.intra_slices()[self.intra_rank]
        origin = self.intra_rank * self.segments // len(self.group)
        first, last = self.bounds[k] - origin, self.bounds[k + 1] - origin
        start, whole = first * self.segment_bytes, (last - first) * self.segment_bytes
        full = own.size // self.segment_bytes
        if full == self.segments // len(self.group) or (own.size and last <= full):
            card = Slice(own.offset + start, whole)
        elif own.size and first <= full:
            card = Slice(own.offset + start, own.size - start)
        else:
            card = Slice(0, 0)
        n = len(self.groups)
        if card.size % n == 0 and card.size % MIN_SLICE_ALIGN == 0:
            each = card.size // n
        else:
            each = _round_up(-(-card.size // n), MIN_SLICE_ALIGN)
        return self._sliced(card.size, each, n, card.offset)


TEMPLATES: dict[str, type[Ahc]] = {"AHC": Align, "AHC_BROKE": Broke}
