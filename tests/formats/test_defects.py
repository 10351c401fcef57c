"""What is no program file is refused in one sentence with the JSON path, fast, whatever it is."""

import copy
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded

VALID: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_reduce", "dtype": "fp32", "count": 2, "reduce": "sum"},
    "ranks": 2,
    "link": "sdma",
    "exported": ["CCL"],
    "buffers": {"0": {"IN": 8, "OUT": 8, "CCL": 8}, "1": {"IN": 8, "OUT": 8}},
    "resources": {
        "0": {"streams": 2, "local_notifies": {"0": 1, "1": 1}, "channel_notifies": {"1": 3}}
    },
    "tasks": {
        "0": {
            "0": [
                ["copy", ["IN", 0, 8], ["CCL", 0, 8], {"label": "first", "source": "a.py:1"}],
                ["read_reduce", 1, "sum", ["OUT", 0, 8], ["CCL", 0, 8]],
                ["post", 1, 0],
                ["local_post", 1, 0],
                ["compute", 1.5],
            ],
            "1": [["local_wait", 0]],
        },
        "1": {"0": [["wait", 0, 0]]},
    },
}

GENERAL: dict[str, Any] = {
    **{key: value for key, value in VALID.items() if key not in ("link", "exported", "tasks")},
    "links": [
        {"id": 4, "ranks": [0, 1], "kind": "rdma", "exports": {"0": ["CCL"], "1": []}},
        {"id": 5, "ranks": [0, 1], "kind": "sdma", "exports": {}, "notifies": 2, "plane": "x"},
    ],
    "resources": {"0": {"channel_notifies": {"link:4": 3, "link:5": 2}}},
    "tasks": {"0": {"0": [["post", "link:4", 0], ["write", "link:4", ["IN", 0, 1], ["IN", 0, 1]]]}},
}

