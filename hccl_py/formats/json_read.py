"""From a JSON document to a program.

Envelope and resources are pydantic models, tasks are checked as columns, from which a program is
built. Mistakes that a verifier finds are let through: undeclared streams and notifies, slices
beyond their buffers, ranks that do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hccl_py.documents.checks import a_text, an_object, at, defect, format_value
from hccl_py.documents.kind import named
from hccl_py.documents.models import checked
from hccl_py.documents.parse import parse_document
from hccl_py.formats.checks import PROGRAM, whole
from hccl_py.formats.json_notes import read_notes
from hccl_py.formats.json_rows import rows_from
from hccl_py.formats.json_tasks import columns_from
from hccl_py.formats.links import ends_from
from hccl_py.formats.memory import alternating_from, memory_from
from hccl_py.formats.models import FORMAT, FileModel
from hccl_py.formats.op import calls_from, op_from
from hccl_py.formats.requests import requests_from
from hccl_py.program.builder.columns import BuildError
from hccl_py.program.builder.layout import program_from
from hccl_py.program.limits import MAX_NAMES, MAX_NUMBER, MAX_RANKS
from hccl_py.program.program import Program
from hccl_py.program.transports import NOTIFY_NAMES


def from_json(document: str | bytes, name: str = "program") -> Program:
    """Return the program of a document in the format `hccl-py.program/1`.

    Raises ProgramFileError for everything else; its message starts with `name` and the JSON path.
    """
    return named(name, PROGRAM, lambda: _program(parse_document(document, PROGRAM)))


def _program(document: object) -> Program:
    file = _envelope(document)
    op = op_from(file.op, file.ranks)
    memory = memory_from(file.buffers, file.ranks)
    ends = ends_from(file, memory)
    requests = requests_from(file.resources, file.ranks, ends)
    rows = rows_from(file.tasks, file.ranks)
    tasks = columns_from(rows, ends, memory, op)
    labels, lines = read_notes(rows, tasks)
    away = tasks.end >= 0
    keys, counts = requests.ends
    links, sides = ends.links(np.concatenate([keys, tasks.end[away]]))
    tasks.end[away] = sides[len(keys) :]
    requests = replace(requests, ends=(sides[: len(keys)], counts))
    links = replace(links, notify_names=_notify_names(file))
    try:
        program = program_from(
            op, memory.names, memory.sizes, links, requests, tasks, labels, lines
        )
    except BuildError as error:
        path = "tasks" if error.row < 0 else rows.path(error.row)
        raise defect(path, error.expected, error.found, error.hint) from None
    return replace(
        program,
        executor=file.executor,
        rounds=_rounds(file, program.rounds),
        calls=calls_from(file.calls or []),
        protocol=file.protocol,
        engine=file.engine,
        counts_posts=file.notifies == "counting",
        alternating=alternating_from(file.alternating or [], memory.names, "alternating"),
        stream_names=_stream_names(file),
    )


def _envelope(document: object) -> FileModel:
    hint = "Its keys: format, op, ranks, link, exported (or links), buffers, resources, tasks."
    found = an_object("", document, hint).get("format")
    if found != FORMAT:
        hint = "Program files of other versions, or other files, cannot be read."
        raise defect(
            "format", f'"{FORMAT}"', "nothing" if found is None else format_value(found), hint
        )
    file = checked(FileModel, document, "")
    whole([file.ranks], lambda _: "ranks", "a number of ranks", 1, MAX_RANKS)
    a_text("executor", file.executor)
    return file


def _notify_names(file: FileModel) -> tuple[str, ...]:
    """Return the names of the first notifies of every link; HCCL's by default."""
    if file.notify_names is None:
        return NOTIFY_NAMES
    hint = "Notifies that have no name are called by their index."
    return _names("notify_names", file.notify_names, MAX_NAMES, hint)


def _stream_names(file: FileModel) -> tuple[str, ...]:
    """Return the names of the first streams; none by default."""
    hint = "Streams that have no name are called by their index."
    return _names("stream_names", file.stream_names or [], MAX_NUMBER, hint)


def _names(key: str, names: Sequence[object], most: int, hint: str) -> tuple[str, ...]:
    if len(names) > most:
        raise defect(key, f"at most {most} names", str(len(names)), hint)
    return tuple(a_text(at(key, k), name) for k, name in enumerate(names))


def _rounds(file: FileModel, used: int) -> int:
    """Return the rounds that a file states, which are those that its tasks use, or more."""
    if file.rounds is None:
        return used
    return int(whole([file.rounds], lambda _: "rounds", "a number of rounds", used)[0])
