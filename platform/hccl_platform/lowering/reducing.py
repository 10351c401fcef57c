"""Reductions one at a time: numpy's, but for 16-bit floats, which numpy reduces one by one.

    fp16    numpy 0.4 GB/s      compiled 10 and more
    bf16    ml_dtypes 1.5

Loading numba costs more than little data does, so it is loaded once the runs have cost as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hccl_platform.lowering.kernels import reduce_words
from hccl_platform.lowering.moves import UFUNCS, Bytes
from hccl_py.enums import DataType, ReduceOp

Reduce: TypeAlias = Callable[[Bytes, Bytes], None]
"""Reduces bytes into others of the same length."""

_LOAD_US = 50_000.0
"""What loading numba costs."""

_LEAST_BYTES = 2048
"""Less is as fast with numpy."""

_BYTES_PER_US = {DataType.FP16: 400.0, DataType.BF16: 1500.0}


class Reducer:
    """The reductions of a session; it knows what they have cost."""

    def __init__(self, load_us: float = _LOAD_US) -> None:
        self._load_us = load_us
        self._spent_us = 0.0

    def reduction(self, dtype: DataType, op: ReduceOp) -> Reduce:
        """Return what reduces bytes of a type."""
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
        """Load numba for the first run already where so many runs would: `size` is the bytes that
        one of them reduces.
        """
        if dtype in _BYTES_PER_US and size * runs / _BYTES_PER_US[dtype] >= self._load_us:
            self._spent_us = self._load_us

    def _is_worth_loading(self, cost_us: float) -> bool:
        if self._spent_us < self._load_us:
            self._spent_us += cost_us
            return False
        return reduce_words.compiled is not reduce_words.plain  # not with NUMBA_DISABLE_JIT