# Where to put what, the path that the error must name, and a part of its message or hint.
BAD_VALUES: list[tuple[str, Any, str, str]] = [
    ("format", "hccl-py.program/2", "format", '"hccl-py.program/1", found "hccl-py.program/2"'),
    ("op", [], "op", "an object, found a list of 0"),
    ("op.name", "all_gater", "op.name", "all_gather"),
    ("op.dtype", "fp23", "op.dtype", "Did you mean fp32"),
    ("op.dtype", None, "op.dtype", "a data type, found null"),
    ("op.dtype", 3, "op.dtype", "a string, found 3"),
    ("op.count", True, "op.count", "a whole number, found true"),
    ("op.count", -1, "op.count", "found -1"),
    ("op.count", 2.0, "op.count", "a whole number, found 2.0"),
    ("op.count", 2**61, "op.count", "a smaller count"),
    ("op.reduce", "sun", "op.reduce", "Did you mean sum"),
    ("op.reduce", None, "op.reduce", "a reduce op, found null"),
    ("op.root", 2, "op.root", "from 0 to 1, found 2"),
    ("op.in_place", 1, "op.in_place", "true, false"),
    ("op.in_place", "there", "op.in_place", "true, false"),
    ("op.mode", "eager", "op.mode", "'op_base' or 'graph'"),
    ("op.counts", [1, 1], "op.counts", "counts belongs to all_gather_v, reduce_scatter_v, "),
    ("op.name", "all_gather_v", "op.counts", "the counts of all_gather_v, found nothing"),
    ("ranks", 0, "ranks", "from 1 to 65536, found 0"),
    ("ranks", 10**9, "ranks", "found 1000000000"),
    ("ranks", "2", "ranks", 'a whole number, found "2"'),
    ("rounds", 0, "rounds", "from 1 to"),
    ("link", "hccs", "link", "'sdma' or 'rdma'"),
    ("exported", "CCL", "exported", "a list"),
    ("exported[0]", 0, "exported[0]", "the name of a buffer, found 0"),
    ("exported", ["CCL"] * 200, "exported", "at most 127"),
    ("buffers", None, "buffers", "an object, found null"),
    ("buffers.2", {}, "buffers.2", "the number of a rank below 2"),
    ("buffers.01", {}, "buffers.01", "leading zeros"),
    ("buffers.0", 8, "buffers.0", "an object, found 8"),
    ("buffers.0.IN", 2**63, "buffers.0.IN", "found 9223372036854775808"),
    ("buffers.1.a b", -1, 'buffers.1["a b"]', "found -1"),
    ("buffers.1", {str(k): 1 for k in range(128)}, "buffers.1", "at most 127"),
    ("resources", [], "resources", "an object"),
    ("resources.0.streams", 0, "resources.0.streams", "main is one"),
    ("resources.0.streems", 1, "resources.0.streems", "Did you mean streams"),
    ("resources.0.local_notifies.x", 1, "resources.0.local_notifies.x", "a stream below"),
    ("resources.0.local_notifies.1", 1e3, "resources.0.local_notifies.1", "found 1000.0"),
    ("resources.0.channel_notifies.1", -3, "resources.0.channel_notifies.1", "found -3"),
    ("resources.0.channel_notifies.0", 3, "resources.0.channel_notifies.0", "another rank"),
    ("resources.0.channel_notifies.7", 3, "resources.0.channel_notifies.7", "found 7"),
    ("resources.0.channel_notifies.x", 3, "resources.0.channel_notifies.x", "the rank of a peer"),
    ("tasks", [], "tasks", "an object"),
    ("tasks.2", {}, "tasks.2", "the number of a rank below 2"),
    ("tasks.0.-1", [], "tasks.0.-1", "the number of a stream"),
    ("tasks.0.40000", [], "tasks.0.40000", "the number of a stream"),
    ("tasks.0.0", {}, "tasks.0.0", "a list"),
    ("tasks.0.1[0]", "copy", "tasks.0.1[0]", "a task"),
    ("tasks.0.1[0]", [], "tasks.0.1[0]", "a task, found a list of 0"),
    ("tasks.0.1[0]", [{}], "tasks.0.1[0][0]", "the name of a task"),
    ("tasks.0.1[0][0]", "local_wat", "tasks.0.1[0][0]", "Did you mean local_wait"),
    ("tasks.0.1[0][0]", [1], "tasks.0.1[0][0]", "the name of a task"),
    ("tasks.0.1[0]", ["local_wait"], "tasks.0.1[0]", '["local_wait", index], found 0 members'),
    ("tasks.0.1[0]", ["local_wait", 0, 1], "tasks.0.1[0]", "found 2 members"),
    ("tasks.0.1[0][1]", True, "tasks.0.1[0][1]", "a notify's index from 0 to 32766, found true"),
    ("tasks.0.1[0][1]", 32767, "tasks.0.1[0][1]", "found 32767"),
    ("tasks.0.0[0][1]", ["IN", 0], "tasks.0.0[0][1]", "[buffer, offset, length]"),
    ("tasks.0.0[0][1][0]", "IM", "tasks.0.0[0][1][0]", "Did you mean IN"),
    ("tasks.0.0[0][1][0]", [], "tasks.0.0[0][1][0]", "the name of a buffer"),
    ("tasks.0.0[0][1][1]", -8, "tasks.0.0[0][1][1]", "an offset in bytes from 0"),
    ("tasks.0.0[0][2][2]", -8, "tasks.0.0[0][2][2]", "a length in bytes from 0"),
    ("tasks.0.0[0][2][2]", 10**30, "tasks.0.0[0][2][2]", f"found {10**30}"),
    ("tasks.0.0[0][3]", [], "tasks.0.0[0]", "found 3 members"),
    ("tasks.0.0[0][3].lable", "x", "tasks.0.0[0][3].lable", "Did you mean label"),
    ("tasks.0.0[0][3].label", 1, "tasks.0.0[0][3].label", "a string, found 1"),
    ("tasks.0.0[0][3].source", "\ud800", "tasks.0.0[0][3].source", "surrogate"),
    ("tasks.0.0[0][3].round", -1, "tasks.0.0[0][3].round", "found -1"),
    ("tasks.0.0[0][3].dtype", "x", "tasks.0.0[0][3].dtype", "a data type"),
    ("tasks.0.0[0][3].owner", 0, "tasks.0.0[0][3].owner", "local_wait"),
    ("tasks.0.0[1][1]", 0, "tasks.0.0[1][1]", "another rank, found rank 0 itself"),
    ("tasks.0.0[1][1]", 2, "tasks.0.0[1][1]", "the rank of a peer from 0 to 1, found 2"),
    ("tasks.0.0[1][1]", "link:0", "tasks.0.0[1][1]", "the rank of a peer"),
    ("tasks.0.0[1][2]", "avg", "tasks.0.0[1][2]", "a reduce op"),
    ("tasks.0.0[1][2]", 0, "tasks.0.0[1][2]", "a reduce op, found 0"),
    ("tasks.0.0[1][3][0]", "CCL", "tasks.0.0[1][3][0]", "a buffer of rank 1"),
    ("tasks.0.0[2][2]", 0.0, "tasks.0.0[2][2]", "found 0.0"),
    ("tasks.0.0[3][1]", 10**9, "tasks.0.0[3][1]", "a stream from 0"),
    ("tasks.0.0[4][1]", math.inf, "tasks.0.0[4][1]", "found Infinity"),
    ("tasks.0.0[4][1]", math.nan, "tasks.0.0[4][1]", "found NaN"),
    ("tasks.0.0[4][1]", False, "tasks.0.0[4][1]", "microseconds"),
    ("tasks.0.0[4]", ["compute", 1, {"dtype": "int8"}], "tasks.0.0[4][2].dtype", "data type"),
    ("linx", 1, "linx", "Did you mean link"),
    ("links", [], "link", "nothing beside links"),
]

