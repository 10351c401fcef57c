"""What nccl-tests and rccl-tests print, read as calls with times."""

from pathlib import Path

import pytest

from hccl_py.errors import FileError
from hccl_py.fit.logs.hccl_test import Command
from hccl_py.fit.logs.measured import read_log

RANKS = "".join(
    f"#  Rank {rank:2d} Group  0 Pid   71{rank:02d} on      node{rank // 2} device  {rank % 2} "
    "[0x07] An accelerator\n"
    for rank in range(4)
)
HEAD = """#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""  # noqa: E501
LOG = f"""
+ mpirun -np 2 ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 2
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
{RANKS}#
{HEAD}           0             0     float     sum      -1     3.31    0.00    0.00      0    13.07    0.00    0.00      0
     1048576        262144     float     sum      -1    45.10   23.25   40.69      0    44.80   23.41   40.96      0
node0:7100 INFO a line of the library
   134217728      33554432     float     sum      -1   1820.4   73.73  129.03      2   1815.0   73.95  129.41    N/A
     1048576        262144  bfloat16     max      -1    46.10   23.25   40.69    N/A    44.80   23.41   40.96    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 56.4321
#
# Collective test starting: broadcast_perf
#  Rank  0 Group  0 Pid   7102 on      node7 device  0 [0x07] An accelerator
#  Rank  1 Group  0 Pid   7102 on      node7 device  1 [0x0b] An accelerator
{HEAD}        1024          1024      int8    none       1     8.10   23.25   40.69      0     8.80   23.41   40.96      0
"""  # noqa: E501


@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:"])
def test_tables_begin_where_type_or_reduction_changes(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{prefix}{line}\n" for line in LOG.splitlines()))
    sums, maxima, broadcast = read_log(path)
    assert sums.command == Command("all_reduce", 4, 2, "fp32", "sum", None)
    assert [(r.bytes, r.time_us, r.why_not) for r in sums.rows] == [
        (0, 3.31, "there is no data"),
        (1 << 20, 45.10, ""),
        (1 << 27, 1820.4, "the check failed"),
    ]
    assert maxima.command == Command("all_reduce", 4, 2, "bf16", "max", None)
    assert [(r.bytes, r.time_us, r.why_not) for r in maxima.rows] == [(1 << 20, 46.10, "")]
    assert broadcast.command == Command("broadcast", 2, 2, "int8", None, 1)
    assert [(r.bytes, r.time_us) for r in broadcast.rows] == [(1024, 8.10)]


def test_without_the_devices_mpirun_says_how_many_ranks(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    row = "1024 256 half sum -1 8.10 23.25 40.69 0 8.80 23.41 40.96 0\n"
    starts = "# Collective test starting: alltoall_perf_mpi\n"
    path.write_text(f"mpirun -np 8 ./alltoall_perf_mpi -b 1K\n{starts}{HEAD}{row}")
    (table,) = read_log(path)
    assert table.command == Command("alltoall", 8, None, "fp16", "sum", None)


def test_a_time_that_no_call_takes(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(HEAD + "1024 256 half sum -1 0.00 0 0 0 8.80 23.41 40.96 0\n")
    with pytest.raises(FileError, match=r":4: the time of 1024 bytes is 0\.00 us"):
        read_log(path)
