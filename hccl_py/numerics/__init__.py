"""Proofs about the bits of sums: the trees that they are made by, and whether two calls agree.

    from hccl_py.numerics import same_bits, trees_of

    trees_of(plan.program).trees        the summation trees of a call, as values
    same_bits(plan_a, plan_b).bits      same for all inputs, differ, or open to arrival

sum_trees       trees: leaves are ranks, nodes reduce and round
element_trees   the tree of every element of a program's outputs
sameness        two calls held against each other
bit_witness     inputs that show a difference, run on the emulator
size_classes    all sizes, in classes with the same trees
cures           settings under which two calls have the same bits, with their cost
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hccl_py.numerics.bit_witness import BitWitness as BitWitness
    from hccl_py.numerics.bit_witness import tricky as tricky
    from hccl_py.numerics.element_trees import ElementTrees as ElementTrees
    from hccl_py.numerics.element_trees import trees_of as trees_of
    from hccl_py.numerics.proofs import same_bits as same_bits
    from hccl_py.numerics.sameness import Bits as Bits
    from hccl_py.numerics.sameness import Sameness as Sameness
    from hccl_py.numerics.sameness import TreePair as TreePair
    from hccl_py.numerics.size_classes import SizeClass as SizeClass
    from hccl_py.numerics.sum_trees import SumTree as SumTree

_HOMES = {
    "BitWitness": "bit_witness",
    "Bits": "sameness",
    "ElementTrees": "element_trees",
    "Sameness": "sameness",
    "SizeClass": "size_classes",
    "SumTree": "sum_trees",
    "TreePair": "sameness",
    "same_bits": "proofs",
    "trees_of": "element_trees",
    "tricky": "bit_witness",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hccl_py.numerics' has no attribute {name!r}")
    return getattr(import_module(f"hccl_py.numerics.{_HOMES[name]}"), name)
