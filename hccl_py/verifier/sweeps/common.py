"""The features that the failing cases of a sweep share: "only with odd rank counts".

The answer is the fewest features, up to three, that every failing case has and that no passing case
has together; of equally few the first in the order below, the most telling first. Never more
features than failing cases: they would only describe these. It holds for the cases that ran, and
says nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.topology.presets import PRESETS
from hccl_py.verifier.sweeps.cases import Case

Mask: TypeAlias = npt.NDArray[np.bool_]


class Ran(NamedTuple):
    """A case that was recorded, its rounds, and whether the last of several is shorter."""

    case: Case
    rounds: int = 1
    tail: bool = False

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.case.topology.size

    @property
    def servers(self) -> tuple[int, ...]:
        """Devices of each server."""
        return self.case.topology.servers

    @property
    def reduces_inline(self) -> bool:
        """True if the product's copies can do the call's reduction."""
        op = self.case.op
        return self.case.topology.reduces_inline(op.dtype, op.reduce)


Feature: TypeAlias = tuple[str, Callable[[Ran], bool]]

_SUFFIX = " (of those with data and several ranks)"

FEATURES: tuple[Feature, ...] = (
    ("in several rounds", lambda ran: ran.rounds > 1),
    ("where the last round is shorter", lambda ran: ran.tail),
    ("where the root is not rank 0", lambda ran: bool(ran.case.op.root)),
    ("where the root is rank 0", lambda ran: ran.case.op.root == 0),
    ("in graph mode", lambda ran: ran.case.op.mode is Mode.GRAPH),
    ("in op-base mode", lambda ran: ran.case.op.mode is Mode.OP_BASE),
    ("in place", lambda ran: bool(ran.case.op.in_place)),
    ("without data", lambda ran: not ran.case.op.count),
    ("with one rank", lambda ran: ran.ranks == 1),
    ("with odd rank counts from 3", lambda ran: ran.ranks > 1 and ran.ranks % 2 == 1),
    ("where the rank count is no power of two", lambda ran: ran.ranks & (ran.ranks - 1) > 0),
    ("with even rank counts", lambda ran: ran.ranks % 2 == 0),
    ("where the rank count is a power of two", lambda ran: not ran.ranks & (ran.ranks - 1)),
    ("on uneven servers", lambda ran: not ran.case.topology.is_even),
    ("on several servers", lambda ran: len(ran.servers) > 1),
    ("on servers of several devices", lambda ran: len(ran.servers) > 1 and max(ran.servers) > 1),
    ("on one server", lambda ran: len(ran.servers) == 1),
    ("where hardware cannot reduce inline", lambda ran: not ran.reduces_inline),
    ("where hardware reduces inline", lambda ran: ran.reduces_inline),
    (
        "with sums or products",
        lambda ran: ran.case.op.reduce in (ReduceOp.SUM, ReduceOp.PROD),
    ),
    ("in floating point", lambda ran: ran.case.op.dtype.is_float),
    ("with integers", lambda ran: not ran.case.op.dtype.is_float),
    ("with fewer elements than ranks", lambda ran: 0 < ran.case.op.count < ran.ranks),
    ("with one element", lambda ran: ran.case.op.count == 1),
    ("with sizes off 128 bytes", lambda ran: ran.case.op.size % 128 > 0),
    ("with multiples of 128 bytes", lambda ran: ran.case.op.size % 128 == 0),
    ("with data", lambda ran: ran.case.op.count > 0),
    ("with several elements", lambda ran: ran.case.op.count > 1),
    ("with at least one element per rank", lambda ran: ran.case.op.count >= ran.ranks),
    ("with 2 or more ranks", lambda ran: ran.ranks > 1),
    ("with 3 or more ranks", lambda ran: ran.ranks > 2),
    ("with 4 or more ranks", lambda ran: ran.ranks > 3),
    ("in one round", lambda ran: ran.rounds == 1),
    ("out of place", lambda ran: not ran.case.op.in_place),
    ("with more data than a CCL buffer", lambda ran: ran.case.op.size > ran.case.ccl_bytes),
    *((f"on {name}", lambda ran, n=name: ran.case.topology.product.name == n) for name in PRESETS),
    *((f"with {op.spelling}", lambda ran, o=op: ran.case.op.reduce is o) for op in ReduceOp),
    *((f"with {dtype.value}", lambda ran, d=dtype: ran.case.op.dtype is d) for dtype in DataType),
    *(
        (f"with elements of {size} B", lambda ran, s=size: ran.case.op.unit == s)
        for size in (1, 2, 4, 8, 16)
    ),
)


def common_of(ran: Sequence[Ran], failing: Sequence[bool]) -> str:
    """Return in words the features that the failing cases share and the others do not."""
    failed = np.array(failing, bool)
    if failed.all():
        return "every case"
    useful = np.array([not one.case.is_trivial for one in ran], bool)
    if (failed == useful).all():
        return "every case with data and several ranks"
    features = {words: np.array([bool(holds(one)) for one in ran]) for words, holds in FEATURES}
    shared = {
        words: mask for words, mask in features.items() if mask[failed].all() and not mask.all()
    }
    # A trivial case passes for no reason: where none of them fails, they prove nothing.
    telling = ~failed & useful if not failed[~useful].any() else ~failed
    for size in range(1, min(3, int(failed.sum())) + 1):
        for passed, suffix in ((~failed, ""), (telling, _SUFFIX)):
            found = _exact(shared, passed, size)
            if found:
                return f"only {found}{suffix}"
    return f"{failed.sum()} of {len(ran)} cases{_nearest(shared, ~failed)}"


def _exact(shared: dict[str, Mask], passed: Mask, size: int) -> str:
    """Return the first `size` features that no passing case has together, empty for none."""
    for group in combinations(shared, size):
        if not np.logical_and.reduce([shared[words] for words in group])[passed].any():
            return ", ".join(group)
    return ""


def _nearest(shared: dict[str, Mask], passed: Mask) -> str:
    """Return the feature of all failing cases that fewest others have, empty if all have it."""
    if not shared:
        return ""
    words, mask = min(shared.items(), key=lambda item: int(item[1][passed].sum()))
    return f", all {words}" if mask[passed].sum() < passed.sum() else ""
