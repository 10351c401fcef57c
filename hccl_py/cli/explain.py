"""`hccl-py explain`: which executor runs, which one HCCL takes, why, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_py.cli.options import Call, Output, Sizes, grouped

if TYPE_CHECKING:
    from hccl_py.cli.explanation import Explanation

__all__ = ["explain"]


@grouped
def explain(*, call: Call, sizes: Sizes, output: Output) -> None:
    """Say which executor runs, and why.

    And which one HCCL takes, and what it costs. With -e, also where between -b and -e the choice
    changes.
    """
    from hccl_py.cli.call import Request
    from hccl_py.cli.explanation import Explanation
    from hccl_py.cli.output import print_json

    request = Request(call)
    request.check_sizes(sizes)
    with request.comm:
        explanation = Explanation.of(request, call, sizes)
    if output.json:
        print_json(explanation.document())
    else:
        _print(explanation)


def _print(explanation: Explanation) -> None:
    from hccl_py.cli.output import Screen

    screen = Screen()
    for part in explanation.drawing():
        screen.show(part)
