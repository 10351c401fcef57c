"""The contract of importers: how a program that another tool wrote becomes a program here.

    class MyImporter(Importer):
        noun = "schedule of my tool"
        takes = frozenset({"minbytes", "dtype"})

        def claims(self, path: str) -> bool:
            return path.endswith(".mine")

        def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
            return [SourceEntry(path, partial(my_source, path, options))]

A package lists its importers in a tuple `IMPORTERS`, in the module that an entry point of the group
`hccl_py.importers` names. That module and `claims` are used by every command that takes a path, so
both stay light: what parses and builds is imported when an entry is opened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError

if TYPE_CHECKING:
    from hccl_py.call.op_param import OpParam
    from hccl_py.clocks.cost import CostModel
    from hccl_py.communicator.communicator import Communicator
    from hccl_py.importers.imported import Imported
    from hccl_py.program.program import Program
    from hccl_py.simulator.timeline import Timeline


class Repetition(Protocol):
    """A call that is too large to be written out, by the passes that it repeats."""

    def timed(self, simulated: Callable[[Program], Timeline], *, shares_links: bool) -> Any:
        """Return the time of the call; ParameterError where its passes are not steady."""


@dataclass(frozen=True)
class ImportOptions:
    """The call for which a source is opened; None stands for what the source says or usually has.

    `op` names an op, or a JSON file with an op's object. `size` is hccl_test's data size in bytes,
    `calls` the number of calls in a row on one set of resources, `buffsize` the HCCL buffer in
    MiB. `roofline` has the rates TFLOPS,GBPS of devices for kernels without a duration; `buffered`
    lets tasks behind a send go on without it. A file may have `max_bytes`.
    """

    op: str | None = None
    size: int | None = None
    dtype: DataType | None = None
    reduce: ReduceOp | None = None
    root: int | None = None
    calls: int = 1
    buffsize: int | None = None
    roofline: str | None = None
    buffered: bool = False
    max_bytes: int | None = None


@dataclass(frozen=True)
class SourceCall:
    """The call of a source that is imported, of a data size in bytes.

    `comm` has the ranks that it is to run on: sources with `ranks` of their own do without, unless
    `needs_comm`. `cost` is the model of the times that are wanted: it may slice messages. With
    `repeats`, a call too large to be written out has the passes that show any error of them all.
    """

    size: int
    comm: Communicator | None = None
    cost: CostModel | None = None
    repeats: bool = False


class WriterOptions(NamedTuple):
    """Options of a writer: the protocol that it names, the times that it states."""

    proto: str | None = None
    timeline: Timeline | None = None


@dataclass
class Source(ABC):
    """A program of another tool, opened for a call: its ranks, its op, its sizes.

    `name` is the path as messages show it, `title` the name of the report on it: the path with the
    number of the program where a file has several. `ranks` is None where the topology says how many
    there are; `topology` then names the product of a call that names none.
    """

    noun: str
    name: str
    title: str
    ranks: int | None
    op_name: str
    usual_size: int = 0
    """The data size in bytes of a call for which options give none."""

    executor: str = ""
    """The name of the algorithm, as the source says it."""

    needs_comm: ClassVar[bool] = False
    """True if the program cannot be imported without a communicator."""

    topology: ClassVar[str | None] = None
    is_fixed: ClassVar[bool] = True
    """True if the source is for one data size."""

    has_op: bool = True
    """False if the results cannot be judged, since the op is not known."""

    has_addresses: ClassVar[bool] = True
    """False if the program has sizes without addresses: it can be timed, not verified or run."""

    @abstractmethod
    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters of the call whose data has `size` bytes, or more up to whole
        chunks, on the ranks of `comm`.
        """

    @abstractmethod
    def imported(self, call: SourceCall) -> Imported:
        """Import a call; raises HcclError where options do not suit the source."""

    def repetition(self, size: int, cost: CostModel | None = None) -> Repetition | None:
        """Return the passes of a call that is too large to be written out; None for others."""
        return None

    def describe(self) -> str | None:
        """Return a phrase for the source where op and size are not all there is to say."""
        return None

    def describe_executor(self, program: Program | None) -> str:
        """Return the kind and the place of the source, and more where it says more."""
        return f"{self.noun} {self.name}"


class SourceError(ParameterError):
    """A source that another tool refuses, such as a compiler; `output` is the text of the tool."""

    def __init__(self, message: str, hint: str, output: str) -> None:
        super().__init__(message, hint)
        self.output = output


class SourceEntry(NamedTuple):
    """A source among those that a path names: the title of its report, the function that opens it,
    and its own name, if it has one.
    """

    title: str
    open: Callable[[], Source]
    label: str = ""


class Importer(ABC):
    """A kind of foreign programs: the paths that it claims, the options that it takes."""

    noun: ClassVar[str]
    """The name of the kind in messages: "MSCCL algorithm"."""

    takes: ClassVar[frozenset[str]] = frozenset()
    """Fields of the command line's options that sources do not say themselves; options of the place
    of the ranks are always taken where a topology is needed. All others are refused.
    """

    order: ClassVar[int] = 0
    """Importers are asked in this order; those that claim by suffix come before those that look
    into files.
    """

    writes_jobs: ClassVar[bool] = False
    writes_programs: ClassVar[bool] = True
    writer_takes: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def claims(self, path: str) -> bool:
        """Return True if a path names a source of this kind, by its suffix or its first bytes."""

    @abstractmethod
    def entries(self, path: str, options: ImportOptions) -> Sequence[SourceEntry]:
        """Return the sources that a path names, one or more; they are opened one by one."""

    def open(self, path: str, options: ImportOptions) -> Source:
        """Return the one source that a path names; ParameterError where it names several."""
        found = self.entries(path, options)
        if len(found) > 1:
            labels = ", ".join(entry.label[:80] for entry in found[:4])
            raise ParameterError(
                f"{format_path(path)} names {len(found)} programs: {labels}.",
                f"Name one by its number: {format_path(found[0].title)}.",
            )
        return found[0].open()

    def noun_of(self, path: str) -> str:
        """Return the noun for a path that `claims` takes."""
        return self.noun

    def writes(self, path: str) -> bool:
        """Return True if a path is the name of a file or folder that `write` writes."""
        return False

    def check_target(self, path: str) -> None:  # noqa: B027 - importers that do not write
        """Refuse, before the work, a path that could not be written; raises HcclError."""

    def write(self, program: Program, path: str, options: WriterOptions) -> None:
        """Write a program; raises HcclError where the format cannot express it."""
        raise NotSupportedError(f"No {self.noun} can be written.", "Choose another suffix.")


def with_article(noun: str) -> str:
    """Return "a program file", "an MSCCL algorithm"."""
    is_vowel = noun[:1].lower() in "aeiou" or noun.startswith(("MSCCL", "HCCL", "XML"))
    return f"{'an' if is_vowel else 'a'} {noun}"
