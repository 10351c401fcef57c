"""How dataclasses of options become the options of a command.

A command takes a whole group as one parameter, annotated with a dataclass (`options.py`); `grouped`
spreads the group's fields over the signature that typer reads.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

from typer.core import TyperCommand

from hccl_py.cli.errors import PipeClosedError
from hccl_py.cli.streams import aside

_ALONE = {"--deterministic": ("true", "strict", "false"), "--in-place": ("all", "start", "slot")}
"""Options that may stand alone, which means the first of the words that may follow."""


class CallCommand(TyperCommand):
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


def _with_values(args: list[str], words: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Give options that stand alone the first of the words that may follow them."""
    found = []
    for argument, following in zip(args, [*args, ""][1:], strict=True):
        may_follow = words.get(argument, ())
        alone = may_follow and following.lower() not in may_follow
        found.append(f"{argument}={may_follow[0]}" if alone else argument)
    return found


def grouped(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a command whose dataclass parameters are replaced by their fields, one option each."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        spread = _fields(groups[name]) if name in groups else [parameter]
        parameters += [
            p.replace(
                kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints.get(p.name, p.annotation)
            )
            for p in spread
        ]

    @wraps(command)
    def called(**given: Any) -> int | None:
        for name, group in groups.items():
            given[name] = group(**{f.name: given.pop(f.name) for f in fields(group)})
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


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    found = inspect.signature(group).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in found]
