"""The options of `check` for folders of custom ops in C++, and the calls that they make."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.narrowing import Narrowing

if TYPE_CHECKING:
    from hccl_py.cli.folders import FolderCalls

__all__ = ["Folders", "check_folders", "folder_calls"]


@dataclass(frozen=True)
class Folders:
    """The call for which folders are recorded."""

    cpp_op: Annotated[
        str | None,
        typer.Option("--op", metavar="OP", help="DIR: the op that it implements."),
    ] = None
    minbytes: Annotated[
        str | None,
        typer.Option("-b", "--minbytes", metavar="SIZE", help="DIR: data size, 1M by default."),
    ] = None
    calls: Annotated[
        int | None,
        typer.Option(
            "--calls",
            metavar="N",
            min=1,
            max=64,
            help="DIR: calls in a row, on one set of resources.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options is."""
        return any(value is not None for value in astuple(self))


def check_folders(folders: Folders, named: list[str]) -> None:
    """Refuse the options where no folder is named."""
    from hccl_py.errors import ParameterError

    if folders.is_given and not named:
        raise ParameterError(
            "--op, -b and --calls are about folders of custom ops in C++.",
            "Leave them out, or name a folder.",
        )


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
        dtype=narrowing.dtype or "fp32",
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
