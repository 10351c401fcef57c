"""Memory, task by task: a box for every buffer of every rank, and the blocks in them."""

from hccl_py.trace.board.cells import Board
from hccl_py.trace.board.drawing import BoardDrawing

__all__ = ["Board", "BoardDrawing"]
