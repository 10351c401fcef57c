"""Importers: those of the project claim paths cheaply, others bring theirs by entry point."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hccl_py as hccl
from hccl_py.cli import main
from hccl_py.errors import ParameterError
from hccl_py.importers import Imported, ProgramCase
from hccl_py.importers.contract import with_article
from hccl_py.importers.installed import installed_importers, writer_of
from hccl_py.importers.program_files import program_files_like
from hccl_py.verifier import Finding, Severity
from tests.recording import BY_NAME, op_of, recorded

IMPORTER = """
from functools import partial
from pathlib import Path
from hccl_py.importers import SourceEntry, Imported, Importer, Source


class OneCall(Source):
    def op(self, size, comm):
        return self.program.op

    def imported(self, call):
        return Imported(self.title, self.program, notes=("it is a recipe",))


class Recipes(Importer):
    noun = "recipe"
    takes = frozenset({"dtype"})

    def claims(self, path):
        return path.endswith(".recipe")

    def entries(self, path, options):
        return [SourceEntry(path, partial(self.read, path, options))]

    def read(self, path, options):
        import hccl_py as hccl

        executor, ranks = Path(path).read_text().split()
        comm = hccl.Communicator(ranks=int(ranks))
        op = hccl.OpParam("all_gather", 64, options.dtype or hccl.DataType.FP32)
        program = comm.plan(op, executor).program
        found = OneCall("recipe", path, path, program.ranks, "all_gather", 256, executor)
        found.program = program
        return found


IMPORTERS = (Recipes,)
"""


def lay_out(site: Path, name: str, code: str) -> None:
    """Write an installed package whose module is an entry point of importers."""
    information = site / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[hccl_py.importers]\n{name} = {name}\n")
    (site / f"{name}.py").write_text(code)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lay_out(tmp_path / "site", "recipes", IMPORTER)
    lay_out(tmp_path / "site", "broken", "IMPORTERS = (int,)")
    (tmp_path / "mine.recipe").write_text("AllGatherMeshOpbaseExecutor 4")
    return tmp_path


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process have the packages, and be in the folder."""
    monkeypatch.syspath_prepend(folder / "site")
    monkeypatch.chdir(folder)
    installed_importers.cache_clear()
    yield
    installed_importers.cache_clear()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder / "site")}
    command = [str(Path(sys.executable).parent / "hccl-py"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_package_brings_an_importer(folder: Path) -> None:
    done = run(folder, "check", "mine.recipe", "-d", "fp16")
    assert done.returncode == 0, done.stderr
    assert "mine.recipe: ok" in done.stdout
    assert "all_gather fp16 by AllGatherMeshOpbaseExecutor" in done.stdout
    assert "note: it is a recipe" in done.stdout
    assert "no importer" in done.stderr, "the broken package is named"
    done = run(folder, "simulate", "mine.recipe")
    assert "recipe mine.recipe" in done.stdout
    done = run(folder, "convert", "mine.recipe", "mine.json")
    assert done.returncode == 0, done.stderr
    assert hccl.load(folder / "mine.json").ranks == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "mine.recipe", "-r", "1"), "-r does not go with a recipe, which says that"),
        (("check", "mine.recipe", "--ranks", "4"), "--ranks does not go with a recipe"),
        (("simulate", "mine.recipe", "--ranks", "4"), "--ranks does not go with a recipe"),
        (("simulate", "mine.recipe", "--topology", "torus:3x3"), "The recipe has 4 ranks, the"),
        (("explain", "mine.recipe"), "explain takes an op, and mine.recipe is a recipe."),
        (("convert", "gone.recipes", "a.json"), "convert takes a source, and there is no file"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_options_that_an_importer_does_not_take(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_writers_are_found_by_the_name_of_the_target() -> None:
    assert writer_of("a.xml", is_job=False).noun == "MSCCL algorithm"
    assert writer_of("a.npz", is_job=True).noun == "program file"
    assert writer_of("timed", is_job=True).noun == "Chakra trace"
    with pytest.raises(ParameterError, match="A job is no MSCCL algorithm"):
        writer_of("a.xml", is_job=True)
    with pytest.raises(ParameterError, match="A program is no Chakra trace"):
        writer_of("timed", is_job=False)
    with pytest.raises(ParameterError, match="no name of a program file"):
        writer_of("a.png", is_job=False)


def finding(name: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(name=name, message="m", hint="h", severity=severity, source="a.x:3")


def mesh_of_two() -> hccl.Program:
    return recorded(BY_NAME["AllGatherMeshOpbaseExecutor"], op_of("all_gather"), 2)


def test_a_report_has_the_source_s_findings_and_explains_the_verifier_s() -> None:
    program = mesh_of_two()
    own = finding("LOST_DEPENDENCY", Severity.WARNING)
    imported = Imported("a.x", program, lambda: (own,), ("a note",))
    report = imported.report()
    assert report.ok
    assert own in report.findings
    assert report.notes[0] == "a note"
    assert imported.require() is program


def test_cases_are_verified_one_by_one_and_known_findings_are_left_out() -> None:
    program = mesh_of_two()
    seen: list[str] = []

    def explain(found: Finding) -> Finding | None:
        seen.append(found.name)
        return None

    both = [ProgramCase(program, explain), ProgramCase(program, explain, "in place")]
    imported = Imported("a.x", program, cases=lambda: iter(both))
    report = imported.report()
    assert set(report.programs) == {"", "in place"}
    assert report.findings == ()


def test_a_source_without_a_program_is_refused_with_its_worst_finding() -> None:
    findings = (finding("RUNTIME_LIMIT", Severity.WARNING), finding("LOST_DEPENDENCY"))
    imported = Imported("a.x", None, lambda: findings)
    with pytest.raises(ParameterError, match=r"a\.x:3: LOST_DEPENDENCY: m"):
        imported.require()
    assert not imported.report().ok
    assert "not verified" in imported.report().notes[-1]
    with pytest.raises(ParameterError, match=r"a\.x: no ranks were recorded"):
        Imported("a.x", None, notes=("no ranks were recorded",)).require()
    unknown = Imported("a.x", mesh_of_two(), unknown="no name")
    with pytest.raises(ParameterError, match="the op is not known: no name"):
        unknown.require_op()


def test_articles() -> None:
    assert with_article("program file") == "a program file"
    assert with_article("execution plan") == "an execution plan"
    assert with_article("MSCCL algorithm") == "an MSCCL algorithm"


def test_near_names_of_program_files(tmp_path: Path) -> None:
    (tmp_path / "ring.json").touch()
    assert program_files_like(str(tmp_path / "rings.json")) == [str(tmp_path / "ring.json")]
    assert program_files_like(str(tmp_path / "gone" / "x.json")) == []