BAD_LINKS: list[tuple[str, Any, str, str]] = [
    ("links", {}, "links", "a list"),
    ("links[0]", 0, "links[0]", "an object"),
    ("links[0].id", 5, "links[1].id", "an id of its own, found 5 again"),
    ("links[0].id", -4, "links[0].id", "found -4"),
    ("links[0].ranks", [0], "links[0].ranks", "two ranks"),
    ("links[0].ranks", [1, 1], "links[0].ranks", "another rank"),
    ("links[0].ranks[1]", 2, "links[0].ranks[1]", "a rank from 0 to 1"),
    ("links[0].kind", "pcie", "links[0].kind", "'sdma' or 'rdma'"),
    ("links[0].exports.0[0]", [], "links[0].exports.0[0]", "the name of a buffer"),
    ("links[0].exports.2", [], "links[0].exports.2", "the number of a rank"),
    ("links[0].notifies", -1, "links[0].notifies", "found -1"),
    ("links[0].plane", 0, "links[0].plane", "a string"),
    ("exported", ["CCL"], "exported", "nothing beside links"),
    ("tasks.0.0[0][1]", "link:6", "tasks.0.0[0][1]", "Did you mean link:"),
    ("tasks.0.0[0][1]", "4", "tasks.0.0[0][1]", "a peer's rank or link:ID"),
    ("tasks.0.0[0][1]", 1, "tasks.0.0[0][1]", "one link between ranks 0 and 1, found 2"),
    ("tasks.0.0[1][0]", "read", "tasks.0.0[1]", "no read over an RDMA link"),
    ("resources.0.channel_notifies.1", 1, "resources.0.channel_notifies.1", "found 2 of them"),
]

