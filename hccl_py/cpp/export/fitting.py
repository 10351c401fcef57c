"""From numbers to formulas: what a field is for every rank and every turn of the loops around it.

Numbers stand at points: a rank, and the counters of the loops, the outermost first. Kinds of
formulas are tried from the plainest on, each is checked at every point, and the first that is right
everywhere is taken:

    a number                    3
    of the loops alone          15 - step     1 << step     8 >> step
    turned with the rank        (rank + 1 + step) % 16
    skipping the rank           peer < rank ? peer : peer + 1
    by bits                     rank ^ (1 << step)     (rank ^ 4) / 4 * 4
    by server and device        server * 8 + (device + 1) % 8
    a choice                    rank == 0 ? 4 : 2
    a table                     kPeer[step][rank]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.cpp.export.formulas import (
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
from hccl_py.values import IntArray

__all__ = ["Fitter", "Points", "condition_of"]

RANK, SERVER, DEVICE = Variable("rank"), Variable("server"), Variable("device")
RANKS, SERVERS, DEVICES = Variable("ranks"), Variable("servers"), Variable("devices")


@dataclass(frozen=True)
class Points:
    """Numbers, and where they stand: [points, 1 + loops], the rank first."""

    where: IntArray
    values: IntArray

    @classmethod
    def of_ranks(cls, ranks: IntArray, values: npt.NDArray[Any]) -> Points:
        """Return one number per rank."""
        return cls(ranks.reshape(-1, 1), np.asarray(values, np.int64))

    @classmethod
    def looped(cls, turns: Sequence[Points]) -> Points:
        """Return the points of all turns of a loop that goes round the present ones."""
        where = [np.insert(points.where, 1, turn, axis=1) for turn, points in enumerate(turns)]
        return cls(np.concatenate(where), np.concatenate([points.values for points in turns]))

    @classmethod
    def joined(cls, groups: Sequence[Points]) -> Points:
        """Return the points of several groups of ranks."""
        where = np.concatenate([group.where for group in groups])
        return cls(where, np.concatenate([group.values for group in groups]))


@dataclass(frozen=True)
class _Axis:
    """Something that turns: a variable, its values at the points, and how many there are."""

    variable: Formula
    at: IntArray
    size: int
    count: Formula


@dataclass(frozen=True)
class Fitter:
    """Finds formulas for `ranks` ranks in servers of `devices` each."""

    ranks: int
    devices: int

    @property
    def has_servers(self) -> bool:
        """Whether server and device say more than the rank."""
        return 1 < self.devices < self.ranks and self.ranks % self.devices == 0

    def formula(self, points: Points) -> Formula:
        """Return the formula of some numbers; a table where there is no other."""
        where, values = _distinct(points)
        for found in self._scaled(where, values):
            if self._is_right(found, where, values):
                return found
        return _table(where, values)

    def _is_right(self, formula: Formula, where: IntArray, values: IntArray) -> bool:
        rank = where[:, 0]
        known = {"rank": rank, "server": rank // self.devices, "device": rank % self.devices}
        numbers = (self.ranks, self.ranks // self.devices, self.devices)
        known |= {
            name: np.array(number)
            for name, number in zip(("ranks", "servers", "devices"), numbers, strict=True)
        }
        known |= {f"loop{k}": where[:, 1 + k] for k in range(where.shape[1] - 1)}
        return bool((evaluated(formula, known) == values).all())

    def _scaled(self, where: IntArray, values: IntArray) -> Iterator[Formula]:
        """Yield formulas, then such times a number plus another."""
        yield from self._fitted(where, values)
        low = int(values.min())
        factor = int(np.gcd.reduce(values - low))
        if factor > 1:
            for found in self._fitted(where, (values - low) // factor):
                yield plus(times(found, Number(factor)), Number(low))

    def _fitted(self, where: IntArray, values: IntArray) -> Iterator[Formula]:
        """Yield what may be right, the plainest first."""
        loops, rank = where[:, 1:], where[:, 0]
        yield from self._around(loops, values)
        if (rank == rank[0]).all():
            return
        kinds = [partial(self._turned, axis, loops, values) for axis in self._axes(rank)]
        kinds += [
            partial(_skipping, rank, loops, values),
            partial(self._by_bits, rank, loops, values),
            partial(self._by_server, rank, loops, values),
            partial(self._chosen, where, values),
        ]
        for kind in kinds:
            found = kind()
            if found is not None:
                yield found

    def _around(self, loops: IntArray, values: IntArray) -> Iterator[Formula]:
        """Yield what depends on the loops alone, also modulo the number of ranks."""
        found = self._of_loops(loops, values)
        if found is not None:
            yield found
        elif values.min() >= 0 and values.max() < self.ranks:
            found = self._of_loops(loops, values, self._axis(values))
            if found is not None:
                yield Binary("%", found, RANKS)

    def _axis(self, rank: IntArray) -> _Axis:
        return _Axis(RANK, rank, self.ranks, RANKS)

    def _axes(self, rank: IntArray) -> Iterator[_Axis]:
        yield self._axis(rank)
        if self.has_servers:
            yield _Axis(DEVICE, rank % self.devices, self.devices, DEVICES)
            yield _Axis(SERVER, rank // self.devices, self.ranks // self.devices, SERVERS)

    def _turned(self, axis: _Axis, loops: IntArray, values: IntArray) -> Formula | None:
        """Return the axis itself, plus or minus something of the loops, perhaps modulo its size; or
        the axis times a number, plus something of the loops.
        """
        factor = _slope(axis.at, loops, values)
        shift = self._of_loops(loops, values - factor * axis.at) if factor > 1 else None
        if shift is not None:
            return plus(times(axis.variable, Number(factor)), shift)
        shift = self._of_loops(loops, values - axis.at)
        if shift is not None:
            return plus(axis.variable, shift)
        shift = self._of_loops(loops, values + axis.at)
        if shift is not None:
            return minus(shift, axis.variable)
        if values.min() < 0 or values.max() >= axis.size:
            return None
        shift = self._of_loops(loops, values - axis.at, axis)
        if shift is not None:
            return Binary("%", plus(axis.variable, shift), axis.count)
        shift = self._of_loops(loops, values + axis.at, axis)
        if shift is not None:
            return Binary("%", minus(plus(axis.count, shift), axis.variable), axis.count)
        return None

    def _of_loops(
        self, loops: IntArray, values: IntArray, around: _Axis | None = None
    ) -> Formula | None:
        """Return what depends on the loops alone, modulo the size of an axis where one is given.

        Then it is never below zero, and the caller takes it modulo the size.
        """
        values = values if around is None else values % around.size
        if not _depends_on(loops, values):
            return None
        at, first = np.unique(loops, axis=0, return_index=True)
        numbers = values[first]
        if (numbers == numbers[0]).all():
            return _start(int(numbers[0]), around, 0)
        found = _growing(at, numbers, around) or _linear(at, numbers, around)
        return found or self._wrapped(at, numbers)

    def _wrapped(self, at: IntArray, values: IntArray) -> Formula | None:
        """Return a sum modulo how far the numbers go, plus the least of them."""
        low, size = int(values.min()), int(values.max() - values.min()) + 1
        if len(values) < size or low < 0:
            return None
        found = _linear(at, values - low, _Axis(RANK, values, size, self._counted(size)))
        if found is None:
            return None
        return plus(Binary("%", found, self._counted(size)), Number(low))

    def _counted(self, number: int) -> Formula:
        """Return a number as what it counts: ranks or devices, or all but one of them."""
        known = {self.ranks: RANKS, self.ranks - 1: minus(RANKS, Number(1))}
        if self.has_servers:
            known |= {self.devices: DEVICES, self.devices - 1: minus(DEVICES, Number(1))}
        return known.get(number, Number(number)) if number > 2 else Number(number)

    def _by_bits(self, rank: IntArray, loops: IntArray, values: IntArray) -> Formula | None:
        """Return (rank ^ x) with its last bits zero, or without them; or so of the rank's place
        when bits are reversed, as in NHR.
        """
        if values.min() < 0:
            return None
        axis = self._axis(rank)
        for cut in (False, True):
            found = self._masked(axis, loops, values, cut=cut)
            if found is not None:
                return found
        if self.ranks & (self.ranks - 1) or not loops.shape[1]:
            return None
        places = np.array(_reversed_bits(self.ranks))
        table = Table(tuple(places.tolist()), (self.ranks,), (RANK,))
        axis = _Axis(table, places[rank], self.ranks, RANKS)
        return self._masked(axis, loops, values, cut=False)

    def _masked(
        self, axis: _Axis, loops: IntArray, values: IntArray, *, cut: bool
    ) -> Formula | None:
        width, swap = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        for group in _groups(loops):
            found = _bits(axis.at[group], values[group], self.ranks, cut=cut)
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

    def _part(self, axis: _Axis, loops: IntArray, values: IntArray) -> Formula | None:
        return self._of_loops(loops, values) or self._turned(axis, loops, values)

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
        condition = condition_of(group, np.unique(rank).tolist())
        inside = np.isin(rank, group)
        yes = self._of_loops(where[inside, 1:], values[inside])
        no = self._of_loops(where[~inside, 1:], values[~inside])
        if condition is None or yes is None or no is None:
            return None
        return Either(condition, yes, no)


def condition_of(ranks: Sequence[int], everybody: Sequence[int]) -> Formula | None:
    """Return what holds for some of these ranks, and for no other of them; None where no short
    condition does.
    """
    mine = set(ranks)
    if len(mine) == 1:
        return Binary("==", RANK, Number(min(mine)))
    tests: list[tuple[Formula, Callable[[int], bool]]] = [
        (Binary("<", RANK, Number(max(mine) + 1)), lambda rank: rank <= max(mine)),
        (Binary(">=", RANK, Number(min(mine))), lambda rank: rank >= min(mine)),
    ]
    for width in (2, 4, 8, 16):
        for rest in range(width):
            test = Binary("==", Binary("%", RANK, Number(width)), Number(rest))
            tests.append((test, _has_rest(width, rest)))
    for formula, holds in tests:
        if all(holds(rank) == (rank in mine) for rank in everybody):
            return formula
    return None


def _has_rest(width: int, rest: int) -> Callable[[int], bool]:
    return lambda rank: rank % width == rest


def _distinct(points: Points) -> tuple[IntArray, IntArray]:
    rows = np.unique(np.concatenate([points.where, points.values[:, None]], axis=1), axis=0)
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])


def _depends_on(where: IntArray, values: IntArray) -> bool:
    """Whether there is one number at each place."""
    places = len(np.unique(where, axis=0)) if where.shape[1] else 1
    both = np.concatenate([where, values[:, None]], axis=1)
    return len(np.unique(both, axis=0)) == places


def _groups(loops: IntArray) -> list[IntArray]:
    """Return the points of every turn."""
    if not loops.shape[1]:
        return [np.arange(len(loops))]
    _, turn = np.unique(loops, axis=0, return_inverse=True)
    turn = turn.reshape(-1)
    return [np.flatnonzero(turn == k) for k in range(int(turn.max()) + 1)]


def _start(number: int, around: _Axis | None, least: int) -> Formula:
    """Return a number, around an axis as it is read most easily: 3, or kRanks - 1; `least` is what
    is added to it at least, and all of it is not below zero.
    """
    if around is None:
        return Number(number)
    number += -(-max(0, -(number + least)) // around.size) * around.size
    if number < around.size and number * 2 > around.size and number + least >= 0:
        return plus(around.count, Number(number - around.size))
    if number >= around.size:
        return plus(around.count, Number(number - around.size))
    return Number(number)


def _linear(at: IntArray, values: IntArray, around: _Axis | None) -> Formula | None:
    """Return a number plus multiples of the counters."""
    steps = np.array([_step(at, values, k, around) for k in range(at.shape[1])], np.int64)
    start = int(values[0] - at[0] @ steps)
    wrong = values - start - at @ steps
    if (wrong if around is None else wrong % around.size).any():
        return None
    if around is not None:
        start %= around.size
    found: Formula = Number(0)
    for k in np.flatnonzero(steps > 0).tolist():
        found = plus(found, times(Variable(f"loop{k}"), Number(int(steps[k]))))
    found = plus(found, _start(start, around, int((at @ steps).min())))
    for k in np.flatnonzero(steps < 0).tolist():
        found = minus(found, times(Variable(f"loop{k}"), Number(int(-steps[k]))))
    return found


def _step(at: IntArray, values: IntArray, loop: int, around: _Axis | None) -> int:
    """Return by how much a number grows where one counter does."""
    rest = np.delete(at, loop, axis=1)
    order = np.flatnonzero((rest == rest[0]).all(axis=1))
    order = order[np.argsort(at[order, loop])]
    if len(order) < 2 or at[order[1], loop] != at[order[0], loop] + 1:
        return 0
    step = int(values[order[1]] - values[order[0]])
    if around is None:
        return step
    step %= around.size
    return step - around.size if step * 2 > around.size else step


def _growing(at: IntArray, values: IntArray, around: _Axis | None) -> Formula | None:
    """Return a power of two of one counter, times a number: 1 << step, 8 >> step."""
    for loop in range(at.shape[1]):
        if not _depends_on(at[:, [loop]], values):
            continue
        turns, first = np.unique(at[:, loop], return_index=True)
        if len(turns) < 2 or (turns != np.arange(len(turns))).any():
            continue
        power = _power(values[first], loop)
        is_line = len(turns) == 2 and around is not None
        if power is not None and not is_line:
            return power
        if around is not None:
            power = _power(around.size - values[first], loop)
            if power is not None:
                return minus(around.count, power)
    return None


def _power(numbers: IntArray, loop: int) -> Formula | None:
    first, turns = int(numbers[0]), np.arange(len(numbers))
    if first < 1 or len(numbers) > 40:
        return None
    is_line = len(numbers) == 2 and first == 1
    if (numbers == first << turns).all() and not is_line:
        return Binary("<<", Number(first), Variable(f"loop{loop}"))
    if first & (first - 1) == 0 and numbers[-1] > 0 and (numbers == first >> turns).all():
        return Binary(">>", Number(first), Variable(f"loop{loop}"))
    return None


def _bits(rank: IntArray, values: IntArray, ranks: int, *, cut: bool) -> tuple[int, int] | None:
    """Return the width and what is swapped, of (rank ^ x) / width * width, or without the last."""
    for power in range(ranks.bit_length()):
        width = 1 << power
        swap = ((values * width if cut else values) ^ rank) // width * width
        kept = (rank ^ swap[0]) // width
        is_right = (kept * (1 if cut else width) == values).all()
        if is_right and (swap == swap[0]).all() and (kept != kept[0]).any():
            return width, int(swap[0])
    return None


def _reversed_bits(count: int) -> list[int]:
    """Return the numbers below a power of two with their bits the other way round."""
    width = count.bit_length() - 1
    return [int(f"{number:0{width}b}"[::-1], 2) if width else 0 for number in range(count)]


def _slope(at: IntArray, loops: IntArray, values: IntArray) -> int:
    """Return by how much a number grows from one place of an axis to the next."""
    turn = (loops == loops[0]).all(axis=1)
    places, numbers = at[turn], values[turn]
    nearest = np.flatnonzero(places == places[0] + 1)
    return int(numbers[nearest[0]] - numbers[0]) if len(nearest) else 0


def _skipping(rank: IntArray, loops: IntArray, values: IntArray) -> Formula | None:
    """Return a counter that leaves the rank itself out."""
    for loop in range(loops.shape[1]):
        counter = loops[:, loop]
        if (values == counter + (counter >= rank)).all():
            variable = Variable(f"loop{loop}")
            return Either(Binary("<", variable, RANK), variable, plus(variable, Number(1)))
    return None


def _table(where: IntArray, values: IntArray) -> Formula:
    """Return the table by what the numbers depend on: the loops, then the rank."""
    columns = [*range(1, where.shape[1]), 0]
    for column in list(columns):  # leave out what makes no difference
        rest = [c for c in columns if c != column]
        if rest and _depends_on(where[:, rest], values):
            columns = rest
    shape = tuple(int(where[:, c].max()) + 1 for c in columns)
    table = np.zeros(shape, np.int64)
    table[tuple(where[:, c] for c in columns)] = values
    names = tuple(RANK if c == 0 else Variable(f"loop{c - 1}") for c in columns)
    return Table(tuple(table.ravel().tolist()), shape, names)
