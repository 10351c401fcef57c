"""Groups: which ranks of a communicator make up others, and the groups of hybrid parallelism.

A rank may be in many groups at once. Each is a communicator of its own, HCCL's sub-communicator,
so that ops of different groups never meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import prod
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hccl_py.communicator.collectives.ranks import index_of
from hccl_py.errors import ParameterError

if TYPE_CHECKING:
    from hccl_py.communicator.communicator import Communicator

T = TypeVar("T")

LONGEST_NAME = 127


@dataclass(frozen=True)
class ParallelGroups:
    """The groups of tensor (tp), data (dp) and pipeline parallelism (pp) in which this process owns
    a rank; each rank is in one of each. Closing them leaves the world as it is.
    """

    tp: tuple[Communicator, ...]
    dp: tuple[Communicator, ...]
    pp: tuple[Communicator, ...]

    def of(self, rank: int) -> tuple[Communicator, Communicator, Communicator]:
        """Return the groups that a rank of the world is in: tp, dp, pp."""
        tp, dp, pp = (
            [group for group in groups if rank in group.ranks]
            for groups in (self.tp, self.dp, self.pp)
        )
        if not tp:
            raise ParameterError(
                f"Rank {rank} is in no group.",
                f"Groups here have ranks {self._first} to {self._last}.",
            )
        return tp[0], dp[0], pp[0]

    def close(self) -> None:
        """Close all groups."""
        for group in self:
            group.close()

    def __iter__(self) -> Iterator[Communicator]:
        yield from (*self.tp, *self.dp, *self.pp)

    def __enter__(self) -> ParallelGroups:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _first(self) -> int:
        return min(rank for group in self.tp for rank in group.ranks)

    @property
    def _last(self) -> int:
        return max(rank for group in self.tp for rank in group.ranks)


def parallel_groups(
    world: Communicator, *, tp: int = 1, pp: int = 1, dp: int | None = None
) -> ParallelGroups:
    """Divide a communicator into groups of `tp`, `dp` and `pp` ranks.

    Ranks are laid out as Megatron does, tp fastest, then dp, then pp: rank (p · dp + d) · tp + t is
    the t-th of its tp group, the d-th of its dp group and the p-th of its pp group. `dp` is what is
    left of the ranks unless it is given. Groups are called `<world>_tp_0` and so on.
    """
    given = {"tp": tp, "pp": pp} | ({} if dp is None else {"dp": dp})
    sizes = {name: index_of(size, name) for name, size in given.items()}
    for name, size in sizes.items():
        if size < 1:
            raise ParameterError(f"{name} is {size}.", "Give 1 or more.")
    product = prod(sizes.values())
    rest = world.size // product if dp is None else 1
    if product * rest != world.size:
        phrase = " x ".join(f"{name} {size}" for name, size in sizes.items())
        raise ParameterError(
            f"{phrase} are {product} ranks, the world has {world.size}.",
            "Their product is the number of ranks; without dp, a divisor of it.",
        )
    grid = np.arange(world.size).reshape(pp, dp or rest, tp)
    by_dimension = {
        "tp": grid,
        "dp": grid.transpose(0, 2, 1),
        "pp": grid.transpose(1, 2, 0),
    }
    made = {
        name: _own(
            world.create_group(ranks, name=f"{world.name}_{name}_{number}")
            for number, ranks in enumerate(table.reshape(-1, table.shape[-1]).tolist())
        )
        for name, table in by_dimension.items()
    }
    return ParallelGroups(**made)


def _own(groups: Iterable[Communicator | None]) -> tuple[Communicator, ...]:
    """Make all groups; return those in which this process owns a rank."""
    return tuple(group for group in groups if group is not None)


def members_of(ranks: Iterable[int], size: int) -> tuple[int, ...]:
    """Return a group's ranks; ParameterError for none, for what is no rank, and for repetition."""
    listed = _listed(ranks, "create_group", "ranks")
    members = tuple(index_of(rank, "A rank of the group") for rank in listed)
    if not members:
        raise ParameterError("The group has no ranks.", "Give at least one.")
    for rank in members:
        if not 0 <= rank < size:
            raise ParameterError(
                f"Rank {rank} of the group is out of range.",
                f"The communicator has ranks 0 to {size - 1}.",
            )
    twice = next((rank for rank, times in Counter(members).items() if times > 1), None)
    if twice is not None:
        raise ParameterError(f"Rank {twice} is in the group twice.", "Give every rank once.")
    return members


def members_of_colors(
    colors: Iterable[Hashable], keys: Iterable[int] | None, size: int
) -> dict[Hashable, list[int]]:
    """Return the ranks of every colour, ordered by key and rank."""
    by_rank = _listed(colors, "split", "colors")
    order = [0] * size
    if keys is not None:
        order = [index_of(key, "A key") for key in _listed(keys, "split", "keys")]
    for what, listed in (("colors", by_rank), ("keys", order)):
        if len(listed) != size:
            raise ParameterError(
                f"split got {len(listed)} {what} for {size} ranks.", "Give one for every rank."
            )
    found: dict[Hashable, list[int]] = {}
    for rank, color in enumerate(by_rank):
        if color is not None:
            found.setdefault(_hashable(color, rank), []).append(rank)
    return {color: sorted(ranks, key=lambda rank: order[rank]) for color, ranks in found.items()}


def _listed(given: Iterable[T], what: str, name: str) -> list[T]:
    try:
        return list(given)
    except TypeError:
        raise ParameterError(f"{what} got {given!r:.60} as {name}.", "Give a list.") from None


def _hashable(color: Hashable, rank: int) -> Hashable:
    try:
        hash(color)
    except TypeError:
        raise ParameterError(
            f"The color of rank {rank} is {color!r:.60}.",
            "Give what can be the key of a dict, such as a number or a string.",
        ) from None
    return color


def check_name(name: str) -> str:
    """Return a group's name; ParameterError where HCCL would refuse it."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise ParameterError(
            f"The name of the group is {name!r:.60}.", f"Give 1 to {LONGEST_NAME} characters."
        )
    return name
