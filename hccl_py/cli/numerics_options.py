"""The options of `hccl-py numerics` that say what a call is held against, and what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hccl_py.cli.options import flag, option


@dataclass(frozen=True)
class Other:
    """The second call, as far as it differs from the first."""

    same_as: Annotated[
        str | None,
        option("--same-as", "SIZE|RxC", "Compare with this size, or with an array of this shape."),
    ] = None
    changes: Annotated[
        list[str] | None,
        option(
            "--with",
            "OPTION=VALUE",
            "Compare with the call that has this option, such as deterministic=strict, servers=2 "
            "or ruleset=cann-2025.07; may be repeated.",
        ),
    ] = None
    against: Annotated[
        str | None,
        option(
            "--against",
            "FILE|DIR|EXECUTOR",
            "Compare with a program, an MSCCL file, a custom op in C++, or an executor.",
        ),
    ] = None
    shift: Annotated[
        int, option("--shift", "N", "Element e of the first call is e + N of the second.")
    ] = 0

    @property
    def is_asked(self) -> bool:
        """True if there is a second call."""
        return self.same_as is not None or bool(self.changes) or self.against is not None


@dataclass(frozen=True)
class Shown:
    """The element whose tree is drawn, and the files that are written."""

    rank: Annotated[
        int, option("--rank", "RANK", "Draw the tree of an element of this rank.", min=0)
    ] = 0
    element: Annotated[int, option("--element", "N", "Draw the tree of this element.", min=0)] = 0
    no_cures: Annotated[
        bool, flag("--no-cures", "Do not search settings under which the bits are the same.")
    ] = False
    certificate: Annotated[
        str | None, option("--certificate", "FILE", "Write what was proved, as JSON.")
    ] = None
    html: Annotated[
        str | None, option("--html", "FILE", "Write a page with trees and elements in colours.")
    ] = None
