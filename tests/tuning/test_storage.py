"""Rows come back as they were, from CSV, Parquet and a journal, whatever is in them."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.errors import FileError, ParameterError
from hccl_py.tuning.points import Outcome, PointRow
from hccl_py.tuning.storage import Journal, PointFile, columns_of, row_of
from tests.tuning.evaluations import doubled, point

COLUMNS = columns_of(PointRow, Outcome)
FORMATS = (".csv", ".parquet")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
outcomes = st.builds(
    Outcome,
    bytes=st.integers(0, 1 << 62),
    executor=texts,
    algorithm=st.dictionaries(texts, texts, max_size=2),
    simulated_us=st.none() | st.floats(0, allow_infinity=False),
    error=st.none() | texts.filter(bool),
)


def store(folder: Path, suffix: str = ".csv") -> PointFile:
    return PointFile.at(folder / f"sweep{suffix}", COLUMNS)


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=15)
@given(st.lists(outcomes, max_size=4))
def test_rows_come_back(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, found: list[Outcome]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = [row_of(str(at), PointRow.of(point(at, root=at)), one) for at, one in enumerate(found)]
    store(folder, suffix).write(rows)
    with Journal(store(folder, suffix)) as journal:
        for row in rows:
            journal.append(row)
    with Journal(store(folder, suffix)) as journal:
        for back in (store(folder, suffix).rows(), journal.rows):
            assert list(back) == [row["key"] for row in rows]
            for row, one in zip(back.values(), found, strict=True):
                assert Outcome(**{name: row[name] for name in Outcome.model_fields}) == one


def test_what_both_models_have_is_told_apart() -> None:
    row = row_of("k", PointRow.of(point(7, executor="Asked")), doubled(point(8)))
    assert list(row) == list(COLUMNS)
    assert (row["asked_bytes"], row["bytes"]) == (7, 8)
    assert (row["asked_executor"], row["executor"]) == ("Asked", "Doubled")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def torn() -> object:
        yield row_of("a", PointRow.of(point(1)), doubled(point(1)))
        raise KeyboardInterrupt

    store(tmp_path).write([])
    before = store(tmp_path).path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        store(tmp_path).write(torn())  # type: ignore[arg-type]
    assert store(tmp_path).path.read_bytes() == before


@pytest.mark.parametrize("torn", [b"", b"{", b'{"key": "b", "op', b"\xff"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    first, second = (row_of(key, PointRow.of(point(1)), doubled(point(1))) for key in "ab")
    with Journal(store(tmp_path)) as journal:
        journal.append(first)
        path = journal.path
    path.write_bytes(path.read_bytes() + torn)
    with Journal(store(tmp_path)) as journal:
        assert list(journal.rows) == ["a"]
        journal.append(second)
    with Journal(store(tmp_path)) as journal:
        assert list(journal.rows) == ["a", "b"]


def test_a_journal_torn_in_its_first_line_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "sweep.csv.journal").write_text('{"schema": "hccl-py.sw')
    with Journal(store(tmp_path)) as journal:
        assert journal.rows == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "other/1"}\n', r"expected the schema hccl-py.sweep/1, found 'other/1'\."),
        ("[]\n", r"journal line 1: the line is no JSON object\."),
        ('{"schema": "hccl-py.sweep/1", "columns": ["key"]}\n', r"differ in algbw_gbps, algorithm"),
    ],
)
def test_other_journals_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sweep.csv.journal").write_text(text)
    with pytest.raises(FileError, match=message), Journal(store(tmp_path)):
        pass
    assert (tmp_path / "sweep.csv.journal").read_text() == text


@pytest.mark.parametrize("data", [b"a letter", b"a letter\nto a friend", b'{"a": 1}', b"\0\1\n\2"])
def test_what_is_no_journal_is_refused_and_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "sweep.csv.journal"
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"(?s)journal.*another program"), Journal(store(tmp_path)):
        pass
    assert path.read_bytes() == data


def test_a_full_disk_is_said_and_loses_no_row_before_it(tmp_path: Path) -> None:
    first, second = (row_of(key, PointRow.of(point(1)), doubled(point(1))) for key in "ab")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(store(tmp_path)) as journal:
        journal.append(first)
        path = journal.path
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
        try:
            with pytest.raises(FileError, match=r"journal: .* written: .*\nMake room there"):
                journal.append(second)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with Journal(store(tmp_path)) as journal:
        assert list(journal.rows) == ["a"]


def test_a_bad_line_in_the_middle_of_a_journal_is_named(tmp_path: Path) -> None:
    with Journal(store(tmp_path)) as journal:
        journal.append(row_of("a", PointRow.of(point(1)), doubled(point(1))))
        path = journal.path
    head, row = path.read_text().splitlines()
    for bad, message in (("x", "line 2: the line is no JSON"), ("{}", "line 2: key is None")):
        path.write_text(f"{head}\n{bad}\n{row}\n")
        with pytest.raises(FileError, match=message), Journal(store(tmp_path)):
            pass


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_of_other_columns_are_refused(tmp_path: Path, suffix: str) -> None:
    fewer = {name: column for name, column in COLUMNS.items() if name != "tasks"}
    PointFile.at(tmp_path / f"sweep{suffix}", fewer).write([])
    with pytest.raises(FileError, match=r"the columns are not those .* differ in tasks\."):
        store(tmp_path, suffix).rows()
    PointFile.at(tmp_path / f"sweep{suffix}", dict(reversed([*COLUMNS.items()]))).write([])
    with pytest.raises(FileError, match=r"they are in another order\."):
        store(tmp_path, suffix).rows()


@pytest.mark.parametrize(
    ("suffix", "data", "message"),
    [
        (".csv", b"\xff\xfe\n", "the file is not CSV in UTF-8"),
        (".csv", b"", "the columns are not those of this sweep"),
        (".parquet", b"PAR1, but not really", "the file is not Parquet"),
        (".parquet", b"", "the file is not Parquet"),
    ],
)
def test_files_of_other_kinds_are_refused(
    tmp_path: Path, suffix: str, data: bytes, message: str
) -> None:
    store(tmp_path, suffix).path.write_bytes(data)
    with pytest.raises(FileError, match=message):
        store(tmp_path, suffix).rows()


def test_a_bad_cell_is_named(tmp_path: Path) -> None:
    store(tmp_path).write([row_of("a", PointRow.of(point(1)), doubled(point(1)))])
    path = store(tmp_path).path
    path.write_text(path.read_text().replace(",2.0,", ",two,"))
    with pytest.raises(FileError, match=r"sweep.csv line 2: simulated_us is 'two'\."):
        store(tmp_path).rows()


@pytest.mark.parametrize(("comma", "by"), [(",", ";"), (",", ",,")])
def test_a_row_of_other_cells_is_named(tmp_path: Path, comma: str, by: str) -> None:
    store(tmp_path).write([row_of("a", PointRow.of(point(1)), doubled(point(1)))])
    path = store(tmp_path).path
    head, row = path.read_text().splitlines()
    path.write_text(f"{head}\n{row.replace(comma, by)}\n")
    with pytest.raises(FileError, match=rf"line 2: the row does not have {len(COLUMNS)} cells\."):
        store(tmp_path).rows()


def test_other_suffixes_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"not written as 'sweep\.xlsx'\."):
        store(tmp_path, ".xlsx")
    with (
        pytest.raises(FileError, match="cannot be used: No such file"),
        Journal(store(tmp_path / "x")),
    ):
        pass
    (tmp_path / "sweep.csv").mkdir()
    with pytest.raises(FileError, match="cannot be read: it is a folder"):
        store(tmp_path).rows()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_pipe_is_no_sweep_and_no_journal(tmp_path: Path, suffix: str) -> None:
    sweep = store(tmp_path, suffix)
    os.mkfifo(sweep.path)
    with pytest.raises(FileError, match="cannot be read: it is a pipe"):
        sweep.rows()
    with pytest.raises(FileError, match="cannot be written: it is a pipe"):
        sweep.write([])
    os.mkfifo(f"{sweep.path}.journal")
    with (
        pytest.raises(FileError, match=r"journal: the file cannot be used: it is a pipe"),
        Journal(sweep),
    ):
        pass


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_large_file_of_zeros_is_refused_unread(tmp_path: Path, suffix: str) -> None:
    sweep = store(tmp_path, suffix)
    sweep.path.touch()
    os.truncate(sweep.path, 900_000_000)
    with pytest.raises(FileError, match="the bytes are no sweep"):
        sweep.rows()


def test_parquet_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ParameterError, match=r"(?s)needs pyarrow.*hccl-py\[parquet\]"):
        store(tmp_path, ".parquet")


def test_a_journal_is_locked_against_other_processes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.tuning.test_storage import *\n"
        "with Journal(store(Path(sys.argv[1]))): pass"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    root = Path(__file__).parents[2]
    with Journal(store(tmp_path)):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert "FileError: " in done.stderr
        assert "another process runs this sweep." in done.stderr
    subprocess.run(command, cwd=root, check=True)
    assert os.path.exists(tmp_path / "sweep.csv.journal")
