"""Certificates: written, read, and held against what a release proves today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hccl_py.errors import FileError
from hccl_py.numerics.certificates import SCHEMA, Certificate, Proved, ProvedRange

RANGE = ProvedRange(
    first_bytes=4, last_bytes=1024, executor="Mesh", trees=("aa", "bb"), is_fixed=True
)
CALL = Proved(bytes=64, executor="Ring", elements="ee", trees=("aa",), is_fixed=True)


def certificate(
    ranges: tuple[ProvedRange, ...] = (RANGE,),
    calls: tuple[Proved, ...] = (CALL,),
    verdict: str = "",
) -> Certificate:
    return Certificate(
        call={"op": "all_reduce"},
        ruleset="cann-2026.08",
        ranges=ranges,
        calls=calls,
        verdict=verdict,
        assumed=("rounds",),
    )


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "bits.json"
    certificate().write(path)
    assert json.loads(path.read_text("utf-8"))["schema"] == SCHEMA
    assert Certificate.read(path) == certificate()
    assert Certificate.read(path).held_against(certificate()).holds


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (RANGE.model_copy(update={"trees": ("aa", "cc")}), "1 trees are gone, 1 are new"),
        (RANGE.model_copy(update={"is_fixed": False}), "added in the order of arrival"),
        (RANGE.model_copy(update={"last_bytes": 2048}), "sizes 4 to 1024 were proved"),
    ],
)
def test_other_trees_break_it(other: ProvedRange, words: str) -> None:
    found = certificate().held_against(certificate(ranges=(other,)))
    assert not found.holds
    assert words in " ".join(found.broken)


def test_another_executor_with_the_same_trees_is_told_and_breaks_nothing() -> None:
    other = RANGE.model_copy(update={"executor": "Star"})
    found = certificate().held_against(certificate(ranges=(other,)))
    assert found.holds
    assert found.notes == ("4 to 1024 bytes: Mesh is Star now, with the same trees",)


def test_the_same_trees_at_other_elements_break_it() -> None:
    moved = CALL.model_copy(update={"elements": "ff"})
    found = certificate().held_against(certificate(calls=(moved,)))
    assert found.broken == ("64 bytes: the same trees stand at other elements (Ring)",)
    assert "2 calls were proved" in str(certificate(calls=(CALL, CALL)).held_against(certificate()))
    differs = certificate(verdict="same").held_against(certificate(verdict="differ"))
    assert differs.broken == ("the verdict was same, it is differ",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1", "is no JSON|not JSON|JSON"),
        ("[]", "certificate|expected"),
        ('{"schema": "other"}', "schema: expected hccl-py.numerics-certificate/1"),
        (f'{{"schema": "{SCHEMA}"}}', "call"),
    ],
)
def test_broken_files_are_refused_in_a_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(FileError, match=words):
        Certificate.read(path)
    with pytest.raises(FileError):
        Certificate.read(tmp_path / "none.json")
