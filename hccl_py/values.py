"""Per-rank values: one number for every rank of a batch, kept as a formula.

All ranks run the same program, so orchestration records many ranks at once and `rank.id` is a
`PerRank`. It behaves like an int in arithmetic and comparison. Where the code needs one plain
number or truth value and the ranks disagree (`if rank.id == root`, `range(rank.id)`), `Diverged` is
raised: the recorder splits the batch and records each part anew.

A `PerRank` is `table[(base + add) % mod]`. `base` and `table` are shared arrays, `add` and `mod`
plain ints, so that the thousands of columns of a ring (every step has other offsets) cost no array
each. `+ int`, `% int` and the indexing of chunks and links stay formulas; any other arithmetic
makes a new base. Values are computed on demand and never kept.

It does not derive from `int`: C code would then read a wrong number without a sound.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.lines import Line, author_line

IntArray: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


class OutOfBoundsError(IndexError):
    """A range or index outside of its region or chunks."""


class Diverged(BaseException):
    """The ranks of a batch need different numbers here; `keys` has one number per rank.

    A BaseException, so that an author's `except Exception` does not swallow it.
    """

    def __init__(self, keys: npt.NDArray[Any], line: Line) -> None:
        super().__init__(keys, line)
        self.keys = keys
        self.line = line


class PerRank:
    """An int per rank of the batch: `table[(base + add) % mod]`, `mod` and `table` optional."""

    __slots__ = ("add", "base", "high", "low", "mod", "table")
    __array_ufunc__ = None

    def __init__(
        self,
        base: IntArray,
        add: int = 0,
        mod: int | None = None,
        table: IntArray | None = None,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        self.base = base
        self.add = add
        self.mod = mod
        self.table = table
        self.low, self.high = bounds or bounds_of(base)

    @staticmethod
    def of(values: npt.NDArray[Any] | np.integer[Any] | int) -> RankInt:
        """Return a plain int where all values agree, otherwise a PerRank on a new base."""
        if not isinstance(values, np.ndarray) or values.ndim == 0:
            return int(values)
        low, high = bounds_of(values)
        return low if low == high else PerRank(values, bounds=(low, high))

    def key(self) -> tuple[int, int, int | None, int]:
        """Identify the formula; valid as long as its arrays live."""
        return (id(self.base), self.add, self.mod, id(self.table))

    def values(self, places: IntArray | None = None) -> IntArray:
        """Compute the number of every rank, or of the ranks at some places of the batch."""
        base = self.base if places is None else self.base[places]
        values = base + self.add if self.add else base
        if self.mod is not None:
            values = values % self.mod
        return values if self.table is None else self.table[values]

    @property
    def is_sum(self) -> bool:
        """True if the formula is `base + add` only."""
        return self.mod is None and self.table is None

    def looked_up(self, table: IntArray) -> RankInt:
        """Return `table[self]`, as a formula where that is possible."""
        if self.table is None and self.mod == len(table):
            return PerRank(self.base, self.add, self.mod, table, (self.low, self.high))
        return PerRank.of(table[self.values()])

    def wrapped(self, size: int, what: str) -> RankInt:
        """Return self as an index into `size` things, counted from the end where it is negative."""
        if self.mod is not None and self.mod <= size and self.table is None:
            return self
        low, high = (self.low + self.add, self.high + self.add) if self.is_sum else self._range()
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise OutOfBoundsError(f"{what} {bad} of {size}")
        wrapped: RankInt = self % size
        return wrapped

    def _range(self) -> tuple[int, int]:
        return bounds_of(self.values())

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and self.is_sum:
            return PerRank(self.base, self.add + other, bounds=(self.low, self.high))
        return _combine(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int) and self.is_sum:
            return PerRank(self.base, self.add - other, bounds=(self.low, self.high))
        return _combine(operator.sub, self, other)

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and self.is_sum and 0 <= self.high - self.low < other:
            return PerRank(self.base, self.add % other, other, bounds=(self.low, self.high))
        return _combine(operator.mod, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combine(operator.sub, other, self)

    def __rmod__(self, other: Any) -> Any:
        return _combine(operator.mod, other, self)

    def __mul__(self, other: Any) -> Any:
        return _combine(operator.mul, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _combine(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _combine(operator.floordiv, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return _combine(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _combine(operator.pow, other, self)

    def __xor__(self, other: Any) -> Any:
        return _combine(operator.xor, self, other)

    __rxor__ = __xor__

    def __and__(self, other: Any) -> Any:
        return _combine(operator.and_, self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return _combine(operator.or_, self, other)

    __ror__ = __or__

    def __lshift__(self, other: Any) -> Any:
        return _combine(operator.lshift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _combine(operator.lshift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return _combine(operator.rshift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _combine(operator.rshift, other, self)

    def __neg__(self) -> RankInt:
        return PerRank.of(-self.values())

    def __pos__(self) -> PerRank:
        return self

    def __abs__(self) -> RankInt:
        return PerRank.of(np.abs(self.values()))

    def __invert__(self) -> RankInt:
        return PerRank.of(~self.values())

    def __truediv__(self, other: Any) -> Any:
        raise TypeError("ranks, counts and offsets are whole numbers: use // instead of /")

    __rtruediv__ = __truediv__

    def __eq__(self, other: object) -> Any:
        return _compare(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return _compare(operator.ne, self, other)

    def __lt__(self, other: Any) -> Any:
        return _compare(operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return _compare(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return _compare(operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return _compare(operator.ge, self, other)

    def __index__(self) -> int:
        """Return the one number that all ranks share; split the batch where they do not."""
        values = self.values()
        if (values == values[0]).all():
            return int(values[0])
        raise Diverged(values, author_line())

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(int(self))

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __str__(self) -> str:
        return str(int(self))

    def __repr__(self) -> str:
        return f"PerRank({self.values().tolist()})"

    def bit_length(self) -> int:
        """Return int.bit_length of the one number that all ranks share."""
        return int(self).bit_length()


RankInt: TypeAlias = int | PerRank


class PerBool:
    """A truth value per rank; `bool()` splits the batch where the ranks disagree."""

    __slots__ = ("mask",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self.mask = mask

    @staticmethod
    def of(mask: Any) -> bool | PerBool:
        """Return a plain bool where all ranks agree."""
        if not isinstance(mask, np.ndarray) or mask.ndim == 0 or mask.all():
            return bool(np.all(mask))
        return PerBool(mask) if mask.any() else False

    def __bool__(self) -> bool:
        if self.mask.all():
            return True
        if not self.mask.any():
            return False
        raise Diverged(self.mask, author_line())

    def __index__(self) -> int:
        return int(bool(self))

    __int__ = __index__

    def __add__(self, other: Any) -> Any:
        return _combine(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _combine(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combine(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _combine(operator.mul, self, other)

    __rmul__ = __mul__

    def __and__(self, other: Any) -> PerBool:
        return PerBool(self.mask & _mask(other))

    __rand__ = __and__

    def __or__(self, other: Any) -> PerBool:
        return PerBool(self.mask | _mask(other))

    __ror__ = __or__

    def __invert__(self) -> PerBool:
        return PerBool(~self.mask)

    def __eq__(self, other: object) -> Any:
        return PerBool(self.mask == _mask(other))

    def __repr__(self) -> str:
        return f"PerBool({self.mask.tolist()})"


def count_up(counts: IntArray) -> IntArray:
    """Return 0 .. c - 1 for every c of `counts`, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def values_of(value: Any) -> Any:
    """Return the array behind a PerRank, and any other value as it is."""
    return value.values() if isinstance(value, PerRank) else value


