"""What every byte of memory holds after one run of a program, exactly, without looking at bytes.

arrays    segments in lists by interval: the columns that the loop over the moves reads and changes
loop      that loop: what a move reads, adds and writes
sums      whether a content is the sum of all inputs, and what else it is made of
follow    contents_of: the arrays around the loop, and what is left in them
"""

from hccl_py.verifier.analysis.contents.arrays import GARBAGE, UNDEFINED
from hccl_py.verifier.analysis.contents.follow import Contents, Segments, contents_of
from hccl_py.verifier.analysis.contents.sums import Made

__all__ = ["GARBAGE", "UNDEFINED", "Contents", "Made", "Segments", "contents_of"]
