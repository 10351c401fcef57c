"""Plugins are validated when they are registered; a broken one does not stop the others."""

import contextlib
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from hccl_executors import EXECUTORS, MODULES
from hccl_py.errors import ParameterError, PluginError
from hccl_py.plugins.discovery import (
    Platforms,
    Registry,
    _add_platform,
    _validated,
    check_platform,
    exported,
    find_platform,
    installed_executors,
    installed_platforms,
)


class Good:
    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> Any: ...

    def orchestrate(self, op: Any, rank: Any) -> None: ...


def test_an_executor_whose_package_could_not_be_loaded_is_not_merely_unknown() -> None:
    registry = Registry(problems=[PluginError("Plugin swing: SyntaxError: line 3")])
    registry.add(Good, "here")
    with pytest.raises(ParameterError, match="'Swing' is unknown") as caught:
        registry.find("Swing")
    assert "It may be in a package that was not loaded: Plugin swing: SyntaxError" in str(
        caught.value.hint
    )
    with pytest.raises(PluginError, match="op 'all_gathr' is unknown") as wrong:
        Registry().add(variant(op="all_gathr"), "swing")
    registry.problems.append(wrong.value)
    with pytest.raises(PluginError, match="op 'all_gathr' is unknown"):
        registry.find("Odd")


def variant(**attributes: Any) -> type:
    return type("Odd", (Good,), attributes)


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (variant(op=None), "the attribute op is missing"),
        (variant(algorithm=7), "the attribute algorithm is missing"),
        (variant(order="ranks"), "order 'ranks' is unknown"),
        (variant(order=3), "order 3 is unknown"),
        (variant(op="all_gathr"), "Did you mean all_gather"),
        (variant(suits=None), "the method suits is missing"),
        (variant(orchestrate=lambda self: None), "orchestrate does not take"),
        (variant(resources=lambda self, op, rank, more: None), "resources does not take"),
        (variant(__init__=lambda self, size: None), "cannot be instantiated"),
        (42, "attribute op is missing"),
        (type("a\x1b[31m", (Good,), {}), "the name is no identifier"),
        (type("Exits", (Good,), {"__init__": lambda self: sys.exit(5)}), "SystemExit"),
        (type("Props", (Good,), {"op": property(lambda self: 1 / 0)})(), "cannot be examined"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_named(candidate: Any, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        Registry().add(candidate, "their_package")
    assert "their_package" in caught.value.message
    assert caught.value.hint


def test_names_are_unique() -> None:
    registry = Registry()
    registry.add(Good, "first")
    with pytest.raises(PluginError, match="already registered by first"):
        registry.add(Good, "second")


def test_the_built_in_executors_come_through_the_same_door() -> None:
    found = installed_executors()
    names = [name for name, r in found.executors.items() if r.package == "hccl_executors"]
    assert names == [cls.__name__ for cls in EXECUTORS]


def test_copies_are_independent() -> None:
    registry = installed_executors().copy()
    registry.add(Good, "test")
    assert "Good" not in installed_executors().executors


class Place:
    name = "place"
    clock = "wall"

    def open(self, topology: Any, config: Any, schedule: Any, group: Any) -> Any: ...


class OldPlace:
    name = "old"
    clock = "wall"

    def open(self, topology: Any, config: Any, schedule: Any) -> Any: ...


class OldestPlace:
    name = "oldest"
    clock = "wall"

    def open(self, topology: Any, ccl_bytes: int, schedule: Any) -> Any: ...


def test_platforms_are_validated_and_keep_their_names() -> None:
    found = Platforms()
    _add_platform(found, Place, "first")
    with pytest.raises(PluginError, match="place is already registered by first"):
        _add_platform(found, Place, "second")
    with pytest.raises(PluginError, match="method open is missing"):
        _add_platform(found, type("Odd", (), {"name": "odd"}), "third")
    for old in (OldPlace, OldestPlace):
        with pytest.raises(PluginError, match=f"{old.name}: open does not take") as caught:
            _add_platform(found, old, "third")
        assert "third" in caught.value.message
        assert "open(self, topology, config, schedule, group)" in caught.value.hint
        assert "config.ccl_bytes" in caught.value.hint
    assert found.known["place"] == (Place, "first")
    assert "emulated" in installed_platforms().known


def test_objects_are_platforms_as_their_classes_are() -> None:
    assert check_platform(Place(), "here") == check_platform(Place, "here") == "place"
    with pytest.raises(PluginError, match="here, platform old: open does not take"):
        check_platform(OldPlace(), "here")


def test_unknown_platforms_name_the_known_ones() -> None:
    assert find_platform("emulated").name == "emulated"
    with pytest.raises(ParameterError, match="Did you mean emulated"):
        find_platform("emulate")


def test_threads_that_load_plugins_leave_the_output_where_it_was() -> None:
    """The second is inside of load() longer than the first, unless it waits for its turn."""
    both, inside = threading.Barrier(2), []

    def load() -> object:
        inside.append(threading.current_thread())
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        if threading.current_thread() is not inside[0]:
            inside[0].join(1)
        return SimpleNamespace(PLATFORMS=())

    point: Any = SimpleNamespace(value="slow", module="slow", load=load)
    before = sys.stdout
    threads = [threading.Thread(target=exported, args=(point, "PLATFORMS")) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after, sys.stdout = sys.stdout, before
    assert after is before


def test_listed_executors_are_what_their_package_says() -> None:
    for name, record in Registry(dict(installed_executors().executors)).executors.items():
        if record.package == "hccl_executors":
            assert _validated(record.executor, "here").ops == record.ops, name
            module, *_ = MODULES[name]
            assert type(record.executor).__module__ == f"hccl_executors.{module}", name


def test_a_listed_executor_is_imported_when_it_is_asked_for() -> None:
    """Selection loads the executor that it takes, and no other."""
    code = (
        "import sys; from hccl_py.plugins.discovery import installed_executors as found; "
        "names = [r.name for r in found().for_op('all_gather')]; "
        "before = {m for m in sys.modules if m.startswith('hccl_executors.')}; "
        "print(len(names) > 20, sorted(before)); found().find('AllGatherComm').executor; "
        "print('hccl_executors.flat' in sys.modules, 'hccl_executors.stars' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True ['hccl_executors.run_proofs']\nTrue False\n"


def test_a_listed_executor_that_is_broken_is_named_when_it_is_asked_for() -> None:
    point: Any = SimpleNamespace(value="tests.plugins", module=__name__)
    registry = Registry()
    registry.add_listed("Place", ("all_gather",), point)
    assert [r.name for r in registry.for_op("all_gather")] == ["Place"]
    with pytest.raises(PluginError, match="executor 'Place'"):
        registry.find("Place").executor  # noqa: B018
