"""Program files, .json and .npz: an importer like those of other tools."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_py.documents.disk import check_place, format_path
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.importers.contract import (
    Importer,
    ImportOptions,
    Source,
    SourceCall,
    SourceEntry,
    WriterOptions,
)
from hccl_py.importers.imported import Imported
from hccl_py.operators import make_operator

if TYPE_CHECKING:
    from hccl_py.call.op_param import OpParam
    from hccl_py.communicator.communicator import Communicator
    from hccl_py.program.program import Program

SUFFIXES = (".json", ".npz")


@dataclass(kw_only=True)
class ProgramFile(Source):
    """A program as its file has it."""

    program: Program

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters that the program was made for."""
        return self.program.op

    def imported(self, call: SourceCall) -> Imported:
        """Return the program."""
        return Imported(self.title, self.program)

    def describe_executor(self, program: Program | None) -> str:
        """Return the place of the file, and the executor that it names."""
        by = f", recorded by {self.executor:.200}" if self.executor else ""
        return f"{self.noun} {self.name}{by}"


class ProgramFiles(Importer):
    """Claims .json and .npz, and any other path that exists and that no other importer claims."""

    noun = "program file"
    order = 100
    writes_jobs = True

    def claims(self, path: str) -> bool:
        """Return True for the suffixes of program files and for any file."""
        return path.lower().endswith(SUFFIXES) or os.path.exists(path)

    def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
        """Return the one program of the file."""
        return [SourceEntry(path, partial(self._opened, path, options))]

    def _opened(self, path: str, options: ImportOptions) -> Source:
        from hccl_py.formats import load

        if not os.path.lexists(path):
            near = program_files_like(path)
            hint = did_you_mean(path, near) if near else "Name a .json or .npz file, or an op."
            raise ParameterError(f"There is no file {path!r}.", hint)
        program = load(path, max_bytes=options.max_bytes)
        return ProgramFile(
            noun=self.noun,
            name=format_path(path),
            title=path,
            ranks=program.ranks,
            op_name=program.op.name,
            usual_size=make_operator(program.op.name).data_size(program.op, program.ranks),
            executor=program.executor,
            has_op=program.has_op,
            program=program,
        )

    def writes(self, path: str) -> bool:
        """Return True for the suffixes of program files."""
        return Path(path).suffix.lower() in SUFFIXES

    def check_target(self, path: str) -> None:
        """Refuse a path in whose place something else than a program stands."""
        from hccl_py.formats.checks import PROGRAM

        check_place(path, PROGRAM)

    def write(self, program: Program, path: str, options: WriterOptions) -> None:
        """Save the program."""
        program.save(path)


def program_files_like(name: str) -> list[str]:
    """Return the names of program files beside a name, as it is written, that are nearest to it."""
    folder = os.path.dirname(name)
    try:
        files = [path.name for path in Path(folder or ".").iterdir() if path.suffix in SUFFIXES]
    except (OSError, ValueError):
        return []
    beside = sorted(os.path.join(folder, file) for file in files)
    near = difflib.get_close_matches(name, beside, n=4, cutoff=0.5)
    return [format_path(path) for path in near if path != name][:3]


IMPORTERS = (ProgramFiles,)