BAD_TEXTS: list[tuple[str | bytes, str]] = [
    ("", r"line 1 column 1: the text is not JSON"),
    ("[]", r"\$: expected an object, found a list of 0"),
    ("3", r"\$: expected an object, found 3"),
    ("{}", r"format: expected \"hccl-py.program/1\", found nothing"),
    ('{"format": "hccl-py.program/1"}', r"op: expected a value, found nothing"),
    ('{\n"format": 1,\n}', r"line 3 column 1: the text is not JSON"),
    ('{"format": 1', r"line 1 column 13: the text is not JSON"),
    ('{"a": 1, "b": [{"c": {"x": 0, "x": 0}}]}', r'b\[0\]\.c: expected the key "x" once'),
    (b'{\n"a": "\xff"}', r"line 2: expected UTF-8 text, found the byte 0xff"),
    ('{"a": 1}'.encode("utf-16"), r"line 1: expected UTF-8 text"),
    ("[" * 100_000, r"\$: expected at most 8 levels of brackets"),
    ('{"a": ' * 100_000, r"\$: expected at most 8 levels of brackets"),
    ('{"a":\n' + "9" * 5000 + "}", r"line 2: expected numbers of at most 19 digits"),
    ('{"a": tru}', r"line 1 column 7"),
    ("\0" * 100, r"line 1 column 1"),
]

FUZZ = settings(max_examples=10 * settings().max_examples)
"""As many examples as the profile says, tenfold: they are cheap."""

PATH = r'(\$|line \d+( column \d+)?|[\w:-]+|\["[^\n]*"\])([.\[][^\n]*)?'


