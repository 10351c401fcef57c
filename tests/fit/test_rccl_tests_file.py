"""What rccl-tests writes as CSV and JSON, read as calls with times."""

from pathlib import Path

import pytest

from hccl_py.errors import FileError
from hccl_py.fit.logs.hccl_test import Command
from hccl_py.fit.logs.measured import read_log
from hccl_py.fit.logs.time_lists import is_list

SHIFTED = """\
numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"AllReduce",1,8,8,1,0,"float","sum",0,3.31,0.00,0.00,"0"
0,"AllReduce",1,8,8,1,1048576,"float","sum",0,45.10,23.25,40.69,"0"
0,"AllReduce",1,8,8,1,1048576,"float","sum",1,44.80,23.41,40.96,"0"
0,"AllReduce",1,8,8,1,134217728,"float","sum",0,1820.4,73.73,129.03,"2"
0,"AllReduce",1,8,8,1,134217728,"float","sum",1,1815.0,73.95,129.41,"N/A"
0,"AllReduce",1,8,8,1,1048576,"bfloat16","max",0,46.10,23.25,40.69,"N/A"
"""
NAMED = """\
numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"ReduceScatter",2,16,8,2,1048576,"half","sum",0,45.10,23.25,40.69,"0"
"""
WITHOUT_MPI = """\
numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"AlltoAll",4,1048576,"uint8","none",0,45.10,23.25,40.69,"0"
"""
OLDER = """\
collective, ranks, rankspernode, gpusperrank, size, type, redop, inplace, time, algbw, busbw, #wrong
"ReduceScatter", 1, 4, 4, 1, 262144, "float", "sum", 0, 45.100000, 23.250000, 17.437500, "0"
"AllGather", 1, 4, 4, 1, 1048576, "float", "none", 0, 40.100000, 26.149000, 19.612000, "0"
"Broadcast", 1, 4, 4, 1, 1048576, "double", "none", 0, 40.100000, 26.149000, 26.149000, "0"
"""


Read = list[tuple[Command | None, list[tuple[int, float, str]]]]


def tables(tmp_path: Path, text: str, name: str = "a.csv") -> Read:
    path = tmp_path / name
    path.write_text(text)
    return [
        (table.command, [(row.bytes, row.time_us, row.why_not) for row in table.rows])
        for table in read_log(path)
    ]


@pytest.mark.parametrize("name", ["a.csv", "a.log"])
def test_rows_in_place_are_passed_over(tmp_path: Path, name: str) -> None:
    assert tables(tmp_path, SHIFTED, name) == [
        (
            Command("all_reduce", 8, None, "fp32", "sum"),
            [
                (0, 3.31, "there is no data"),
                (1 << 20, 45.10, ""),
                (1 << 27, 1820.4, "the check failed"),
            ],
        ),
        (Command("all_reduce", 8, None, "bf16", "max"), [(1 << 20, 46.10, "")]),
    ]
    assert not is_list(str(tmp_path / name))


def test_columns_of_all_versions(tmp_path: Path) -> None:
    """Sizes are those that are printed; older files have what a rank receives."""
    assert tables(tmp_path, NAMED) == [
        (Command("reduce_scatter", 16, None, "fp16", "sum"), [(1 << 20, 45.10, "")])
    ]
    assert tables(tmp_path, WITHOUT_MPI) == [
        (Command("alltoall", 4, None, "uint8", None), [(1 << 20, 45.10, "")])
    ]
    assert tables(tmp_path, OLDER) == [
        (Command("reduce_scatter", 4, None, "fp32", "sum"), [(1 << 20, 45.10, "")]),
        (Command("all_gather", 4, None, "fp32", None), [(1 << 20, 40.10, "")]),
        (Command("broadcast", 4, None, "fp64", None), [(1 << 20, 40.10, "")]),
    ]


