"""Amounts that differ by rank: their shapes per op, what is refused, and that they come back."""

import json
from typing import Any

import pytest

from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, from_npz, to_json, to_npz

BIG = 2**61

Members = dict[str, Any]


def document(name: str, ranks: int, members: Members) -> str:
    """Return a file whose op has some members."""
    op = {"name": name, "dtype": "int16", "reduce": "sum", "count": 3, **members}
    format_ = {"format": "hccl-py.program/1", "ranks": ranks, "link": "sdma", "exported": []}
    return json.dumps({**format_, "op": op, "buffers": {}, "tasks": {}})


GOOD: list[tuple[str, int, Members]] = [
    ("all_gather_v", 3, {"counts": [1, 0, 5]}),
    ("all_gather_v", 3, {"counts": [1, 0, 5], "displs": [9, 0, 1]}),
    ("reduce_scatter_v", 2, {"counts": [1, 2], "displs": [2, 0]}),
    ("all_to_all_v", 2, {"counts": [[0, 1], [2, 3]]}),
    ("all_to_all_v", 2, {"counts": [[0, 1], [2, 3]], "displs": [[0, 0], [0, 2]]}),
    ("all_to_all_v", 2, {"counts": [[0, 1], [2, 3]], "displs": [[0, 0, 1, 2], [0, 2, 3, 4]]}),
    ("all_to_all_v", 1, {"counts": [[7]], "displs": [[0, 1]]}),
    ("all_to_all_vc", 2, {"matrix": [[0, 1], [2, 3]]}),
    ("send_recv", 2, {}),
    ("send_recv", 3, {"pairs": [[0, 2], [2, 0]]}),
    ("batch_send_recv", 3, {"pairs": [[0, 2], [0, 2, 8], [1, 1, 0]]}),
]

TABLE = [[0, 1], [2, 3]]
BAD: list[tuple[str, Members, str, str]] = [
    ("all_gather_v", {"counts": 7}, "counts", "a list, found 7"),
    ("all_gather_v", {"counts": []}, "counts", "2 numbers, found 0 of them"),
    ("all_gather_v", {"counts": [1, 2, 3]}, "counts", "2 numbers, found 3 of them"),
    ("all_gather_v", {"counts": [1, -1]}, "counts[1]", "found -1"),
    ("all_gather_v", {"counts": [1, float("nan")]}, "counts[1]", "found NaN"),
    ("all_gather_v", {"counts": [[1], [2]]}, "counts[0]", "found a list of 1"),
    ("all_gather_v", {"counts": [BIG, 1]}, "counts", f"fewer elements, found {BIG + 1}"),
    ("all_gather_v", {"counts": [1, 1], "displs": [0]}, "displs", "2 numbers"),
    ("all_gather_v", {"counts": [1, 1], "displs": [0, BIG]}, "displs", "fewer elements"),
    ("all_gather_v", {"counts": [1, 1], "matrix": TABLE}, "matrix", "no matrix for all_gather_v"),
    ("reduce_scatter_v", {"displs": [1, 1]}, "counts", "of reduce_scatter_v, found nothing"),
    ("all_to_all_v", {"counts": [1, 2]}, "counts[0]", "a list, found 1"),
    ("all_to_all_v", {"counts": [[1, 2]]}, "counts", "2 lists, found 1 of them"),
    ("all_to_all_v", {"counts": [[1, 2], [3]]}, "counts[1]", "2 numbers, found 1"),
    ("all_to_all_v", {"counts": [[1, 2], [3, True]]}, "counts[1][1]", "found true"),
    ("all_to_all_v", {"counts": TABLE, "displs": [[0, 0], [0, 0, 0, 0]]}, "displs[1]", "2 numb"),
    ("all_to_all_v", {"counts": TABLE, "displs": [[0] * 4, [0] * 2]}, "displs[1]", "4 numbers"),
    ("all_to_all_v", {"counts": TABLE, "displs": [[0] * 3, [0] * 3]}, "displs[0]", "2 numbers"),
    ("all_to_all_v", {"counts": TABLE, "displs": [[0, BIG], [0, 0]]}, "displs", "fewer elements"),
    ("all_to_all_vc", {"matrix": [[0, BIG], [BIG, 0]]}, "matrix", "fewer elements"),
    ("all_to_all_vc", {"matrix": [[0, 1], [2, None]]}, "matrix[1][1]", "found null"),
    ("all_to_all_vc", {}, "matrix", "the matrix of all_to_all_vc, found nothing"),
    ("send_recv", {"pairs": []}, "pairs", "found a list of 0"),
    ("send_recv", {"pairs": [[0, 2]]}, "pairs[0][1]", "a rank from 0 to 1, found 2"),
    ("send_recv", {"pairs": [[0, 1, 5]]}, "pairs[0]", "[src, dst], found a list of 3"),
    ("batch_send_recv", {}, "pairs", "the pairs of batch_send_recv, found nothing"),
    ("batch_send_recv", {"pairs": [[0, 1], [1]]}, "pairs[1]", "or [src, dst, count], found"),
    ("batch_send_recv", {"pairs": [[0, 1], [1, 0, -2]]}, "pairs[1][2]", "found -2"),
    ("batch_send_recv", {"pairs": [[0, 1, BIG]] * 2}, "pairs", "fewer elements"),
    ("all_gather", {"pairs": [[0, 1]]}, "pairs", "no pairs for all_gather, found a list of 1"),
]


def tuples(value: Any) -> Any:
    """Return lists of lists as tuples of tuples."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(("name", "ranks", "members"), GOOD)
def test_amounts_come_back(name: str, ranks: int, members: Members) -> None:
    program = from_json(document(name, ranks, members))
    for member in ("counts", "displs", "matrix", "pairs"):
        assert getattr(program.op, member) == tuples(members.get(member, []))
    written = json.loads(to_json(program))["op"]
    assert {key: written[key] for key in members} == members
    assert from_npz(to_npz(program)).op == program.op


@pytest.mark.parametrize(("name", "members", "place", "part"), BAD)
def test_bad_amounts_are_named(name: str, members: Members, place: str, part: str) -> None:
    with pytest.raises(ProgramFileError) as caught:
        from_json(document(name, 2, members), "x.json")
    message = caught.value.message
    assert message.startswith(f"x.json: op.{place}: expected ")
    assert part in message
    assert caught.value.hint


def test_the_hint_names_the_ops_that_have_a_member() -> None:
    with pytest.raises(ProgramFileError) as caught:
        from_json(document("all_gather", 2, {"pairs": [[0, 1]]}))
    assert caught.value.hint == "pairs belongs to send_recv, batch_send_recv."


def test_amounts_that_nobody_stated_are_empty() -> None:
    program = from_json(document("all_gather", 2, {"counts": None, "pairs": None}))
    op = program.op
    assert op.counts == op.displs == op.matrix == op.pairs == ()
    assert "counts" not in to_json(program)
