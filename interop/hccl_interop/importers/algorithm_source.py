"""An algorithm of another tool as a source: its op is known by meaning, its call has any size."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.importers import ImportOptions, Source

if TYPE_CHECKING:
    from hccl_interop.common.meaning import Meaning

T = TypeVar("T", bound="AlgorithmSource")


@dataclass(kw_only=True)
class AlgorithmSource(Source):
    """The algorithm with its meaning, and the options of the call for which it was opened."""

    meaning: Meaning[Any]
    options: ImportOptions
    is_fixed = False

    @classmethod
    def of(
        cls: type[T],
        noun: str,
        path: str,
        title: str,
        meaning: Meaning[Any],
        options: ImportOptions,
    ) -> T:
        """Return the source of an algorithm in a file."""
        algorithm, dtype = meaning.algorithm, options.dtype or DataType.FP32
        return cls(
            noun=noun,
            name=format_path(path),
            title=title,
            ranks=algorithm.ranks,
            op_name=meaning.op,
            has_op=not meaning.unknown,
            usual_size=cls.usual(meaning, dtype) if options.size is None else options.size,
            executor=algorithm.name or noun,
            meaning=meaning,
            options=options,
        )

    @staticmethod
    @abstractmethod
    def usual(meaning: Meaning[Any], dtype: DataType) -> int:
        """Return a data size for which the tool takes the algorithm, for calls that state none."""

    @property
    def data(self) -> tuple[DataType, ReduceOp | None, int | None]:
        """The data type, the reduce op and the root of the call."""
        return self.options.dtype or DataType.FP32, self.options.reduce, self.options.root

    def describe(self) -> str | None:
        """Return a phrase for a call whose op is not known."""
        return self.meaning.describe()
