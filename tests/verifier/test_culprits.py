"""From many wrong rows to a few findings."""

import numpy as np
import pytest

from hccl_py.program.describe import format_ranks
from hccl_py.verifier.checks.culprits import LINES, findings_at, first_of_each
from hccl_py.verifier.checks.slices import find_slices
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Options, Subject
from tests.verifier.programs import found, written


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([3], "rank 3"),
        ([0, 1], "ranks 0 and 1"),
        ([0, 2, 5], "ranks 0, 2 and 5"),
        ([4, 5, 6], "ranks 4 to 6"),
        ([0, 1, 2, 4], "ranks 0, 1, 2 and 4"),
        ([0, 2, 4, 6, 8, 10], "ranks 0, 2, 4, 6 and 2 more"),
    ],
)
def test_ranks_in_words(ranks: list[int], words: str) -> None:
    assert format_ranks(ranks) == words


def test_the_first_row_of_every_key_in_the_order_of_rows() -> None:
    rows, key = np.array([3, 5, 8, 9]), np.array([7, 2, 7, 0])
    assert first_of_each(rows, key).tolist() == [3, 5, 9]


def test_every_line_has_its_own_findings_in_the_order_of_tasks() -> None:
    wrong = ["copy", ["IN", 0, 64], ["IN", 0, 64]]
    tasks = [[*wrong, {"source": f"a.py:{k % 2}"}] for k in range(30)]
    tasks += [[*wrong, {"source": "b.py:1"}]]
    findings = found(find_slices, written({"0": {"0": tasks}}))
    shown = [(finding.source, finding.more) for finding in findings]
    assert shown == [("a.py:0", 0), ("a.py:1", 0)] * 7 + [
        ("a.py:0", 7),
        ("a.py:1", 7),
        ("b.py:1", 0),
    ]
    assert [f.tasks[0].index for f in findings] == [*range(16), 30]


def test_no_finding_is_made_for_what_is_only_counted() -> None:
    wrong = ["copy", ["IN", 0, 64], ["IN", 0, 64]]
    tasks = [[*wrong, {"source": f"a.py:{k}"}] for k in range(3 * LINES) for _ in range(2)]
    subject = Subject(written({"0": {"0": tasks}}), Options())
    rows = subject.tasks.first[0] + subject.tasks.index
    made: list[int] = []

    def make(row: int) -> Finding:
        made.append(row)
        return subject.finding("SELF_OVERLAP", "", rows=[(row, 0)])

    findings = list(findings_at(subject, rows, make, shown=1))
    assert made == list(range(0, 2 * LINES, 2))
    assert sum(1 + finding.more for finding in findings) == len(tasks)
