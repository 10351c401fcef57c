"""An op's object in a file of its own."""

import json
from pathlib import Path

import pytest

from hccl_py.errors import FileError
from hccl_py.formats.op_file import op_members


def members(tmp_path: Path, found: object, ranks: int = 2) -> dict[str, object]:
    path = tmp_path / "op.json"
    path.write_text(json.dumps(found))
    return op_members(str(path), ranks)


def test_members_are_as_they_are_written(tmp_path: Path) -> None:
    for found in (
        {"name": "all_gather_v", "counts": [1, 2]},
        {"name": "reduce", "root": 1, "count": 7},
        {"name": "batch_send_recv", "pairs": [[0, 1, 4]]},
    ):
        assert members(tmp_path, found) == found


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "op.json: $: expected an object, found a list of 0."),
        ({"name": "gossip"}, 'op.json: name: expected an op, found "gossip".'),
        ({"name": "all_reduce", "dtype": "fp16"}, "op.json: dtype: expected a key of the format"),
        ({"name": "all_gather_v"}, "op.json: counts: expected the counts of all_gather_v"),
        ({"name": "all_gather_v", "counts": [1]}, "op.json: counts: expected 2 numbers"),
        ({"name": "reduce", "root": 2}, "op.json: root: expected the root's rank from 0 to 1"),
    ],
)
def test_what_is_no_op_is_refused(tmp_path: Path, found: object, message: str) -> None:
    with pytest.raises(FileError) as caught:
        members(tmp_path, found)
    assert message in caught.value.message
