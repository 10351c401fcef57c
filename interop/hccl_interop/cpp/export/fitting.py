"""From numbers to formulas: a field for every rank and every turn of the loops around it.

Numbers stand at points: a rank, and the counters of the loops, the outermost first. Kinds of
formulas are tried from the plainest on, and the first that is right at every point is taken:

    a number                    3
    of the loops alone          15 - step     1 << step     8 >> step
    turned with the rank        (rank + 1 + step) % 16
    skipping the rank           peer < rank ? peer : peer + 1
    by bits                     rank ^ (1 << step)     (device ^ 4) / 4 * 4
    by server and device        server * 8 + (device + 1) % 8
    a choice                    rank == 0 ? 4 : 2
    a table                     kPeer[step][rank]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hccl_interop.cpp.export.counters import Axis, growing, linear, starting
from hccl_interop.cpp.export.formulas import (
    DEVICE,
    DEVICES,
    RANK,
    RANKS,
    SERVER,
    SERVERS,
    Binary,
    Either,
    Formula,
    Number,
    Table,
    Variable,
    evaluated,
    minus,
    plus,
    times,
)
from hccl_interop.cpp.export.points import Points, by_turn, depends_on, distinct, places
from hccl_py.values import IntArray


@dataclass(frozen=True)
class Fitter:
    """The search for formulas, for `ranks` ranks in servers of `devices` each."""

    ranks: int
    devices: int

    @property
    def has_servers(self) -> bool:
        """True if there are several servers of several devices."""
        return 1 < self.devices < self.ranks and self.ranks % self.devices == 0

    def formula(self, points: Points) -> Formula:
        """Return the formula of some numbers; a table where there is no other."""
        where, values = distinct(points)
        for found in self._scaled(where, values):
            if self._is_right(found, where, values):
                return found
        return _table(where, values)

    def _is_right(self, formula: Formula, where: IntArray, values: IntArray) -> bool:
        known = self._known(where[:, 0])
        known |= {f"loop{k}": where[:, 1 + k] for k in range(where.shape[1] - 1)}
        return bool((evaluated(formula, known) == values).all())

    def _known(self, rank: IntArray) -> dict[str, IntArray]:
        """Return the variables of some ranks."""
        known = {"rank": rank, "server": rank // self.devices, "device": rank % self.devices}
        known |= {"ranks": np.array(self.ranks), "devices": np.array(self.devices)}
        return known | {"servers": np.array(self.ranks // self.devices)}

    def _scaled(self, where: IntArray, values: IntArray) -> Iterator[Formula]:
        """Yield formulas, then formulas times a number plus another."""
        yield from self._fitted(where, values)
        low = int(values.min())
        factor = int(np.gcd.reduce(values - low))
        if factor > 1:
            for found in self._fitted(where, (values - low) // factor):
                yield plus(times(found, Number(factor)), Number(low))

    def _fitted(self, where: IntArray, values: IntArray) -> Iterator[Formula]:
        """Yield formulas that may be right, the plainest first."""
        loops, rank = where[:, 1:], where[:, 0]
        yield from self._around(loops, values)
        if (rank == rank[0]).all():
            return
        axes = [*self._axes(rank)]
        kinds = [partial(self._turned, axis, loops, values) for axis in axes]
        kinds += [partial(_skipping, axis, loops, values) for axis in axes]
        kinds += [partial(self._masked, axis, loops, values) for axis in axes]
        kinds += [
            partial(self._by_reversed_bits, rank, loops, values),
            partial(self._by_server, rank, loops, values),
            partial(self._chosen, where, values),
        ]
        for kind in kinds:
            found = kind()
            if found is not None:
                yield found

    def _around(self, loops: IntArray, values: IntArray) -> Iterator[Formula]:
        """Yield formulas of the loops alone, also modulo the number of ranks."""
        found = self._of_loops(loops, values)
        if found is not None:
            yield found
        elif values.min() >= 0 and values.max() < self.ranks:
            found = self._of_loops(loops, values, self._axis(values))
            if found is not None:
                yield Binary("%", found, RANKS)

    def _axis(self, rank: IntArray) -> Axis:
        return Axis(RANK, rank, self.ranks, RANKS)

    def _axes(self, rank: IntArray) -> Iterator[Axis]:
        yield self._axis(rank)
        if self.has_servers:
            yield Axis(DEVICE, rank % self.devices, self.devices, DEVICES)
            yield Axis(SERVER, rank // self.devices, self.ranks // self.devices, SERVERS)

    def _turned(self, axis: Axis, loops: IntArray, values: IntArray) -> Formula | None:
        """Return the axis plus or minus a formula of the loops, perhaps modulo its size; or the
        axis times a number, plus a formula of the loops.
        """
        of_loops, variable, at = self._of_loops, axis.variable, axis.at
        factor = _slope(at, loops, values)
        if factor > 1 and (shift := of_loops(loops, values - factor * at)) is not None:
            return plus(times(variable, self._by_devices(Number(factor))), shift)
        if (shift := of_loops(loops, values - at)) is not None:
            return plus(variable, shift)
        if (shift := of_loops(loops, values + at)) is not None:
            return minus(shift, variable)
        if values.min() < 0 or values.max() >= axis.size:
            return None
        if (shift := of_loops(loops, values - at, axis)) is not None:
            shift = self._by_devices(shift) if variable == RANK else shift
            return Binary("%", plus(variable, shift), axis.count)
        if (shift := of_loops(loops, values + at, axis)) is not None:
            return Binary("%", minus(plus(axis.count, shift), variable), axis.count)
        return None

    def _by_devices(self, number: Formula) -> Formula:
        """Return the number of devices of each server by its name; any other formula as it is."""
        is_devices = self.has_servers and number == Number(self.devices)
        return DEVICES if is_devices else number

    def _of_loops(
        self, loops: IntArray, values: IntArray, around: Axis | None = None
    ) -> Formula | None:
        """Return a formula of the loops alone. With an axis it is right modulo the axis' size, and
        never negative; the caller adds the modulo.
        """
        values = values if around is None else values % around.size
        if not depends_on(loops, values):
            return None
        first, _ = places(loops)
        at, numbers = loops[first], values[first]
        if (numbers == numbers[0]).all():
            return starting(int(numbers[0]), around, 0)
        found = growing(at, numbers, around) or linear(at, numbers, around)
        return found or self._wrapped(at, numbers)

    def _wrapped(self, at: IntArray, values: IntArray) -> Formula | None:
        """Return a sum modulo the range of the numbers, plus the least of them."""
        low, size = int(values.min()), int(values.max() - values.min()) + 1
        if len(values) < size or low < 0:
            return None
        found = linear(at, values - low, Axis(RANK, values, size, self._counted(size)))
        if found is None:
            return None
        return plus(Binary("%", found, self._counted(size)), Number(low))

    def _counted(self, number: int) -> Formula:
        """Return a number as the number of ranks or devices, or one less, where it is that."""
        known = {self.ranks: RANKS, self.ranks - 1: minus(RANKS, Number(1))}
        if self.has_servers:
            known |= {self.devices: DEVICES, self.devices - 1: minus(DEVICES, Number(1))}
        return known.get(number, Number(number)) if number > 2 else Number(number)

    def _by_reversed_bits(
        self, rank: IntArray, loops: IntArray, values: IntArray
    ) -> Formula | None:
        """Return (x ^ y) with its last bits cleared, x being the rank's bits in reverse order, as
        in NHR.
        """
        if self.ranks & (self.ranks - 1) or not loops.shape[1]:
            return None
        places = np.array(_reversed_bits(self.ranks))
        table = Table(tuple(places.tolist()), (self.ranks,), (RANK,))
        return self._masked(Axis(table, places[rank], self.ranks, RANKS), loops, values, (False,))

    def _masked(
        self,
        axis: Axis,
        loops: IntArray,
        values: IntArray,
        cuts: Sequence[bool] = (False, True),
    ) -> Formula | None:
        """Return (axis ^ x) with its last bits cleared or, where they are cut, shifted out."""
        if values.min() < 0:
            return None
        found = (self._masked_so(axis, loops, values, cut=cut) for cut in cuts)
        return next((one for one in found if one is not None), None)

    def _masked_so(
        self, axis: Axis, loops: IntArray, values: IntArray, *, cut: bool
    ) -> Formula | None:
        width, swap = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        for group in by_turn(loops):
            found = _bits(axis.at[group], values[group], axis.size, cut=cut)
            if found is None:
                return None
            width[group], swap[group] = found
        swapped, wide = self._of_loops(loops, swap), self._of_loops(loops, width)
        if swapped is None or wide is None:
            return None
        base = axis.variable
        if swapped != Number(0):
            base = Binary("^", base, swapped)
        if wide == Number(1):
            return base
        return Binary("/", base, wide) if cut else Binary("*", Binary("/", base, wide), wide)

    def _by_server(self, rank: IntArray, loops: IntArray, values: IntArray) -> Formula | None:
        """Return a formula of the server times the devices of each, plus one of the device."""
        if not self.has_servers or values.min() < 0:
            return None
        _, device, server = self._axes(rank)
        high = self._part(server, loops, values // self.devices)
        low = self._part(device, loops, values % self.devices)
        return None if high is None or low is None else plus(times(high, DEVICES), low)

    def _part(self, axis: Axis, loops: IntArray, values: IntArray) -> Formula | None:
        return (
            self._of_loops(loops, values)
            or self._turned(axis, loops, values)
            or _skipping(axis, loops, values)
            or self._masked(axis, loops, values)
        )

    def _chosen(self, where: IntArray, values: IntArray) -> Formula | None:
        """Return one of two formulas of the loops, by the rank."""
        rank = where[:, 0]
        kinds: dict[bytes, list[int]] = {}
        for one in np.unique(rank).tolist():
            mine = np.concatenate([where[rank == one, 1:], values[rank == one, None]], axis=1)
            kinds.setdefault(mine.tobytes(), []).append(one)
        if len(kinds) != 2:
            return None
        group = min(kinds.values(), key=len)
        condition = self.condition(group, np.unique(rank).tolist())
        inside = np.isin(rank, group)
        yes = self._of_loops(where[inside, 1:], values[inside])
        no = self._of_loops(where[~inside, 1:], values[~inside])
        if condition is None or yes is None or no is None:
            return None
        return Either(condition, yes, no)

    def condition(self, ranks: Sequence[int], among: Sequence[int]) -> Formula | None:
        """Return the condition that of the ranks `among` holds for `ranks` alone; None where no
        short one does.
        """
        first, last = min(ranks), max(ranks)
        if first == last:
            return Binary("==", RANK, Number(first))
        conditions: list[Formula] = []
        if self.has_servers:
            conditions += [Binary("==", SERVER, Number(first // self.devices))]
            conditions += [Binary("==", DEVICE, Number(first % self.devices))]
        conditions += [Binary("<", RANK, Number(last + 1)), Binary(">=", RANK, Number(first))]
        conditions += [
            Binary("==", Binary("%", RANK, Number(width)), Number(rest))
            for width in (2, 4, 8, 16)
            for rest in range(width)
        ]
        known, wanted = self._known(np.array(among)), np.isin(among, ranks)
        return next((c for c in conditions if (evaluated(c, known) == wanted).all()), None)


def _bits(rank: IntArray, values: IntArray, ranks: int, *, cut: bool) -> tuple[int, int] | None:
    """Return width and x of (rank ^ x) / width * width, or of (rank ^ x) / width with `cut`."""
    for power in range(ranks.bit_length()):
        width = 1 << power
        swap = ((values * width if cut else values) ^ rank) // width * width
        kept = (rank ^ swap[0]) // width
        is_right = (kept * (1 if cut else width) == values).all()
        if is_right and (swap == swap[0]).all() and (kept != kept[0]).any():
            return width, int(swap[0])
    return None


def _reversed_bits(count: int) -> list[int]:
    """Return the numbers below a power of two with their bits reversed."""
    width = count.bit_length() - 1
    return [int(f"{number:0{width}b}"[::-1], 2) if width else 0 for number in range(count)]


def _slope(at: IntArray, loops: IntArray, values: IntArray) -> int:
    """Return the growth of a number from one place of an axis to the next."""
    turn = (loops == loops[0]).all(axis=1)
    places, numbers = at[turn], values[turn]
    nearest = np.flatnonzero(places == places[0] + 1)
    return int(numbers[nearest[0]] - numbers[0]) if len(nearest) else 0


def _skipping(axis: Axis, loops: IntArray, values: IntArray) -> Formula | None:
    """Return a counter of all places of an axis but the rank's own."""
    for loop in range(loops.shape[1]):
        counter = loops[:, loop]
        if (values == counter + (counter >= axis.at)).all():
            variable = Variable(f"loop{loop}")
            return Either(Binary("<", variable, axis.variable), variable, plus(variable, Number(1)))
    return None


def _table(where: IntArray, values: IntArray) -> Formula:
    """Return a table by the loops and the rank, those alone that the numbers depend on."""
    columns = [*range(1, where.shape[1]), 0]
    for column in list(columns):  # leave out a column without influence
        rest = [c for c in columns if c != column]
        if rest and depends_on(where[:, rest], values):
            columns = rest
    shape = tuple(int(where[:, c].max()) + 1 for c in columns)
    table = np.zeros(shape, np.int64)
    table[tuple(where[:, c] for c in columns)] = values
    names = tuple(RANK if c == 0 else Variable(f"loop{c - 1}") for c in columns)
    return Table(tuple(table.ravel().tolist()), shape, names)
