"""From a file or text to a RankTable: which version it is, and whose errors they are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from hccl_py.documents.checks import an_object, defect, format_value
from hccl_py.documents.disk import PathLike, format_path, read_file
from hccl_py.documents.kind import named
from hccl_py.documents.parse import parse_document
from hccl_py.errors import did_you_mean
from hccl_py.topology.rank_tables.groups import from_groups
from hccl_py.topology.rank_tables.kind import LEVELS_LIMIT, RANK_TABLE, SERVERS_LIMIT
from hccl_py.topology.rank_tables.levels import from_levels
from hccl_py.topology.rank_tables.servers import from_servers, from_superpods
from hccl_py.topology.rank_tables.table import RankTable
from hccl_py.topology.rank_tables.topology_file import Wiring, wiring_from

_SAYS_2 = re.compile(rb'"version"\s*:\s*"?2\.0')
_READERS: dict[str, Callable[[object], RankTable]] = {
    "1.0": from_servers,
    "1.2": from_superpods,
}
_VERSIONS = (*_READERS, "2.0")


def read_rank_table(
    source: PathLike | bytes, topology_file: PathLike | bytes | None = None
) -> RankTable:
    """Return the rank table of a file, or of a text that begins with a bracket, or of bytes.

    A table v2.0 may have a `topology_file` (or its text). Raises RankTableError for everything
    that is no rank table.
    """
    wiring = None if topology_file is None else _wiring(topology_file)
    name, data = _content(source, "rank table")
    return replace(named(name, RANK_TABLE, lambda: _table(data, wiring)), name=name)


def _wiring(source: PathLike | bytes) -> Wiring:
    name, data = _content(source, "topology file")
    return named(name, RANK_TABLE, lambda: wiring_from(parse_document(data, RANK_TABLE)))


def _content(source: PathLike | bytes, name: str) -> tuple[str, bytes]:
    """Return the name for errors, and the bytes."""
    if isinstance(source, bytes):
        return name, source
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return name, source.encode("utf-8", "surrogatepass")
    path = os.fspath(source)
    return f"{format_path(path):.200}", read_file(path, LEVELS_LIMIT, RANK_TABLE)


def _table(data: bytes, wiring: Wiring | None) -> RankTable:
    if len(data) > SERVERS_LIMIT and not _SAYS_2.search(data):
        raise _too_large(data)
    if not data.strip():
        raise defect("", "a rank table", "nothing", "The file is empty: is it still written?")
    document = an_object("", parse_document(data, RANK_TABLE))
    version = _version(document)
    if version == "2.0":
        return from_levels(document, wiring)
    if len(data) > SERVERS_LIMIT:
        raise _too_large(data)
    if wiring is not None:
        hint = "Leave the topology file out."
        raise defect("version", '"2.0" with a topology file', format_value(version), hint)
    return _READERS.get(version, from_groups)(document)


def _too_large(data: bytes) -> Exception:
    found = f"{len(data):,} bytes"
    return defect("", f"at most {SERVERS_LIMIT:,} bytes", found, RANK_TABLE.larger)


def _version(document: Mapping[str, object]) -> str:
    if "version" not in document and "group_list" in document:
        return "template 2"
    if "peer_list" in document and "rank_list" not in document:
        hint = "It belongs to a rank table v2.0: give both."
        raise defect("", "a rank table", "a topology file", hint)
    if "server_group_list" in document:
        hint = "It holds the tables of several jobs: write the server_list of one to a file."
        raise defect("", "a rank table", "a table of server groups", hint)
    phrase = ", ".join(f'"{version}"' for version in _VERSIONS)
    if "version" not in document:
        raise defect("version", f"one of {phrase}", "nothing", "Most tables have 1.0.")
    version = document["version"]
    plain = version if isinstance(version, str) else format_value(version)
    if plain not in _VERSIONS:
        hint = did_you_mean(plain[:20], _VERSIONS)
        raise defect("version", f"one of {phrase}", format_value(version), hint)
    return plain
