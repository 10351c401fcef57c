"""Ranks that do the same, which pictures draw once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.values import IntArray


def first_alike(first: IntArray, columns: Sequence[npt.NDArray[Any]]) -> IntArray:
    """Return for every run of rows, first[k] .. first[k + 1] - 1, the number of the first run that
    has the same values in all columns.
    """
    known: dict[bytes, int] = {}
    found = np.empty(len(first) - 1, np.int64)
    for k, (begin, end) in enumerate(pairwise(first.tolist())):
        digest = hashlib.sha256()
        for column in columns:
            digest.update(np.ascontiguousarray(column[begin:end]).tobytes())
        found[k] = known.setdefault(digest.digest(), k)
    return found
