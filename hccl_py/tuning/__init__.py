"""Comparing the ways in which a call can run, by simulation, and choosing among them."""

from hccl_py.tuning.candidates import Candidate, candidates
from hccl_py.tuning.points import Outcome, Point, evaluate

__all__ = ["Candidate", "Outcome", "Point", "candidates", "evaluate"]
