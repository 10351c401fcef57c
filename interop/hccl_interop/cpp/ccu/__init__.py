"""Kernels of the CCU: the listings of all ranks run together, and become tasks.

values.py       registers, and variables that peers write: are their values certain?
streams.py      missions, lanes of moves and loops as streams with names, and their tasks
moves.py        addresses, tokens and lengths of moves, checked
loops.py        loops of a LoopGroup: each by itself, or folded to one move
kernels.py      a launch: the lines of its listing, with values in registers
machine.py      threads, missions and waits of all ranks together, without time
expanded.py     traces with launches as traces with the tasks of kernels
words.py        findings of the verifier in the words of the CCU
"""

from hccl_interop.cpp.ccu.expanded import expanded
from hccl_interop.cpp.ccu.words import in_words

__all__ = ["expanded", "in_words"]
