"""Reductions of one range: by numpy, and compiled for 16-bit floats, which numpy is slow at.

    fp16    numpy 0.4 GB/s      compiled 10 and more
    bf16    ml_dtypes 1.5

Loading numba costs more than reducing little data, so it is loaded only once the runs have cost as
much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hccl_platform.lowering.kernels import reduce_words
from hccl_platform.lowering.moves import UFUNCS, Bytes
from hccl_py.enums import DataType, ReduceOp

Reduce: TypeAlias = Callable[[Bytes, Bytes], None]
"""Reduces the second range of bytes into the first, of the same length."""

_LOAD_US = 50_000.0
"""Microseconds to load numba."""

_LEAST_BYTES = 2048
"""Bytes below which numpy is as fast."""

_BYTES_PER_US = {DataType.FP16: 400.0, DataType.BF16: 1500.0}


class Reducer:
    """The reductions of a session, and the time that they have cost so far."""

    def __init__(self, load_us: float = _LOAD_US) -> None:
        self._load_us = load_us
        self._spent_us = 0.0

    def reduction(self, dtype: DataType, op: ReduceOp) -> Reduce:
        """Return a function that reduces bytes of a type."""
        ufunc, numpy_type = UFUNCS[op], dtype.numpy

        def by_numpy(into: Bytes, what: Bytes) -> None:
            typed: np.ndarray[Any, Any] = into.view(numpy_type)
            ufunc(typed, what.view(numpy_type), out=typed)

        if dtype not in _BYTES_PER_US:
            return by_numpy
        is_bf16, number, rate = dtype is DataType.BF16, int(op), _BYTES_PER_US[dtype]

        def by_words(into: Bytes, what: Bytes) -> None:
            if len(into) < _LEAST_BYTES or not self._is_worth_loading(len(into) / rate):
                by_numpy(into, what)
            else:
                words = into.view(np.uint16), what.view(np.uint16)
                reduce_words.compiled(*words, is_bf16, number)

        return by_words

    def expect(self, size: int, dtype: DataType, runs: int) -> None:
        """Prepare for `runs` runs that each reduce `size` bytes: if they would load numba in the
        end, the first run does.
        """
        if dtype in _BYTES_PER_US and size * runs / _BYTES_PER_US[dtype] >= self._load_us:
            self._spent_us = self._load_us

    def _is_worth_loading(self, cost_us: float) -> bool:
        if self._spent_us < self._load_us:
            self._spent_us += cost_us
            return False
        return reduce_words.compiled is not reduce_words.plain  # not with NUMBA_DISABLE_JIT
