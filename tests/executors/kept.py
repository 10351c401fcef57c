"""Synchronisation that stays although nothing needs it where these executors use it, and why.

The testing kit deletes every line's synchronisation, and all of it must be missed somewhere. What
is listed here is a template's step that others need; it is named by what the step says, because
line numbers move.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import hccl_executors

FOLDER = Path(hccl_executors.__file__).parent


class Kept(NamedTuple):
    """One statement of a file that holds this text, and the reason why it stays; of a function,
    where others of the file say the same.
    """

    file: str
    text: str
    reason: str
    function: str | None = None


STAR = Kept(
    "templates/star.py",
    "exchange(stream, frm=plane[root], recv=work)",
    "rank 0 has had this rank's data, so it knows that memory is free; a broadcast alone needs it",
)
BARRIER = tuple(
    Kept(
        file,
        text,
        "HCCL ends rings and NHR with a barrier; where nothing follows, nothing needs it",
        function,
    )
    for file, text, function in (
        ("templates/signals.py", "prev.tx_ack(stream)", "barrier"),
        ("templates/signals.py", "following.tx_data_signal(stream)", "barrier"),
        ("templates/signals.py", "prev.tx_data_ack(stream)", "acknowledged_barrier"),
        ("templates/ring.py", "plane.right.tx_data_signal(stream)", "_signal"),
    )
)
"""In every executor that runs a ring or NHR."""

HCCLS = (
    Kept(
        "templates/nb.py",
        "left.tx_ack(stream)",
        "HCCL's; the barrier of the step before says as much",
        "_exchange",
    ),
    Kept(
        "templates/nb.py",
        "frm.tx_data_signal(stream)",
        "HCCL's; it is needed where the sender writes its chunks again",
        "_scatter",
    ),
    Kept(
        "templates/mesh_in_place.py",
        "plane[peer].tx_ack(stream)",
        "HCCL's; the root's slots are free from the first in graph mode",
        "mesh_gather",
    ),
    Kept(
        "templates/by_rank.py",
        "link.tx_data_ack(main)",
        "HCCL's; over RDMA the halving that follows waits for all pieces",
    ),
    Kept(
        "all_to_all/for_310p.py",
        "with rank.fork():\n        piece.keep()",
        "HCCL's; a device's own piece goes where no other task reads or writes",
        "_second_die",
    ),
    Kept(
        "all_to_all/pipelined.py",
        "frm.tx_data_ack(stream)",
        "HCCL's; the barrier behind it says as much",
    ),
)
"""In every executor that runs these, as HCCL's own do by its run."""

MEETING = Kept(
    "templates/march.py",
    "other.post(stream, self.done)",
    "what the last step takes from a neighbour has been there since the meeting of the one before",
)
PIPELINE = (
    Kept(
        "templates/pipeline.py",
        "frm.tx_data_ack(stream)",
        "HCCL's; needed where an all-gather fills a block anew",
        "_MeshRingPipeline",
    ),
    Kept(
        "templates/pipeline.py",
        "frm.tx_data_signal(stream)",
        "needed where servers are joined by SDMA and by RDMA, or blocks are filled locally",
        "_MeshRingPipeline",
    ),
)
DETER_PIPELINE = (
    Kept(
        "templates/deter_pipeline.py",
        "frm.tx_data_ack(main)",
        "HCCL's; a reduce-scatter needs it, what follows in an all-reduce says as much",
    ),
    Kept(
        "templates/pipeline.py",
        "frm.tx_data_ack(stream)",
        "HCCL's; the barrier behind the last transfer says as much between two servers",
        "_MeshRingPipeline",
    ),
)
SUPERPODS = Kept(
    "zero_copy/pipelines.py",
    "frm.tx_data_ack(stream)",
    "HCCL's superpods meet once more after it, which says as much; an all-gather has nothing else",
)

KEPT = {
    "AllReduceDeterPipelineExecutor": DETER_PIPELINE,
    "AllGatherMeshOpbasePipelineExecutor": PIPELINE,
    "AllGatherMeshGraphPipelineExecutor": PIPELINE,
    "AllGatherVMeshOpbasePipelineExecutor": PIPELINE,
    "AllGatherVMeshGraphPipelineExecutor": PIPELINE,
    "AllReduceMeshGraphPipelineExecutor": PIPELINE,
    "ReduceScatterMeshOpbasePipelineExecutor": PIPELINE,
    "ReduceScatterMeshGraphPipelineExecutor": PIPELINE,
    "ReduceScatterVMeshOpbasePipelineExecutor": PIPELINE,
    "ReduceScatterSemiRingExecutor": (MEETING,),
    "ReduceScatterRingZerocopyExchangePipelineExecutor": (SUPERPODS,),
    "AllReduceStar": (STAR,),
}
"""By executor."""


def kept_lines(executor: str) -> dict[str, str]:
    """Return an executor's entries as `check_executor` takes them, by file and line."""
    return lines_of(*BARRIER, *HCCLS, *KEPT.get(executor, ()))


def lines_of(*entries: Kept) -> dict[str, str]:
    """Return these entries in the same form."""
    return {f"{kept.file}:{_line(kept)}": kept.reason for kept in entries}


def _line(kept: Kept) -> int:
    """Return the line on which the one statement begins that holds the text, the innermost."""
    source = (FOLDER / kept.file).read_text(encoding="utf-8")
    found = [
        node
        for top in ast.parse(source).body
        if kept.function in (None, getattr(top, "name", None))
        for node in ast.walk(top)
        if isinstance(node, (ast.Expr, ast.With))
        and kept.text in (ast.get_source_segment(source, node) or "")
    ]
    inner = [node for node in found if not any(one in found for one in _inside(node))]
    assert len(inner) == 1, f"{kept.file} has {len(inner)} statements with {kept.text!r}"
    return inner[0].lineno


def _inside(node: ast.AST) -> list[ast.AST]:
    return [one for one in ast.walk(node) if one is not node]
