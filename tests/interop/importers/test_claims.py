"""The importers of other tools' programs claim paths without loading the modules that read them."""

import subprocess
import sys
from pathlib import Path

import pytest

from hccl_interop.importers import EXPORTERS, IMPORTERS
from hccl_py.errors import ParameterError
from hccl_py.importers import importer_of, installed_importers
from hccl_py.importers.exporter import Exporter
from hccl_py.importers.installed import installed_exporter, refuse_source

CLAIMS = {
    "ring.xml": ("", "MSCCL algorithm"),
    "RING.XML#2": ("", "MSCCL algorithm"),
    "plan.json": (
        '{"name": "x", "collective": "allreduce", "gpus": []}',
        "execution plan of mscclpp",
    ),
    "program.json": ("{}", "program file"),
    "gone.npz": (None, "program file"),
    "st.log#3": (None, "log of HCCL's checker"),
    "output": ("[ RUN      ] AllReduceTest.x\nrank id is 0", "log of HCCL's checker"),
    "notes": ("hello", "program file"),
    "all_reduce": ("an op's name goes before a file's", None),
    "gone": (None, None),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_paths_are_claimed_by_suffix_or_first_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, noun = CLAIMS[name]
    if text is not None and "#" not in name and not name.startswith("ring"):
        Path(name).write_text(text)
    found = importer_of(name)
    assert (None if found is None else found.noun) == noun


def test_folders_are_traces_or_custom_ops(tmp_path: Path) -> None:
    found = importer_of(str(tmp_path))
    assert found is not None
    assert found.noun == "custom op in C++"
    assert found.noun_of(str(tmp_path)) == "directory"
    with pytest.raises(ParameterError, match=r"explain takes an op, and .* is a directory"):
        refuse_source(str(tmp_path), "explain", "")
    (tmp_path / "step.0.et").touch()
    found = importer_of(str(tmp_path))
    assert found is not None
    assert found.noun == "Chakra trace"


def test_claiming_a_path_imports_nothing_that_reads_it(tmp_path: Path) -> None:
    code = (
        "import sys; from hccl_py.importers import importer_of\n"
        "for name in ('a.xml', 'a.log', 'a.npz', 'gone', 'all_reduce'):\n"
        "    importer_of(name)\n"
        "heavy = ('.build', '.imported', '.json_text', '.recording', '.folder', '.log')\n"
        "print(*(m for m in sys.modules if m.startswith('hccl_interop.') and m.endswith(heavy)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == []


def test_exporters_are_found_by_name() -> None:
    found = installed_exporter("cpp")
    assert isinstance(found, Exporter)
    assert "all_reduce" in found.ops
    with pytest.raises(ParameterError, match="No exporter 'fortran' is installed"):
        installed_exporter("fortran")


def test_every_importer_of_the_package_is_installed() -> None:
    assert set(IMPORTERS) <= {type(one) for one in installed_importers().known}
    assert [one.name for one in EXPORTERS] == ["cpp"]
