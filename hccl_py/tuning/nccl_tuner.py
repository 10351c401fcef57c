"""A tuning table as the CSV file of NCCL's and RCCL's example tuner plugins.

A line has op, least and most bytes, algorithm, protocol, channels, nodes and ranks. Of HCCL's
algorithms only the ring over all ranks is one of NCCL's. Bytes are the larger one of a rank's input
and output. Protocol and channels are NCCL's own affair: the rules name `simple`, and -1 to leave
the channels as they are.

Source: NVIDIA/nccl and ROCm/rccl, `ext-tuner/example/plugin.c`.
"""

from __future__ import annotations

from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.executor import choices_of
from hccl_py.tuning.table import SizeRange, TuningEntry, TuningTable
from hccl_py.tuning.tuner_rules import TunerForm, TunerRule, sorted_out

_OPS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
}


def tuner_csv(table: TuningTable) -> tuple[str, int, list[str]]:
    """Return the lines, their number, and what they do not say."""
    rules, unsaid = sorted_out(table, TunerForm(_OPS, (), _ring, counts_inputs=False))
    head = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
    return head + "".join(_line(rule) for rule in rules), len(rules), unsaid


def _line(rule: TunerRule) -> str:
    where = f"{rule.servers},{rule.ranks}"
    return f"{_OPS[rule.op]},{rule.least},{rule.most},{rule.words[0]},simple,-1,{where}\n"


def _ring(entry: TuningEntry, found: SizeRange) -> tuple[str, ...] | str:
    known = installed_executors().executors.get(found.executor)
    if known is None:
        return f"the executor {found.executor} is not installed, so its algorithm is not known"
    levels = {level: words[0] for level, words in choices_of(known.executor).items()}
    levels |= found.levels
    shape, inside = entry.topology, levels.pop("level0", "NA")
    is_one_server = shape.superpods * shape.servers == 1
    among = {inside} if is_one_server and inside != "NA" else {inside, *levels.values()} - {"NA"}
    is_flat = is_one_server or inside == "NA"
    if among == {"ring"} and is_flat:
        return ("ring",)
    return f"{found.executor} is none of NCCL's algorithms, but {', '.join(sorted(among))}"