def put(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a document with a value at a path such as `a.0[3].b c`."""
    document = copy.deepcopy(document)
    keys = [
        int(k) if k else name for name, k in re.findall(r"([^.\[\]]+)(?<!\d\])|\[(\d+)\]", path)
    ]
    place: Any = document
    for key in keys[:-1]:
        place = place[key]
    if isinstance(place, list) and keys[-1] == len(place):
        place.append(value)
    else:
        place[keys[-1]] = value
    return document


def refusal(document: Any) -> ProgramFileError:
    """Return the error of a document that is no program."""
    text = document if isinstance(document, (str, bytes)) else json.dumps(document)
    with pytest.raises(ProgramFileError) as caught:
        from_json(text, "x.json")
    return caught.value


def check_sentence(error: ProgramFileError) -> None:
    """A sentence on one line, with a path, and a hint; printable anywhere."""
    assert re.fullmatch(rf"x\.json: {PATH}: [^\n]+\.", error.message), error.message
    assert len(error.message) < 400
    assert error.hint
    str(error).encode()


def test_the_documents_are_valid_but_for_the_change() -> None:
    assert from_json(json.dumps(VALID)).task_count == 7
    assert from_json(json.dumps(GENERAL)).task_count == 2


@pytest.mark.parametrize(("path", "value", "named", "part"), BAD_VALUES)
def test_a_bad_value_is_named(path: str, value: Any, named: str, part: str) -> None:
    error = refusal(put(VALID, path, value))
    check_sentence(error)
    assert error.message.startswith(f"x.json: {named}: ")
    assert part in str(error)


@pytest.mark.parametrize(("path", "value", "named", "part"), BAD_LINKS)
def test_a_bad_link_is_named(path: str, value: Any, named: str, part: str) -> None:
    error = refusal(put(GENERAL, path, value))
    check_sentence(error)
    assert error.message.startswith(f"x.json: {named}: ")
    assert part in str(error)


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS)
def test_a_bad_text_is_named(text: str | bytes, message: str) -> None:
    error = refusal(text)
    check_sentence(error)
    assert re.match("x.json: " + message, error.message)


def test_a_link_of_others_is_named() -> None:
    document = put(GENERAL, "ranks", 3)
    document["tasks"] = {"2": {"0": [["wait", "link:4", 0]]}}
    error = refusal(document)
    assert error.message == 'x.json: tasks.2.0[0][1]: expected a link of rank 2, found "link:4".'
    assert error.hint == "link:4 connects ranks 0 and 1."


@pytest.mark.parametrize("count", [0, 3])
def test_a_request_without_a_link_is_named(count: int) -> None:
    document = put(GENERAL, "ranks", 3)
    document |= {"tasks": {}, "resources": {"2": {"channel_notifies": {"0": count}}}}
    error = refusal(document)
    place = "resources.2.channel_notifies.0"
    expected = "one link between ranks 2 and 0, found 0 of them."
    assert error.message == f"x.json: {place}: expected {expected}"
    assert error.hint == "Add the link to links."


def test_an_op_without_a_data_type_is_named() -> None:
    document = copy.deepcopy(VALID)
    del document["op"]["dtype"]
    error = refusal(document)
    check_sentence(error)
    assert error.message == "x.json: op.dtype: expected a data type, found nothing."
    assert error.hint == "Say what all_reduce moves, such as fp32; only a barrier moves nothing."


@pytest.mark.parametrize(
    "change",
    [
        {"ranks": 65536, "tasks": {"0": {"32766": [["compute", 1]]}}},
        {"ranks": 65536, "tasks": {"0": {"0": [["local_wait", 32766]]}}},
        {"ranks": 65536, "resources": {"0": {"local_notifies": {"32766": 1}}}},
        {"ranks": 65536, "resources": {"0": {"streams": 32767}}},
        {
            "ranks": 600,
            "resources": {"0": {"channel_notifies": {str(peer): 32767 for peer in range(1, 600)}}},
        },
        {"ranks": 1, "resources": {"0": {"local_notifies": {str(s): 32767 for s in range(99)}}}},
    ],
)
def test_numbers_that_would_fill_the_memory_are_refused(change: dict[str, Any]) -> None:
    short = {**VALID, "buffers": {}, "exported": [], "tasks": {}, "resources": {}}
    started = time.process_time()
    error = refusal({**short, **change})
    check_sentence(error)
    assert "at most" in error.message
    assert time.process_time() - started < 2


# --- files that are nearly right -----------------------------------------------------------------

SEEDS: list[Any] = [
    VALID,
    GENERAL,
    *(
        json.loads(to_json(recorded(executor, op_of(name, 16), topology)))
        for executor, name, topology in (
            ("AllGatherMeshOpbaseExecutor", "all_gather", topology_of(3)),
            ("AllReduceMeshOpbaseLoopExecutor", "all_reduce", topology_of(2)),
            ("AllReduceComm", "all_reduce", topology_of(9)),
            ("AllReduceComm", "all_reduce", topology_of(servers=2, devices=1)),
        )
    ),
]

ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 3, 7, 1.5, math.nan, math.inf, 1e308),
    *(2**15 - 1, 2**16, 2**31, 2**62, 2**63, 2**64, 10**30, -(2**63)),
    *("", "0", "1", "01", "x", "link:0", "link:4", "link:5", "IN", "CCL", "sum", "copy", "read"),
    *("\ud800", "日本", "a" * 500, "a\nb", "sdma", "rdma", "graph", "fp16", "level1"),
    *([], {}, [[]], [1], [0, 1], [1, 0], {"0": 1}, {"0": {}}, {"label": "x"}, {"dtype": "int8"}),
    *(["IN", 0, 4], ["copy", ["IN", 0, 1], ["OUT", 0, 1]], ["post", 1, 0], ["local_wait", 0]),
]
KEYS = ["zz", "0", "1", "7", "link:4", "dtype", "owner", "plane", "rounds", "root", "", "\ud800"]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every node below the top."""
    items: Any = enumerate(node) if isinstance(node, list) else ()
    if isinstance(node, dict):
        items = node.items()
    for key, child in items:
        yield (*path, key)
        yield from places(child, (*path, key))


def changed(draw: Callable[[Any], Any], document: Any) -> None:
    """Change one node of a document: replace, delete, add, copy or swap."""
    found = list(places(document))
    if not found:
        return
    *parents, key = draw(st.sampled_from(found))
    place = document
    for parent in parents:
        place = place[parent]
    value = copy.deepcopy(draw(st.sampled_from(ODD)))
    action = draw(st.sampled_from(["replace", "delete", "add", "shift", "copy"]))
    if action == "replace":
        place[key] = value
    elif action == "delete":
        del place[key]
    elif action == "add" and isinstance(place, list):
        place.insert(key, value)
    elif action == "add":
        place[draw(st.sampled_from(KEYS))] = value
    elif action == "shift" and type(place[key]) is int:
        place[key] += draw(st.sampled_from([-1, 1, 5, 1000, 2**40]))
    elif action == "copy":
        other = copy.deepcopy(place[key])
        place[key] = [other, other] if draw(st.booleans()) else {"0": other}


def check_whole(program: Program) -> None:
    """A program that loads can be walked, and goes through both formats."""
    assert len(program.linked.order) <= len(program.tasks)
    text = to_json(program)
    assert to_json(from_json(text)) == text
    assert from_json(text).digest == program.digest
    assert from_npz(to_npz(program)).digest == program.digest


@FUZZ
@given(data=st.data())
def test_nearly_right_files_load_or_are_refused_in_a_sentence(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 3))):
        changed(data.draw, document)
    try:
        program = from_json(json.dumps(document), "x.json")
    except ProgramFileError as error:
        check_sentence(error)
    else:
        if program.ranks * program.streams <= 10_000:
            check_whole(program)