_FEW = 64
"""Numbers of which Python finds the least and the greatest sooner than numpy."""


def bounds_of(values: npt.NDArray[Any]) -> tuple[int, int]:
    """Return the least and the greatest number."""
    if values.ndim == 1 and len(values) <= _FEW:
        listed = values.tolist()
        return int(min(listed)), int(max(listed))
    return int(values.min()), int(values.max())


def _mask(value: Any) -> Any:
    return value.mask if isinstance(value, PerBool) else value


def _combine(operate: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    for side in (left, right):
        if isinstance(side, PerBool):
            return _combine(operate, *(_counted(x) for x in (left, right)))
        if not isinstance(side, (int, PerRank, np.integer)):
            return NotImplemented
    a, b = values_of(left), values_of(right)
    if operate in (operator.floordiv, operator.mod) and np.any(np.equal(b, 0)):
        raise ZeroDivisionError("division by zero at some rank")
    if operate in _GROWING:
        _check_range(operate, a, b)
    return PerRank.of(operate(a, b))


_GROWING = (operator.mul, operator.pow, operator.lshift)


def _check_range(operate: Callable[[Any, Any], Any], a: Any, b: Any) -> None:
    """Refuse results that need more than 64 bits."""
    if operate is operator.mul and _greatest(a) * _greatest(b) < 1 << 62:
        return
    if operate is not operator.mul and np.any(np.less(b, 0)):
        raise ValueError("negative shift count or exponent at some rank")
    size = np.abs(np.asarray(a, np.float64))
    with np.errstate(all="ignore"):
        if operate is operator.mul:
            size = size * np.abs(np.asarray(b, np.float64))
        elif operate is operator.pow:
            size = size ** np.asarray(b, np.float64)
        else:
            size = size * np.exp2(np.asarray(b, np.float64))
    if np.any(size >= 2.0**62):
        raise OverflowError("a number per rank must stay below 2^62")


def _greatest(value: Any) -> int:
    """Return the greatest of all ranks' numbers, without signs."""
    low, high = bounds_of(value) if isinstance(value, np.ndarray) else (int(value), int(value))
    return max(-low, high)


def _counted(value: Any) -> Any:
    """Return 1 and 0 for true and false, as Python counts them."""
    return PerRank.of(value.mask.astype(np.int64)) if isinstance(value, PerBool) else value


def _compare(operate: Callable[[Any, Any], Any], left: PerRank, right: object) -> Any:
    if isinstance(right, PerBool):
        right = _counted(right)
    if not isinstance(right, (int, float, PerRank, np.number)):
        return NotImplemented
    return PerBool(operate(left.values(), values_of(right)))
