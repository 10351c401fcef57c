"""A tuning table for HCCL's tuner plugins (HCCL_TUNER_PLUGIN with HCCL_USE_NEW_SELECTOR=1).

Two forms: the JSON that HCCL's example plugin loads, which names an algorithm by three words, and a
plugin of our own in C++ that names it in full, since the three words reach no composed algorithm.
Both name the executors of the Ascend 950 alone.

Source: hicann/hccl @09300b7, August 2026: `hccl_tuner_plugin.h`, `algo_name_mapper.cc`,
`alg_parse.cc`, `examples/06_tuner_plugin`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any

from hccl_py.call.algo_executors import ALGORITHMS_950, KINDS_950, OPS_950
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.tuning.table import SizeRange, TuningEntry, TuningTable
from hccl_py.tuning.tuner_rules import TunerForm, TunerRule, sorted_out

_OPS = {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter"}
"""The ops of HCCL's newer selector, which alone asks a tuner plugin, and the example's names."""

_ENGINES = {
    "Aicpu": "aicpu",
    "CcuMS": "ccums",
    "CcuSched": "ccusched",
    "Aiv": "aiv",
    "Dpu": "dpu",
}
_EXAMPLE_KINDS = tuple(word for word in KINDS_950 if word != "strictordered")
_EXAMPLE_ALGORITHMS = tuple(ALGORITHMS_950)[:10]
"""The words that the example knows of those that HCCL fills in."""

_MOST_RULES = 2000
"""Of an op, in the example."""

_TYPES = {
    DataType.BF16: ("bfloat16", "BFP16"),
    **{
        dtype: (dtype.value, dtype.value.upper())
        for dtype in DataType
        if dtype.value.lstrip("u") in ("int8", "int16", "int32", "int64", "fp16", "fp32", "fp64")
    },
}
"""Data types by the example's words and HCCL's constants."""


def tuner_json(table: TuningTable) -> tuple[str, int, list[str]]:
    """Return the text of hccl_tuner_config.json, the number of its rules, and what they do not say.

    Raises ParameterError for more rules than the example takes.
    """
    form = TunerForm(_OPS, ("dtype", "buffsize_mb"), _three_words)
    rules, unsaid = sorted_out(table, form)
    by_op: dict[str, list[dict[str, Any]]] = {}
    for rule in rules:
        by_op.setdefault(_OPS[rule.op], []).append(_as_json(rule))
    for op, found in by_op.items():
        if len(found) > _MOST_RULES:
            raise ParameterError(
                f"HCCL's example takes {_MOST_RULES} rules of {op}, and these are {len(found)}.",
                "Write fewer topologies, or `--to hccl-plugin`, which has no limit.",
            )
    document = {"version": 1, "op_types": {op: {"rules": found} for op, found in by_op.items()}}
    return json.dumps(document, indent=2) + "\n", len(rules), unsaid


def tuner_plugin(table: TuningTable) -> tuple[Mapping[str, str], int, list[str]]:
    """Return the files of a tuner plugin that names algorithms in full, by path, the number of its
    rules, and what they do not say.
    """
    form = TunerForm(_OPS, ("dtype", "buffsize_mb"), _full_name)
    rules, unsaid = sorted_out(table, form)
    rows = "".join(f"    {_as_row(rule)},\n" for rule in rules)
    texts = {name: _template(name) for name in ("tuner.cc", "tuner_interface.h", "CMakeLists.txt")}
    texts["rules.h"] = Template(_template("rules.h")).substitute(rows=rows, count=len(rules))
    return texts, len(rules), unsaid


def _template(name: str) -> str:
    return files("hccl_py.tuning").joinpath("templates", f"{name}.tmpl").read_text("utf-8")


def parted(executor: str, op: str) -> tuple[str, str, str] | None:
    """Return engine, kind and algorithm of a 950's executor as HCCL fills them in for a plugin;
    None for names that its table does not have, such as those with two algorithms.
    """
    engine, found, rest = executor.partition(OPS_950[op.replace("_", "")])
    if not found or engine not in _ENGINES:
        return None
    pairs = {
        k + a: (kind, name) for kind, k in KINDS_950.items() for name, a in ALGORITHMS_950.items()
    }
    return (_ENGINES[engine], *pairs[rest]) if rest in pairs else None


def _three_words(entry: TuningEntry, found: SizeRange) -> tuple[str, ...] | str:
    name = _full_name(entry, found)
    if isinstance(name, str):
        return name
    words = parted(found.executor, entry.op)
    if words is None or words[1] not in _EXAMPLE_KINDS or words[2] not in _EXAMPLE_ALGORITHMS:
        return f"{found.executor} is not named by engine, executor and template; hccl-plugin has it"
    return words


def _full_name(entry: TuningEntry, found: SizeRange) -> tuple[str, ...] | str:
    engine, is_950, _ = found.executor.partition(OPS_950[entry.op.replace("_", "")])
    if not is_950 or engine not in _ENGINES:
        return f"{found.executor} is no executor of the Ascend 950"
    if DataType(entry.dtype) not in _TYPES:
        return f"{entry.dtype} is no data type of rules"
    return (found.executor,)


def _as_json(rule: TunerRule) -> dict[str, Any]:
    engine, kind, algorithm = rule.words
    match = {
        "min_ranks": rule.ranks,
        "max_ranks": rule.ranks,
        "min_bytes": rule.least,
        "max_bytes": rule.most,
        "data_type": _TYPES[rule.dtype][0],
        "min_npus_per_server": rule.devices,
        "max_npus_per_server": rule.devices,
        "min_servers": rule.servers,
        "max_servers": rule.servers,
        "buffer_size": rule.buffer_bytes,
    }
    named = {"engine": engine, "executor": kind, "template": algorithm}
    return {"match": match, **named, "cost": 0.0}


def _as_row(rule: TunerRule) -> str:
    op = f"HCCL_CMD_{rule.op.upper().replace('ALL_', 'ALL')}"
    where = f"{rule.ranks}, {rule.servers}, {rule.devices}, {rule.buffer_bytes}ULL"
    dtype = f"HCCL_DATA_TYPE_{_TYPES[rule.dtype][1]}"
    return f'{{{op}, {where}, {dtype}, {rule.least}ULL, {rule.most}ULL, "{rule.words[0]}"}}'
