"""Kernels of the CCU: the listings of all ranks run together, and become tasks.

    registers.py    values, and variables that peers write: are their values certain?
    missions.py     missions, lanes of moves and loops as streams with names, and their tasks
    move_memory.py  addresses, tokens and lengths of moves, checked
    loops.py        loops of a LoopGroup, from their configurations
    long_loops.py   iterations that adjoin, as one move
    launches.py     a launch: the lines of its listing, with values in registers
    machine.py      threads, missions and waits of all ranks together, without time
    expanded.py     traces with launches as traces with the tasks of kernels
    ccu_words.py    findings of the verifier in the words of the CCU

A listing is what recorder/ccu_listing.cpp writes for every kernel that is registered.
"""

from hccl_interop.cpp.ccu.ccu_words import in_words
from hccl_interop.cpp.ccu.expanded import expanded

__all__ = ["expanded", "in_words"]
