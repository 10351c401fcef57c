"""Files of counts: one number or one row for each rank."""

from pathlib import Path

import pytest

from hccl_py.call.counts import read_counts
from hccl_py.errors import HcclError


def written(folder: Path, text: str) -> str:
    path = folder / "counts.json"
    path.write_text(text)
    return str(path)


def test_a_number_or_a_row_for_each_rank(tmp_path: Path) -> None:
    assert read_counts(written(tmp_path, "[1, 0, 3]"), "all_gather_v") == (1, 0, 3)
    assert read_counts(written(tmp_path, "[[1, 2], [3, 4]]"), "all_to_all_v") == ((1, 2), (3, 4))


@pytest.mark.parametrize(
    ("text", "op", "words"),
    [
        ("[1]", "all_gather", "all_gather takes no --counts"),
        ("[1, true]", "all_gather_v", r"\[1\]: expected a whole number"),
        ("[[1, 2.5]]", "all_to_all_v", r"\[0\]\[1\]: expected a whole number"),
        ("[1, 2]", "all_to_all_v", r"\[0\]: expected a list"),
        ("{}", "all_gather_v", "expected a list"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, op: str, words: str) -> None:
    with pytest.raises(HcclError, match=words):
        read_counts(written(tmp_path, text), op)
