"""The contract of exporters: an executor as a project in another language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from hccl_py.call.op_param import OpParam
    from hccl_py.program.program import Program
    from hccl_py.topology import Topology


class Project(Protocol):
    """A project: texts by path, the program that it stands for, the counts that it is for."""

    @property
    def files(self) -> Mapping[str, str]:
        """The texts."""

    @property
    def program(self) -> Program:
        """The program at the count of the call."""

    @property
    def least(self) -> int:
        """The smallest count of elements."""

    @property
    def most(self) -> int:
        """The largest count of elements."""

    @property
    def missing(self) -> str:
        """The part of the program that is right for this count alone; "" where there is none."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of tables: numbers of every rank that no formula gives."""


@dataclass(frozen=True)
class PluginProgram:
    """A project in a plugin: its name there, its ranks, and the counts that it is to take."""

    name: str
    project: Any
    topology: Topology
    least: int
    most: int


class Exporter(ABC):
    """A language of projects: `topology` is the product that they are for by default."""

    name: ClassVar[str]
    topology: ClassVar[str]

    @property
    @abstractmethod
    def ops(self) -> tuple[str, ...]:
        """The ops that a project can stand for."""

    @abstractmethod
    def called(self, op: OpParam, ranks: int) -> OpParam:
        """Return parameters as the functions of the language have them."""

    @abstractmethod
    def export(
        self,
        record: Callable[[int], Program],
        count: int,
        topology: Topology,
        buffer_bytes: int,
        options: str,
        name: str = "",
        engine: str = "aicpu",
    ) -> Project:
        """Return the project for what `record` records of a number of elements, with kernels for an
        engine of NPUs.

        A project with a `name` shares a process with others. `buffer_bytes` has the HCCL
        buffer, `options` are those of `hccl-py check` for the call.
        Raises NotSupportedError where the language or the engine cannot express the program.
        """

    @abstractmethod
    def difference(self, project: Any, recorded: Program) -> str | None:
        """Return the first difference between a project's program and the recording of its files
        in one sentence; None where they are the same.
        """

    @abstractmethod
    def plugin_name(self, executor: str, op: str, taken: Sequence[str]) -> str:
        """Return a name in a plugin for the program of an executor, none of those taken.

        Raises NotSupportedError for an op that plugins do not have.
        """

    @abstractmethod
    def plugin(self, programs: Sequence[PluginProgram]) -> Mapping[str, str]:
        """Return the texts, by path, of a plugin that chooses the first program that fits."""

    @abstractmethod
    def starting_project(
        self, name: str, op: str, engine: str = "aicpu", *, contest: bool = False
    ) -> dict[str, str]:
        """Return the texts, by path, of a project to start from, with kernels for an engine of
        NPUs, or in the form that a `contest` asks for; ParameterError for a bad name, and for an
        engine or op that it is not for.
        """
