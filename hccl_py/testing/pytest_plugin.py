"""The pytest plugin: `pytest --hccl-executors my_package` runs the conformance suite on every
executor of a package, one test per executor and property.

    my_package::MyExecutor[semantics]

It needs no test files. pytest imports this module at every start, so nothing else of hccl-py is
imported before the option is given.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hccl_py.testing.conformance import Property, Suite

OPTION = "--hccl-executors"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("hccl-py").addoption(
        OPTION,
        action="append",
        default=[],
        metavar="PACKAGE",
        help="run hccl-py's conformance suite on every executor of a package, "
        "those in its tuple EXECUTORS; several with commas, or by repeating the option",
    )


@pytest.hookimpl(tryfirst=True)  # so that -k and the like see these tests, too
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add the tests of every package that the option names."""
    given = ",".join(session.config.getoption(OPTION)).split(",")
    for name in dict.fromkeys(part.strip() for part in given if part.strip()):
        package = Package.from_parent(session, name=name, nodeid=name)
        found = list(package.collect())
        report = pytest.CollectReport(name, "passed", None, [*found])
        session.ihook.pytest_collectreport(report=report)  # so that pytest counts them
        items += found


class Package(pytest.Collector):
    """A package with executors."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one test per executor and property."""
        from hccl_py.testing.conformance import PROPERTIES, Suite

        for executor in executors_of(self.name):
            suite = suite_of(executor, self.name, Suite)
            for chosen in PROPERTIES:
                name = f"{suite.name}[{chosen.name}]"
                yield Conformance.from_parent(self, name=name, suite=suite, chosen=chosen)


class Conformance(pytest.Item):
    """One property of one executor."""

    def __init__(self, *, suite: Suite, chosen: Property, **rest: Any) -> None:
        super().__init__(**rest)
        self.suite = suite
        self.chosen = chosen

    def runtest(self) -> None:
        """Check the property."""
        from hccl_py.testing.conformance import InapplicableError

        try:
            self.chosen.check(self.suite)
        except InapplicableError as error:
            pytest.skip(str(error))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the suite's text; only a defect of hccl-py itself gets a traceback."""
        from hccl_py.testing.conformance import ConformanceError

        if isinstance(excinfo.value, ConformanceError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Return the place of the test, for pytest's headings."""
        return self.parent.name if self.parent else "", None, self.name


def executors_of(package: str) -> tuple[Any, ...]:
    """Import a package, from the current folder too, and return its executors.

    Raises UsageError.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(package)
    except (Exception, SystemExit) as error:
        raise pytest.UsageError(
            f"{OPTION} {package}: cannot be imported: {type(error).__name__}: {error}"
        ) from error
    exported = getattr(module, "EXECUTORS", None)
    if not isinstance(exported, tuple) or not exported:
        raise pytest.UsageError(
            f"{OPTION} {package}: {package} has no executors: "
            "it needs EXECUTORS = (MyClass, ...), a tuple."
        )
    return exported


def suite_of(executor: Any, package: str, make: type[Suite]) -> Suite:
    """Return the suite for an executor of a package. Raises UsageError for another object."""
    from hccl_py.errors import HcclError

    try:
        return make(executor)
    except HcclError as error:
        raise pytest.UsageError(f"{OPTION} {package}: {error}") from error
