"""The uncontended walk over batches: final clocks of very large programs, without expanding them.

walk.py      the entry: three loops, one after the other, on the same clocks, cells and counters
code.py      a program as numbers, which the loops read; columns.py has its formulas
uniform.py   what the first loop needs: cells that always hold one time
kernels.py   the loops: in unison, in lock-step, rank by rank
"""

from hccl_py.simulator.batches.walk import Clocks, simulate_batches

__all__ = ["Clocks", "simulate_batches"]