@FUZZ
@given(data=st.data())
def test_damaged_texts_are_refused_in_a_sentence(data: st.DataObject) -> None:
    text = bytearray(json.dumps(data.draw(st.sampled_from(SEEDS))).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    try:
        from_json(bytes(text), "x.json")
    except ProgramFileError as error:
        check_sentence(error)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_other_json_is_refused(value: Any) -> None:
    check_sentence(refusal(json.dumps(value)))


# --- large nonsense ------------------------------------------------------------------------------


def in_tasks(tasks: str) -> str:
    """Return a document with the given text in place of the tasks."""
    return json.dumps({**VALID, "tasks": 0}).replace('"tasks": 0', f'"tasks": {tasks}')


LARGE = 4_000_000


def many(item: str, last: str) -> str:
    """Return tasks of 10 MB of which the last one is bad."""
    return '{"0": {"0": [' + (item + ",") * (LARGE // (len(item) + 1)) + last + "]}}"


NONSENSE: dict[str, tuple[Callable[[], str], str]] = {
    "noise": (lambda: "lorem ipsum " * (LARGE // 12), "not JSON"),
    "brackets": (lambda: "[" * LARGE, "expected tasks"),
    "empty lists": (lambda: "[" + "[]," * (LARGE // 3) + "0]", "expected tasks"),
    "numbers": (lambda: in_tasks("[" + "1.5," * (LARGE // 4) + "0]"), "tasks: expected an object"),
    "text": (lambda: json.dumps("x" * LARGE), "expected an object"),
    "digits": (lambda: in_tasks("9" * LARGE), "19 digits"),
    "cut off": (lambda: in_tasks(many('["wait",1,0]', "0"))[:-3], "not JSON"),
    "last wait": (lambda: in_tasks(many('["wait",1,0]', '["wait",1,true]')), "[2]: "),
    "last copy": (
        lambda: in_tasks(many('["copy",["IN",0,4],["OUT",0,4]]', '["copy",["IN",0,4],[1,2,3]]')),
        "[2][0]: ",
    ),
    "last note": (
        lambda: in_tasks(many('["compute",1,{"label":"abc"}]', '["compute",1,{"label":0}]')),
        "[2].label: ",
    ),
    "keys": (
        lambda: in_tasks("{" + ",".join(f'"{k}":0' for k in range(LARGE // 12)) + "}"),
        "tasks.2: ",
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NONSENSE)
def test_large_nonsense_is_refused_soon(name: str) -> None:
    make, part = NONSENSE[name]
    text = make()
    started = time.process_time()
    error = refusal(text)
    taken = time.process_time() - started
    check_sentence(error)
    assert part in error.message
    started = time.process_time()
    json.loads("[" + "[]," * (LARGE // 3) + "0]")
    parsing = time.process_time() - started
    assert taken < 10 * parsing, f"{len(text):,} bytes took {taken / parsing:.1f} x json.loads"
