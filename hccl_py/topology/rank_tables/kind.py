"""Rank tables as a kind of file: errors, hints, and the largest sizes."""

from hccl_py.documents.kind import FileKind
from hccl_py.errors import RankTableError

SERVERS_LIMIT = 40_000_000
"""Bytes of a rank table v1.0, v1.2 or template 2."""

LEVELS_LIMIT = 1_000_000_000
"""Bytes of a rank table v2.0."""

TABLE, CLUSTER = "EI0004", "EI0014"
"""HCCL's codes: the rank table is invalid; it contradicts the cluster."""

RANK_TABLE = FileKind(
    noun="rank table",
    parts="servers and devices",
    error=RankTableError,
    larger="A rank table v1.x has at most 40 MB, one of v2.0 at most 1 GB.",
    depth="A rank table has a list of servers with a list of devices each.",
    digits="Ids, counts and ports are small.",
    syntax="Check the file with any JSON tool: was it cut off, or does it have comments?",
    code=TABLE,
)
