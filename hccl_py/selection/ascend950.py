"""HCCL's executors for the Ascend 950 by name, and those that HCCL_ALGO leaves.

HCCL's newer selector (HCCL_USE_NEW_SELECTOR=1; three ops) strikes from its list what the engine
cannot run and what HCCL_ALGO forbids, and takes the cheapest of the rest by a cost table. The list
and the rules are here, the costs and the executors are not: so the calls are refused, and the
refusal says what is missing.

Source: hicann/hccl @09300b7, August 2026: `alg_parse.cc`, `selector_engine.cc`, and the
registrations in `src/ops`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.algo_executors import (
    ALGORITHMS_950,
    KINDS_950,
    Algorithm,
    ExecutorChoice,
    is_executors,
    parse_executors,
)
from hccl_py.call.config import Config

_ENGINES = {
    "AICPU_TS": ("Aicpu",),
    "AI_CPU": ("Aicpu",),
    "AICPU_CacheDisable": ("Aicpu",),
    "AIV": ("Aiv", "Aicpu"),
    "CCU_MS": ("CcuMS", "CcuSched", "Aicpu"),
    "CCU_SCHED": ("CcuSched", "Aicpu"),
}
"""By HCCL_OP_EXPANSION_MODE: the engines whose executors are in question, the best one first."""

_OPS = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}

_REGISTERED = {
    "all_reduce": {
        "Aicpu": "ConcurMeshTwoShotNHR ParallelMeshNHR SequenceMeshConcurNHR SoleMeshChunkTwoShot "
        "SoleMeshConcur SoleMeshOneShot SoleMeshTwoShot SoleNHR SoleNHRAicpuReduce "
        "SoleNHRTwoShotMultiLink StrictOrderedMesh",
        "Aiv": "SoleMeshOneShot SoleMeshTwoShot",
        "CcuMS": "ConcurMeshNHRMultiLink SequenceMesh2Die SoleMesh SoleMesh2Die SoleMeshOneShot",
        "CcuSched": "ConcurMeshNHRMultiLink ParallelMeshNHR SequenceMesh2Die SequenceMeshMesh "
        "SoleMesh SoleMesh2Die SoleNHR SoleNHRMultiLink",
    },
    "all_gather": {
        "Aicpu": "ConcurMeshNHR ParallelMeshNHR ParallelNHRNHR SequenceMeshConcurNHR SoleMesh "
        "SoleMeshConcur SoleNHR SoleNHRMultiLink",
        "Aiv": "SoleMesh",
        "CcuMS": "ConcurMeshNHRMultiLink SoleMesh SoleMesh2Die",
        "CcuSched": "ConcurMeshNHRMultiLink ParallelMeshNHR ParallelMeshNHRMultiLink "
        "PipeLineMeshNHR SequenceMeshMesh SoleMesh SoleMesh2Die SoleNHR SoleNHRMultiLink",
    },
    "reduce_scatter": {
        "Aicpu": "ConcurMeshNHR ParallelMeshNHR SequenceMeshConcurNHR SoleMesh SoleMeshChunk "
        "SoleMeshConcur SoleNHR SoleNHRAicpuReduce SoleNHRMultiLink StrictOrderedMesh",
        "Aiv": "SoleMesh",
        "CcuMS": "ConcurMeshNHRMultiLink PipeLineMeshNHR SoleMesh SoleMesh2Die",
        "CcuSched": "ConcurMeshNHRMultiLink ParallelMeshNHR ParallelMeshNHRMultiLink "
        "PipeLineMeshNHR SequenceMeshMesh SoleMesh SoleMesh2Die SoleNHR SoleNHRMultiLink",
    },
}
"""The executors' names behind engine and op. HCCL's filter strikes all names that do not begin with
an engine at once.
"""

_LONGEST_FIRST = sorted(ALGORITHMS_950.values(), key=len, reverse=True)


def refusal_of(op: str, config: Config) -> str:
    """Return the reason why a call on an Ascend 950 cannot be selected, with the missing part."""
    if op not in _OPS:
        return (
            f"HCCL selects {op} of the 950 by rules that hccl-py does not have; "
            "HCCL_ALGO has no say in it"
        )
    all_of, left = _names(op, _engines(config)), left_of(op, config)
    missing = "hccl-py has none of these executors, nor the cost table that chooses among them"
    if not config.algo:
        return f"{missing}: {', '.join(all_of)}"
    if not is_executors(config.algo):
        return f"HCCL_ALGO's levels name no executor of the 950, and so forbid none; {missing}"
    counts = f"HCCL_ALGO leaves {len(left)} of {len(all_of)} executors"
    return f"{counts}: {', '.join(left) or 'none, so that HCCL finds no algorithm'}; {missing}"


def left_of(op: str, config: Config) -> tuple[str, ...]:
    """Return the names of an op's executors that the settings leave; the list as it is where
    HCCL_ALGO is not in the 950's form. Empty for ops that are selected otherwise.
    """
    engines = _engines(config)
    names = _names(op, engines)
    choices = parse_executors(config.algo) if is_executors(config.algo) else ()
    for choice in reversed(choices):
        if choice.op not in ("", _OPS[op].lower()):
            continue
        prefixes = [f"{engine}{_OPS[op]}{KINDS_950[choice.kind]}" for engine in engines]
        found = [name for name in names if _fits(name, prefixes, choice)]
        if found and choice.negated:
            return tuple(name for name in names if name not in found)
        if found:
            return tuple(found)
    return names


def _engines(config: Config) -> tuple[str, ...]:
    return _ENGINES[config.op_expansion_mode or "AICPU_TS"]


def _names(op: str, engines: Sequence[str]) -> tuple[str, ...]:
    rows = _REGISTERED.get(op, {})
    return tuple(f"{e}{_OPS[op]}{rest}" for e in engines for rest in rows.get(e, "").split())


def _fits(name: str, prefixes: Sequence[str], choice: ExecutorChoice) -> bool:
    """Return True if an executor is of the kind, and has the algorithms if the choice names any."""
    rests = [name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)]
    if not rests or not choice.algorithms:
        return bool(rests)
    if not choice.negated and any(algorithm.negated for algorithm in choice.algorithms):
        return any(_matches(rest, choice.algorithms) for rest in rests)
    return "".join(ALGORITHMS_950[algorithm.name] for algorithm in choice.algorithms) in rests


def _matches(rest: str, algorithms: Sequence[Algorithm]) -> bool:
    """Return True if the algorithms of a name fit those wanted, level by level."""
    for algorithm in algorithms:
        found = next((word for word in _LONGEST_FIRST if rest.startswith(word)), "")
        if not found or (found == ALGORITHMS_950[algorithm.name]) == algorithm.negated:
            return False
        rest = rest.removeprefix(found)
    return not rest
