"""Networks in JSON or YAML files, read within limits, refused in one sentence.

    {"ranks": [{"name": "a"}, {"name": "b"}],
     "switches": [{"name": "s", "gbps": 100}],
     "links": [{"from": "a", "to": "s", "gbps": 25, "latency_us": 1}, {"from": "b", "to": "s"}]}

docs/networks.md describes the format.
"""

from __future__ import annotations

from pathlib import Path

from hccl_py.documents.disk import PathLike, format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.models import checked
from hccl_py.documents.parse import parse_document
from hccl_py.documents.yaml_text import MOST_BYTES as MOST_YAML_BYTES
from hccl_py.documents.yaml_text import YAML, parse_yaml
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from hccl_py.topology.topology import Topology

SUFFIXES = (".json", *YAML)

MOST_BYTES = 100_000_000

_KIND = FileKind(
    noun="network",
    parts="ranks, switches and links",
    larger="A network has at most 100 MB as JSON and 4 MB as YAML.",
    depth="A network has lists of ranks, switches, links and routes.",
    digits="Rates and latencies have a few digits.",
)


def read_network(path: PathLike) -> Topology:
    """Return the topology of a JSON file, or of a YAML file where its suffix says so.

    Raises FileError for everything that is no network, with the place in the file;
    NotSupportedError for YAML where PyYAML is not installed.
    """
    is_yaml = Path(path).suffix.lower() in YAML
    data = read_file(path, MOST_YAML_BYTES if is_yaml else MOST_BYTES, _KIND)
    parse = parse_yaml if is_yaml else parse_document
    return named(
        f"{format_path(path):.200}",
        _KIND,
        lambda: topology_from(
            checked(NetworkModel, parse(data, _KIND)), format_path(Path(path).name)
        ),
    )
