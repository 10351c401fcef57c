"""The calls that a log of hccl_test measured: its command line says what they were, and the options
say the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hccl_py.cli.call import Request
from hccl_py.cli.options import Call
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.simulator.hccl_test_log import OPS, Command, LogTable
from hccl_py.topology.presets import DEFAULT_PRESET, PRESETS

__all__ = ["requests_of"]


def requests_of(tables: Sequence[LogTable], call: Call) -> list[Request]:
    """Return what each table measured; equal calls are one request, so that they share plans.

    Raises ParameterError where op or ranks are said nowhere, or in two ways.
    """
    for option, value in (("-b", call.minbytes), ("--counts", call.counts)):
        if value is not None:
            raise ParameterError("The log says the sizes.", f"Leave {option} out.")
    made: dict[Call, Request] = {}
    requests = []
    for table in tables:
        command = table.command or Command("")
        logged = _logged(table.where, command, call)
        if logged not in made:
            made[logged] = Request(logged)
        ranks = made[logged].topology.size
        if command.ranks is not None and command.ranks != ranks:
            raise ParameterError(
                f"{table.where}: the command has {command.ranks} ranks, the options make {ranks}.",
                "Leave --ranks out, or give --servers and --devices that are as many.",
            )
        requests.append(made[logged])
    return requests


def _logged(where: str, command: Command, call: Call) -> Call:
    op = _op(where, command, call.op)
    servers, devices = _servers(where, command, call)
    return replace(
        call,
        op=op,
        servers=servers,
        devices=devices,
        dtype=command.dtype or call.dtype,
        reduce_op=(command.reduce_op if "reduce" in op else None) or call.reduce_op,
        root=call.root if command.root is None else command.root,
        ranks=call.ranks if servers is not None or _placed(call) else command.ranks,
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


def _servers(where: str, command: Command, call: Call) -> tuple[int | None, int | None]:
    """Return servers and devices of each: those of the options, or those of the command."""
    if _placed(call):
        return call.servers, call.devices
    if command.ranks is None:
        raise ParameterError(
            f"{where}: no command line says how many ranks there were.",
            "Give --ranks, or --servers and --devices.",
        )
    devices = call.devices or command.devices
    product = PRESETS[call.topology or DEFAULT_PRESET]
    if not devices or devices >= command.ranks or product.devices_per_server == devices:
        return None, None  # the last server may be smaller
    if command.ranks % devices:
        raise ParameterError(
            f"{where}: {command.ranks} ranks do not fill servers of {devices} devices.",
            "Say where the ranks were with --rank-table.",
        )
    return command.ranks // devices, devices


def _placed(call: Call) -> bool:
    """Whether the options say how many ranks there are; networks and files have a size."""
    sized = call.topology is not None and call.topology not in PRESETS
    numbers = (call.ranks, call.servers, call.superpods, call.rank_table)
    return sized or any(number is not None for number in numbers)
