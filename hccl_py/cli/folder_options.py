"""The options of `check` for what is made into programs for a call: folders of custom ops in C++,
algorithms of other tools.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Annotated

from hccl_py.cli.declared import CALLS, IMPLEMENTED_OP, MINBYTES, here
from hccl_py.cli.narrowing import Narrowing

if TYPE_CHECKING:
    from hccl_py.checker_logs import Stated
    from hccl_py.cli.algorithms import AlgorithmCalls
    from hccl_py.cli.folders import FolderCalls

__all__ = ["Folders", "algorithm_calls", "check_folders", "folder_calls", "stated_ops"]


@dataclass(frozen=True)
class Folders:
    """The call for which folders are recorded and algorithms are imported."""

    cpp_op: Annotated[str | None, IMPLEMENTED_OP] = None
    minbytes: Annotated[
        str | None,
        here(
            MINBYTES, help="DIR, XML, PLAN: data size, 1M by default; LOG: else what tasks touch."
        ),
    ] = None
    calls: Annotated[int | None, CALLS] = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options is."""
        return any(value is not None for value in astuple(self))


def check_folders(folders: Folders, targets: list[str]) -> None:
    """Refuse the options where neither a folder nor an algorithm is named."""
    from hccl_py.cli.sources import CHECKER_LOG, is_algorithm, is_folder
    from hccl_py.errors import ParameterError

    has_folder = any(map(is_folder, targets))
    if folders.calls is not None and not has_folder:
        raise ParameterError(
            "--calls is about folders of custom ops in C++.",
            "Leave it out, or name a folder; --repeat says how many copies of a program run.",
        )
    others = (is_algorithm, CHECKER_LOG.is_one)
    if folders.is_given and not (
        has_folder or any(is_one(t) for t in targets for is_one in others)
    ):
        raise ParameterError(
            "--op and -b are about folders of custom ops in C++, other tools' algorithms and logs.",
            "Leave them out, or name a folder, an .xml file, a plan or a log.",
        )


def algorithm_calls(folders: Folders, narrowing: Narrowing) -> AlgorithmCalls:
    """Return the call that the options describe; of lists, the first."""
    from hccl_py.cli.algorithms import AlgorithmCalls
    from hccl_py.cli.notations import NotedCall
    from hccl_py.cli.sizes import first_size
    from hccl_py.enums import DataType, ReduceOp

    dtype, reduce, root = _first_of_each(narrowing)
    call = NotedCall(
        op=folders.cpp_op,
        dtype=DataType.FP32 if dtype is None else DataType.parse(dtype),
        reduce=None if reduce is None else ReduceOp.parse(reduce),
        root=None if root is None else int(root),
    )
    return AlgorithmCalls(call, None if folders.minbytes is None else first_size(folders.minbytes))


def stated_ops(folders: Folders, narrowing: Narrowing) -> Stated:
    """Return what the options state of the op of a log's tests; of lists, the first."""
    from hccl_py.cli.checker_logs import stated_of

    dtype, reduce, root = _first_of_each(narrowing)
    return stated_of(
        folders.cpp_op, folders.minbytes, dtype, reduce, None if root is None else int(root)
    )


def _first_of_each(narrowing: Narrowing) -> list[str | None]:
    """Return data type, reduce op and root; of lists, the first."""
    texts = (narrowing.dtype, narrowing.reduce_op, narrowing.root)
    return [None if text is None else text.split(",")[0].strip() for text in texts]


def folder_calls(folders: Folders, narrowing: Narrowing) -> FolderCalls:
    """Return the calls that the options describe; ParameterError for what folders do not take."""
    from hccl_py.cli.folders import FolderCalls
    from hccl_py.cli.narrowing import numbers_of_ranks
    from hccl_py.cli.options import CallOptions
    from hccl_py.cli.sizes import first_size

    options = CallOptions(
        op="",
        servers=narrowing.servers,
        devices=narrowing.devices,
        superpods=narrowing.superpods,
        topology=narrowing.topology,
        buffsize=narrowing.buffsize,
        dtype="fp32" if narrowing.dtype is None else narrowing.dtype,
        reduce_op=narrowing.reduce_op,
        root=None if narrowing.root is None else int(narrowing.root.split(",")[0]),
    )
    return FolderCalls(
        options=options,
        ranks=numbers_of_ranks(narrowing) or (None,),
        op=folders.cpp_op,
        calls=folders.calls or 1,
        size=first_size(folders.minbytes),
    )
