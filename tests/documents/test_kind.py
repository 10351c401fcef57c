"""Errors of a document get the file's name, and HCCL's code where there is one."""

import gc

import pytest

from hccl_py.documents.kind import named
from hccl_py.errors import FileError, ProgramFileError, RankTableError
from hccl_py.formats.checks import PROGRAM
from hccl_py.topology.rank_tables.kind import RANK_TABLE


def test_what_does_not_fit_into_memory_is_said() -> None:
    def read() -> object:
        raise MemoryError

    with pytest.raises(ProgramFileError, match=r"^a: \$: the program does not fit into memory\.\n"):
        named("a", PROGRAM, read)
    with pytest.raises(RankTableError, match=r"rank table does not fit into memory \(EI0004\)\."):
        named("a", RANK_TABLE, read)
    assert gc.isenabled()


def test_an_error_keeps_its_own_code() -> None:
    def read() -> object:
        assert not gc.isenabled()
        raise FileError("x: expected a, found b.", "Hint.", "EI0014")

    with pytest.raises(RankTableError, match=r"^a: x: expected a, found b \(EI0014\)\.") as caught:
        named("a", RANK_TABLE, read)
    assert (caught.value.code, caught.value.hint) == ("EI0014", "Hint.")
