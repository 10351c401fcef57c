"""YAML as its core schema has it, to JSON's values; what else YAML has is text or a sentence."""

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.documents.kind import FileKind
from hccl_py.documents.yaml_text import MOST_BYTES, parse_yaml
from hccl_py.errors import FileError

KIND = FileKind("note", "words", FileError, text="Save as UTF-8.", depth="Flat.", digits="Short.")

TEXTS = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(value=VALUES)
def test_json_is_yaml(value: object) -> None:
    assert parse_yaml(json.dumps(value, ensure_ascii=False).encode(), KIND) == value


@given(value=VALUES)
def test_what_pyyaml_writes_is_read(value: object) -> None:
    assert parse_yaml(yaml.safe_dump(value, allow_unicode=True).encode(), KIND) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("[~, null, Null, '', ]", [None, None, None, ""]),
        ("[true, FALSE, yes, no, on, off]", [True, False, "yes", "no", "on", "off"]),
        ("[0, -12, +3, 010, 0o17, 0x1f]", [0, -12, 3, 10, 15, 31]),
        ("[1.5, .5, 1e3, -1E-2, 2.]", [1.5, 0.5, 1000.0, -0.01, 2.0]),
        ("[.inf, -.INF, .5.]", [math.inf, -math.inf, ".5."]),
        ("[1_000, 1:30, 2026-01-01, 0b1]", ["1_000", "1:30", "2026-01-01", "0b1"]),
        ("['1', \"true\"]", ["1", "true"]),
        ("a: &x [1]\nb: [*x, *x]\n", {"a": [1], "b": [[1], [1]]}),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
        ("a: {<<: {b: 1}}", {"a": {"<<": {"b": 1}}}),
        ("a: |\n  b\n  c\n", {"a": "b\nc\n"}),
        ("%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
        ("- 1\n- - 2\n  - 3\n", [1, [2, 3]]),
    ],
)
def test_the_core_schema(text: str, value: object) -> None:
    assert parse_yaml(text.encode(), KIND) == value


def test_nan_is_read() -> None:
    found: Any = parse_yaml(b".nan", KIND)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a: 1\n---\nb: 2\n", "line 2: expected one document, found a second one.", "Keep one"),
        ("a: !!str 1", "line 1: expected a value without a tag", "Leave the tag out"),
        ("! 2", "line 1: expected a value without a tag", "Leave the tag out"),
        ("\n- !Point [1]", "line 2: expected a value without a tag", "Leave the tag out"),
        ("a: *b", "line 1: expected an alias of a value before it, found nothing.", "&name"),
        ("a: &b {c: *b}", "line 1: expected an alias of a value before it, found itself.", "&"),
        ("a: [1\nb: 2", "the text is not YAML (did not find expected", "Check indentation"),
        ("a: \x07", "the text is not YAML (control characters are not allowed).", "Check inden"),
        ("a: 1\na: 2", 'line 2: expected the key "a" once, found it twice.', "Keep one"),
        ("1.5: 2", "line 1: expected a string as the key, found 1.5.", "quotes"),
        ("null: 2", "line 1: expected a string as the key, found null.", "quotes"),
        ("[1]: 2", "line 1: expected a string as the key, found a list of 1.", "quotes"),
        ("[" * 101, "$: expected at most 100 levels of nesting, found more.", "Flat."),
        ("a: " + "1" * 5000, "line 1: expected numbers of at most 19 digits", "Short."),
        ("a: " + "1" * 5000 + ".5", "line 1: expected numbers of at most 19 digits", "Short."),
    ],
)
def test_what_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(FileError) as caught:
        parse_yaml(text.encode(), KIND)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_bytes_that_are_no_utf_8_are_named() -> None:
    with pytest.raises(FileError, match=r"line 2: expected UTF-8 text, found the byte 0xff.\nSave"):
        parse_yaml(b"a: 1\nb: \xff", KIND)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\nb: [" + "*x, " * (MOST_BYTES // 4 - 10) + "]",
        "\n".join(["a0: &a0 [1]", *(f"a{k}: &a{k} [{f'*a{k - 1},' * 9}]" for k in range(1, 99))]),
        "[" + "1," * (MOST_BYTES // 2 - 1) + "]",
        "- &a b\n" * (MOST_BYTES // 7),
    ],
    ids=["aliases", "aliases of aliases", "numbers", "anchors"],
)
def test_values_are_counted_while_the_file_is_read(text: str) -> None:
    with pytest.raises(FileError, match=r"expected at most 500,000 values, found more.\nWrite a"):
        parse_yaml(text.encode(), KIND)


def test_a_number_to_the_base_of_60_is_text() -> None:
    text = "1" + ":1" * 3000
    assert parse_yaml(f"ranks: {text}".encode(), KIND) == {"ranks": text}
