"""The testing kit for authors of executors.

    from hccl_py.testing import check_executor

    def test_my_executor() -> None:
        check_executor(MyExecutor)

`hccl_py.testing.strategies` has hypothesis strategies, and `pytest --hccl-executors my_package`
runs the same suite on every executor of a package. Names are loaded when they are first used:
pytest imports this package at every start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hccl_py.testing.conformance import PROPERTIES as PROPERTIES
    from hccl_py.testing.conformance import ConformanceError as ConformanceError
    from hccl_py.testing.conformance import Property as Property
    from hccl_py.testing.conformance import Suite as Suite
    from hccl_py.testing.conformance import check_executor as check_executor
    from hccl_py.testing.mutation import Mutant as Mutant
    from hccl_py.testing.mutation import sync_mutants as sync_mutants
    from hccl_py.testing.schedules import choices_of as choices_of
    from hccl_py.testing.schedules import shortest as shortest

_HOMES = {
    "PROPERTIES": "hccl_py.testing.conformance",
    "ConformanceError": "hccl_py.testing.conformance",
    "Mutant": "hccl_py.testing.mutation",
    "Property": "hccl_py.testing.conformance",
    "Suite": "hccl_py.testing.conformance",
    "check_executor": "hccl_py.testing.conformance",
    "choices_of": "hccl_py.testing.schedules",
    "shortest": "hccl_py.testing.schedules",
    "sync_mutants": "hccl_py.testing.mutation",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hccl_py.testing' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