LIST = """\
[
{"numCycle":0, "name":"ReduceScatter", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":2, \
"size":1048576, "type":"half", "redop":"sum", "inPlace":0, "time":45.1, "algBw":23.2, \
"busBw":40.69, "wrong":"0"},
{"numCycle":0, "name":"ReduceScatter", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":2, \
"size":1048576, "type":"half", "redop":"sum", "inPlace":1, "time":45.2, "algBw":23.2, \
"busBw":40.69, "wrong":"0"},
{"numCycle":0, "name":"ReduceScatter", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":2, \
"size":2097152, "type":"half", "redop":"sum", "inPlace":0, "time":90.5, "algBw":23.2, \
"busBw":40.69, "wrong":"3"}
]
"""
FRAGMENTS = """\
{"#wrong":"0","algBw":0.05,"busBw":0.08,"gpus":4,"inPlace":0,"name":"AllReduce","redop":"sum",\
"size":1024,"time":19.25,"type":"float"}
{"#wrong":"N/A","algBw":0.05,"busBw":0.08,"gpus":4,"inPlace":0,"name":"Scatter","redop":"none",\
"size":1024,"time":18.5,"type":"float"}
{"#wrong":"0","algBw":0.05,"busBw":0.08,"gpus":4,"in
"""


def test_json_of_all_versions(tmp_path: Path) -> None:
    assert tables(tmp_path, LIST, "a.json") == [
        (
            Command("reduce_scatter", 16, None, "fp16", "sum"),
            [(1 << 20, 45.1, ""), (2 << 20, 90.5, "the check failed")],
        )
    ]
    assert not is_list(str(tmp_path / "a.json"))
    assert tables(tmp_path, FRAGMENTS, "b.json") == [
        (Command("all_reduce", 4, None, "fp32", "sum"), [(1024, 19.25, "")]),
        (Command("scatter", 4, None, "fp32", None), [(4096, 18.5, "")]),
    ]
    assert not is_list(str(tmp_path / "b.json"))
    ours = tmp_path / "c.json"
    ours.write_text('[\n{"op": "all_reduce", "bytes": "1M", "time_us": 3}\n]')
    assert is_list(str(ours))


def test_where_all_is_in_place_that_counts(tmp_path: Path) -> None:
    text = "".join(line for line in NAMED.replace('"sum",0', '"sum",1').splitlines(keepends=True))
    ((_, rows),) = tables(tmp_path, text)
    assert rows == [(1 << 20, 45.10, "")]


def test_other_lists_are_lists(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("op,executor,bytes,time_us\n")
    assert is_list(str(path))
    assert is_list(str(tmp_path / "nothing.csv"))


def test_a_time_that_no_call_takes(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a\.csv:2: the time of 1048576 bytes is 0\.00 us"):
        tables(tmp_path, NAMED.replace("45.10", "0.00"))


@pytest.mark.parametrize("cell", ["²", "9" * 5000, "a" * (1 << 18), "-1", "1" + "0" * 19])
@pytest.mark.parametrize("column", [4, 5, 6])  # processes, devices, size
def test_lines_that_are_no_row_are_passed_over(tmp_path: Path, column: int, cell: str) -> None:
    header, row, *_ = SHIFTED.splitlines()
    cells = row.split(",")
    cells[column] = cell
    ((_, rows),) = tables(tmp_path, "\n".join([header, row, ",".join(cells)]))
    assert rows == [(0, 3.31, "there is no data")]


def test_json_rows_that_are_too_deep_or_no_numbers_are_passed_over(tmp_path: Path) -> None:
    row = '{"name": "AllReduce", "ranksPerNode": 8, "gpusPerRank": 1, "size": 64, "type": "float", '
    row += '"redop": "sum", "inPlace": 0, "time": 45.1, "wrong": "0", "busBw": 1.5}'
    broken = [
        row.replace("64", '"²"'),
        row.replace("64", "9" * 5000),
        row.replace("1.5", "[" * 900),
        row.replace("1.5", "[" * 5000),
    ]
    text = "[\n" + ",\n".join([row, *broken]) + "\n]\n"
    ((_, rows),) = tables(tmp_path, text, "a.json")
    assert rows == [(64, 45.1, "")]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeff" + NAMED)
    assert not is_list(str(path))
    assert tables(tmp_path, "\ufeff" + NAMED) == tables(tmp_path, NAMED)
