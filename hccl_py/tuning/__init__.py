"""Comparison of the executors that can run a call, by simulation, and choice among them."""

from hccl_py.tuning.candidates import Candidate, candidates
from hccl_py.tuning.points import Outcome, Point, evaluate

__all__ = ["Candidate", "Outcome", "Point", "candidates", "evaluate"]
