"""Exceptions of an author's code in words: the line, and a hint about the expected use."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from hccl_py.errors import OrchestrationError, did_you_mean
from hccl_py.lines import format_line, is_recording_file
from hccl_py.orchestration.progress import NoProgressError
from hccl_py.plugins.executor import Executor, OpParam, Topology, Unsuitable
from hccl_py.program.describe import format_ranks
from hccl_py.values import IntArray, OutOfBoundsError

_BAD_CALL = re.compile(r"([\w.<>]+)\(\) (?:got|missing|takes)\b")
_BAD_KEYWORD = re.compile(r"got an unexpected keyword argument '(\w+)'")


def author_error(what: str, ids: IntArray, error: BaseException) -> OrchestrationError:
    """Turn an exception of an author's code into an error that names the line."""
    message = author_message(error)
    return OrchestrationError(
        f"{what}, {format_ranks(ranks_of(ids))}: {message.text} ({message.line})",
        message.hint,
        finding="OUT_OF_BOUNDS" if isinstance(error, OutOfBoundsError) else "",
        line=message.line,
        ranks=ranks_of(ids),
    )


def reason_against(executor: Executor, op: OpParam, topology: Topology) -> str:
    """Ask `suits`, and return why an executor cannot run a call; empty where it can."""
    try:
        verdict: object = executor.suits(op, topology)
    except (Exception, SystemExit) as error:
        message = author_message(error)
        return f"its suits() raised {message.text} ({message.line})"
    if isinstance(verdict, Unsuitable):
        return verdict.reason
    if not isinstance(verdict, (bool, np.bool_)):
        return f"its suits() returned a {type(verdict).__name__} instead of True or False"
    return "" if verdict else "its suits() says no"


class AuthorMessage(NamedTuple):
    """An exception in words, the author's line that led to it, and a hint."""

    text: str
    line: str
    hint: str


def author_message(error: BaseException) -> AuthorMessage:
    """Return an exception of an author's code in words."""
    place = _author_frame(error)
    line = format_line((place.frame.f_code.co_filename, place.number))
    return AuthorMessage(_format(error), line, _hint(error, place))


def _format(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, NoProgressError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def ranks_of(ids: IntArray) -> tuple[int, ...]:
    """Return the ranks of a batch as plain ints."""
    return tuple(ids.tolist())


def definition_line(function: Callable[..., object]) -> str:
    """Return the first line of an author's method; empty where it is no Python function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else format_line((code.co_filename, code.co_firstlineno))


class _AuthorFrame(NamedTuple):
    """The author's innermost frame, its line, and the frame of the function called there."""

    frame: FrameType
    number: int
    called: FrameType | None


def _author_frame(error: BaseException) -> _AuthorFrame:
    frames = list(traceback.walk_tb(error.__traceback__))
    authors = [k for k, (frame, _) in enumerate(frames) if _is_authors(frame)]
    at = authors[-1] if authors else len(frames) - 1
    frame, number = frames[at]
    return _AuthorFrame(frame, number, frames[at + 1][0] if at + 1 < len(frames) else None)


def _is_authors(frame: FrameType) -> bool:
    """True if a frame belongs neither to the recording layer nor to a library."""
    package = str(frame.f_globals.get("__name__", "")).split(".")[0]
    is_library = package == "numpy" or package in sys.stdlib_module_names
    return not is_library and not is_recording_file(frame.f_code.co_filename)


def _hint(error: BaseException, place: _AuthorFrame) -> str:
    """Return a hint for the author, or the line itself."""
    if isinstance(error, IndexError) and "only integers" in str(error):
        return "A per-rank value cannot index a numpy array: use Chunks, or int(value)."
    if "_GeneratorContextManager" in str(error) or "'Phase' object" in str(error):
        return "fork() and phase() are blocks: `with rank.flat.fork() as subs:`, then the tasks."
    if isinstance(error, AttributeError) and error.name and not place.called:
        names = [n for n in dir(error.obj) if not n.startswith("_")]
        return did_you_mean(error.name, names) + _by_index(type(error.obj))
    if isinstance(error, (AttributeError, TypeError)):
        expected = _expected(str(error), place)
        if expected:
            return expected
    line = linecache.getline(place.frame.f_code.co_filename, place.number).strip()
    return f"The line reads: {line}" if line else ""


def _by_index(kind: type) -> str:
    """Return a hint about indexing, for objects of the API that can be indexed."""
    said = inspect.getdoc(kind.__getitem__) if hasattr(kind, "__getitem__") else None
    if not said or not kind.__module__.startswith("hccl_py."):
        return ""
    given = said.removeprefix("Return ").split(";")[0].split(".")[0]
    return f" {kind.__name__.lower()}[...] is {given}."


def _expected(message: str, place: _AuthorFrame) -> str:
    """Return the signature of the function that was called wrongly; empty if it is unknown."""
    bad_call, bad_keyword = _BAD_CALL.match(message), _BAD_KEYWORD.search(message)
    if bad_call:
        callee = _named(bad_call[1], place.frame)
    else:
        callee = place.called and _running(place.called)
    signature = callee and _signature(callee)
    if not callee or not signature:
        return ""
    if bad_keyword:
        return did_you_mean(bad_keyword[1], signature.parameters)
    return f"It takes {callee.__qualname__.removesuffix('.__init__')}{signature}."


def _named(qualified: str, frame: FrameType) -> Callable[..., object] | None:
    """Return the function that a TypeError names, as seen from a frame or in the public API."""
    first, *rest = qualified.split("<locals>.")[-1].split(".")
    for scope in (frame.f_locals, frame.f_globals, dict(_public())):
        found: object = scope.get(first)
        for name in rest:
            found = getattr(found, name, None)
        if callable(found) and getattr(found, "__qualname__", "") == qualified:
            return found
    return None


def _public() -> Iterator[tuple[str, Any]]:
    import hccl_py.orchestration
    import hccl_py.plugins.executor

    for module in (hccl_py.orchestration, hccl_py.plugins.executor):
        yield from ((name, getattr(module, name)) for name in module.__all__)


def _running(frame: FrameType) -> Callable[..., object] | None:
    """Return the function that runs in a frame; operators and properties are none."""
    name = frame.f_code.co_name
    owner = frame.f_locals.get("self")
    found: object = frame.f_globals.get(name) if owner is None else getattr(type(owner), name, None)
    return found if callable(found) and not name.startswith("_") else None


def _signature(function: Callable[..., object]) -> inspect.Signature | None:
    """Return the parameters without types and `self`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    shown = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    shown = shown[1:] if shown and shown[0].name == "self" else shown
    return inspect.Signature(shown)
