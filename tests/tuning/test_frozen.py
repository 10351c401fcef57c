"""Files of an earlier hccl-py are read: a sweep, the journal of a killed one, a tuning table.

They were written in November 2026 by `hccl-py compare all_reduce --ranks 4` with `--out` and
`--save`; the rows of other points were taken out.
"""

import shutil
from pathlib import Path

from hccl_py.communicator.communicator import Communicator
from hccl_py.tuning.sweep import sweep
from hccl_py.tuning.table import TuningTable
from tests.tuning.evaluations import fails_at_odd_sizes, point

FROZEN = Path(__file__).parent / "frozen"
POINTS = [
    point(4096, executor="AllReduceMeshOneshotLoopExecutor"),
    point(65536, executor="AllReduceComm", levels={"level1": "ring"}),
    point(4096, executor="AllReduceComm", levels={"level1": "NHR"}),
]
TIMES = [40.132, 65.648, 40.923]


def test_an_earlier_sweep_goes_on(tmp_path: Path) -> None:
    for name in ("sweep.csv", "sweep.csv.journal"):
        shutil.copy(FROZEN / name, tmp_path / name)
    found = sweep(POINTS, tmp_path / "sweep.csv", evaluate=fails_at_odd_sizes)
    assert found.computed == 0
    assert [round(one.time_us, 3) for one in found.outcomes] == TIMES
    assert [one.executor for one in found.outcomes] == [one.executor for one in POINTS]


def test_an_earlier_tuning_table_chooses() -> None:
    table = TuningTable.read(FROZEN / "table.json")
    assert table.text() == (FROZEN / "table.json").read_text()
    [entry] = table.entries
    assert [(one.from_bytes, one.executor) for one in entry.ranges] == [
        (0, "AllReduceMeshSmallCountExecutor"),
        (262145, "AllReduceMeshOpbaseLoopExecutor"),
    ]
    comm = Communicator(ranks=4, selection=FROZEN / "table.json")
    selection, _ = comm.select(point(65536).call.param(4))
    assert selection.executor == "AllReduceMeshSmallCountExecutor"
    assert "the tuning table table.json has it for sizes from 0 to" in selection.reasons[0]
