"""The uncontended simulation by batches: final clocks of very large programs, never expanded.

entry.py     the entry: three loops, one after the other, on the same clocks, cells and counters
code.py      a program as numbers, which the loops read; columns.py has its formulas
uniform.py   what the first loop needs: groups of notifies that are set at one time
kernels.py   the loops: in unison, in lock-step, rank by rank
state.py     what they read and change
"""

from hccl_py.simulator.batches.entry import Clocks, RankTimes, simulate_batches, time_ranks

__all__ = ["Clocks", "RankTimes", "simulate_batches", "time_ranks"]
