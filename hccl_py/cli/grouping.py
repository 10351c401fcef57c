"""Dataclasses of options, spread over the signature of a command.

A command takes a group (`options.py`) as one parameter, annotated with the dataclass; `grouped`
replaces it by the group's fields in the signature that typer reads. A command that takes a part of
a group, or has other words for some of its options, says so beside the dataclass:

    call: Annotated[ProgramOptions, only(op=typer.Argument(metavar="IN"), minbytes=MINBYTES)]
    call: Annotated[CallOptions, changed(op=option("--op", "OP", "The op."))]
    call: Annotated[CallOptions, without("platform", hidden=("counts",))]

Help shows options in panels (`options.PANELS`), those of the command alone first.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import is_dataclass
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from typer.core import TyperCommand
from typer.models import ArgumentInfo

from hccl_py.cli.errors import PipeClosedError
from hccl_py.cli.help import SpokenHelp
from hccl_py.cli.options import ARGUMENTS, OWN_OPTIONS, PANELS, panel_of
from hccl_py.cli.streams import aside

_ALONE = {"--deterministic": ("true", "strict", "false"), "--in-place": ("all", "start", "slot")}
"""Options that may stand alone, which means the first of the words that may follow."""


class CallCommand(SpokenHelp, TyperCommand):
    """A command whose options may stand alone: `--deterministic` means `--deterministic true`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spell out what may be left out, then parse as usual."""
        valued = [o for p in self.params if not getattr(p, "is_flag", False) for o in p.opts]
        words = {option: _ALONE[option] for option in valued if option in _ALONE}
        try:
            return super().parse_args(ctx, _with_values(args, words))
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # a usage error that names no command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options in panels."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            found = param.get_help_record(ctx)
            if found is not None:
                is_argument = param.param_type_name == "argument"
                name = ARGUMENTS if is_argument else panel_of(param.name or "")
                panels.setdefault(name, []).append(found)
        for name in (ARGUMENTS, OWN_OPTIONS, *PANELS):
            if name in panels:
                with formatter.section(name):
                    formatter.write_dl(panels[name])


def _with_values(args: list[str], words: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Give options that stand alone the first of the words that may follow them."""
    found = []
    for argument, following in zip(args, [*args, ""][1:], strict=True):
        may_follow = words.get(argument, ())
        alone = may_follow and following.lower() not in may_follow
        found.append(f"{argument}={may_follow[0]}" if alone else argument)
    return found


class _OptionChange(NamedTuple):
    """Options of a command in place of those that a group declares; of all of its fields, or only
    of those that are named, without those in `left_out`. Help does not list those in `hidden`.
    """

    options: Mapping[str, Any]
    is_whole: bool
    left_out: Collection[str] = ()
    hidden: Collection[str] = ()


def only(**options: Any) -> _OptionChange:
    """Take these fields of a group alone, in this order; the others keep their defaults."""
    return _OptionChange(options, is_whole=False)


def changed(**options: Any) -> _OptionChange:
    """Take all fields of a group, these with other options than the group declares."""
    return _OptionChange(options, is_whole=True)


def without(*left_out: str, hidden: Collection[str] = (), **options: Any) -> _OptionChange:
    """Take the fields of a group but for some, and hide options that a command refuses with a
    sentence of its own; others as for `changed`.
    """
    return _OptionChange(options, is_whole=True, left_out=left_out, hidden=hidden)


def grouped(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a command whose dataclass parameters are replaced by their fields, one option each."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        group, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if is_dataclass(group):
            spread = list(_fields(group, *marks))
            groups[name] = group, [field.name for field in spread]
        else:
            spread = [parameter.replace(annotation=hint)]
        parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in spread]

    @wraps(command)
    def called(**given: Any) -> int | None:
        for name, (group, names) in groups.items():
            given[name] = group(**{field: given.pop(field) for field in names})
        try:
            with aside():
                status = command(**given)
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            raise PipeClosedError from None

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    del called.__wrapped__
    return called


def _fields(group: Any, change: _OptionChange | None = None) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a group's fields. Arguments have to be given, but for those in
    brackets: their defaults are for commands without them.
    """
    hints = get_type_hints(group, include_extras=True)
    parameters = inspect.signature(group).parameters
    change = change or changed()
    options = dict(change.options)
    for name in parameters if change.is_whole else options:
        if name in change.left_out:
            continue
        kind, declared = get_args(hints[name])
        option = options.get(name, declared)
        if name in change.hidden:
            option = copy(option)
            option.hidden = True
        found = parameters[name].replace(annotation=Annotated[kind, option])
        is_needed = isinstance(option, ArgumentInfo) and not (option.metavar or "").startswith("[")
        yield found.replace(default=inspect.Parameter.empty) if is_needed else found
