"""The contents of every byte of memory after one run of a program, exact, without real data.

arrays    segments in lists by interval: the columns that the loop over the moves reads and changes
loop      that loop: every move reads, adds and writes segments
sums      the check that a content is the sum of all inputs, and the inputs of any other content
follow    contents_of: the arrays around the loop, and the outputs at its end
"""

from hccl_py.verifier.analysis.contents.arrays import GARBAGE, UNDEFINED
from hccl_py.verifier.analysis.contents.follow import Contents, Segments, contents_of
from hccl_py.verifier.analysis.contents.sums import SumOrigin

__all__ = ["GARBAGE", "UNDEFINED", "Contents", "Segments", "SumOrigin", "contents_of"]
