"""The calls that a log of hccl_test measured: its command line says what they were, and what is
known besides says the rest.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.ops import OPS as FACTS
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.fit.logs.hccl_test import OPS, Command, LogTable
from hccl_py.topology.presets import DEFAULT_PRESET, PRESETS


def logged_call(table: LogTable, known: CallSpec) -> CallSpec:
    """Return the call that a table measured; `known` is the user's own, with an empty op for none.

    Raises ParameterError where op or ranks are said nowhere, or in two ways.
    """
    command = table.command or Command("")
    op = _op(table.where, command, known.op)
    root = command.root if FACTS[op].rooted else None  # hccl_test takes one for every op
    return replace(
        known,
        op=op,
        cluster=_cluster(table.where, command, known.cluster),
        dtype=command.dtype or known.dtype,
        reduce_op=(command.reduce_op if "reduce" in op else None) or known.reduce_op,
        root=known.root if root is None else root,
    )


def _op(where: str, command: Command, option: str) -> str:
    """Return the op's name here."""
    said, given = (OPS.get(name, name) for name in (command.program, option))
    if not said and not given:
        raise ParameterError(
            f"{where}: no command line says which op was measured.",
            "Give --op, such as --op all_reduce.",
        )
    if said and given and said != given:
        raise ParameterError(
            f"{where}: the command measures {said}, --op says {given}.", "Leave --op out."
        )
    op = said or given
    if op not in OPS.values():
        hint = did_you_mean(op, OPS.values()) or f"Those known are {', '.join(OPS.values())}."
        raise ParameterError(f"{where}: the sizes of {op} do not say its calls.", hint)
    return op


def _cluster(where: str, command: Command, known: ClusterSpec) -> ClusterSpec:
    """Return the cluster: the user's, else that of the command."""
    if _is_sized(known):
        return known
    if command.ranks is None:
        raise ParameterError(
            f"{where}: no command line says how many ranks there were.",
            "Give --ranks, or --servers and --devices.",
        )
    devices = known.devices or command.devices
    product = PRESETS[known.topology or DEFAULT_PRESET]
    if not devices or devices >= command.ranks or product.devices_per_server == devices:
        return replace(known, ranks=command.ranks, devices=None)  # the last server may be smaller
    if command.ranks % devices:
        raise ParameterError(
            f"{where}: {command.ranks} ranks do not fill servers of {devices} devices.",
            "Say where the ranks were with --rank-table.",
        )
    return replace(known, servers=command.ranks // devices, devices=devices)


def _is_sized(known: ClusterSpec) -> bool:
    """True if a cluster has a size: by numbers, or as networks and files have one."""
    sized = known.topology is not None and known.topology not in PRESETS
    numbers = (known.ranks, known.servers, known.superpods, known.rank_table)
    return sized or any(number is not None for number in numbers)
