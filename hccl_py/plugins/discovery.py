"""Plugins: executors and platforms of installed packages, found by entry point and validated when
they are loaded.

A package names what it exports in one tuple, `EXECUTORS` or `PLATFORMS`. A package that is broken
does not stop the others: its error is kept and shown by `hccl-py list`. One with very many
executors may have their ops by name in `EXECUTOR_OPS` as well: then each is imported when it is
asked for.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hccl_py.call.ops import OPS
from hccl_py.errors import HcclError, ParameterError, PluginError, did_you_mean
from hccl_py.operators import OPERATORS
from hccl_py.plugins.executor import ORDERS, Executor, choices_of, declarations_of, ops_of
from hccl_py.plugins.fidelity import Fidelity
from hccl_py.plugins.platforms import Platform

_LOADING = threading.RLock()

EXECUTOR_GROUP = "hccl_py.executors"
PLATFORM_GROUP = "hccl_py.platforms"

_METHODS = {"suits": ("op", "topology"), "resources": ("op", "rank"), "orchestrate": ("op", "rank")}

_OPEN = ("topology", "config", "schedule", "group")


@dataclass(frozen=True, eq=False)
class Registered:
    """An executor, the package that brought it, and its declarations: all that the framework reads
    of a class is read once, when it is registered.
    """

    name: str
    package: str
    ops: tuple[str, ...]
    load: Callable[[], Executor]

    @classmethod
    def of(cls, executor: Executor, package: str) -> Registered:
        """Return the record of an executor; it raises what its declarations do."""
        made = cls(type(executor).__name__, package, ops_of(executor), lambda: executor)
        for declaration in ("choices", "order", "zero_copy", "fidelity"):
            getattr(made, declaration)
        return made

    @cached_property
    def executor(self) -> Executor:
        """The executor."""
        return self.load()

    @cached_property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """The algorithms that it offers on each level, its default first."""
        return choices_of(self.executor)

    @cached_property
    def order(self) -> str:
        """The order of its sums."""
        return declarations_of(self.executor).order

    @cached_property
    def zero_copy(self) -> bool:
        """True if it needs user memory that all ranks have registered."""
        return declarations_of(self.executor).zero_copy

    @cached_property
    def fidelity(self) -> Fidelity:
        """Its fidelity, with the cases alone that its algorithm can meet."""
        declared = declarations_of(self.executor)
        return declared.fidelity.limited_to(self.executor.algorithm)


@dataclass
class Registry:
    """Executors by name, in the order in which their packages list them, and the errors of broken
    packages.
    """

    executors: dict[str, Registered] = field(default_factory=dict)
    problems: list[PluginError] = field(default_factory=list)

    def add(self, candidate: Any, package: str) -> Registered:
        """Validate and register an executor class or instance; PluginError names what is wrong."""
        return self._put(_validated(candidate, package))

    def add_listed(self, name: str, ops: Iterable[str], point: EntryPoint) -> None:
        """Register an executor of a package by name: it is imported and validated when its record
        is asked for more than the ops that it executes.
        """

        def load() -> Executor:
            return _validated(getattr(import_module(point.module), name), point.value).executor

        self._put(Registered(name, point.value, tuple(ops), load))

    def _put(self, registered: Registered) -> Registered:
        name, package = registered.name, registered.package
        if name in self.executors:
            raise PluginError(
                f"Plugin {package}: an executor named {name} is already registered "
                f"by {self.executors[name].package}.",
                "Give the class another name: executors are selected by it.",
            )
        self.executors[name] = registered
        return registered

    def find(self, name: str, op: str | None = None) -> Registered:
        """Return an executor by name; ParameterError names the nearest, and those of the op."""
        served = list(self.executors.values()) if op is None else self.for_op(op)
        known = [r.name for r in served]
        if name not in self.executors:
            raise self.unknown("Executor", name, known)
        found = self.executors[name]
        if found not in served:
            raise ParameterError(
                f"{name} executes {' and '.join(found.ops)}, not {op}.",
                f"For {op}: {', '.join(known)}.",
            )
        return found

    def unknown(self, what: str, name: str, known: Iterable[str]) -> HcclError:
        """Return the error of a name that is none of the known ones. Where a package could not be
        loaded, the executor may be missing for that: its error is the better one if it names the
        executor, and part of the hint if not.
        """
        for problem in self.problems:
            if ascii(name) in problem.message:
                return problem
        hint = did_you_mean(name, known, listed_by="`hccl-py list`")
        if self.problems:
            hint = f"It may be in a package that was not loaded: {self.problems[0].message} {hint}"
        return ParameterError(f"{what} {name!r} is unknown.", hint)

    def for_op(self, op: str) -> list[Registered]:
        """Return the executors of an op, and behind them those of the op that HCCL runs it as."""
        names = [op, OPS[op].runs_as] if op in OPS else [op]
        served = (r for name in names for r in self.executors.values() if name in r.ops)
        return list({r.name: r for r in served}.values())

    def with_own(self, candidate: Any) -> tuple[Registry, str]:
        """Return a registry with a caller's executor, in the place of any that has its name, and
        that name; PluginError names what is wrong with it.
        """
        registry = self.copy()
        name = candidate.__name__ if isinstance(candidate, type) else type(candidate).__name__
        registry.executors.pop(name, None)
        return registry, registry.add(candidate, "the caller").name

    def copy(self) -> Registry:
        """Return a registry that can be added to without touching this one."""
        return Registry(dict(self.executors), list(self.problems))


@cache
def installed_executors() -> Registry:
    """Load the executors of every installed package; broken packages become `problems`."""
    registry = Registry()
    for point in sorted_points(EXECUTOR_GROUP):
        try:
            listed = _attribute(point, "EXECUTOR_OPS")
            for name, ops in (listed or {}).items():
                registry.add_listed(name, ops, point)
            for candidate in () if listed else exported(point, "EXECUTORS"):
                registry.add(candidate, point.value)
        except PluginError as error:
            registry.problems.append(error)
    return registry


@dataclass
class Platforms:
    """Platforms by name with their packages, and the errors of broken packages."""

    known: dict[str, tuple[type[Platform], str]] = field(default_factory=dict)
    problems: list[PluginError] = field(default_factory=list)


@cache
def installed_platforms() -> Platforms:
    """Load the platforms of every installed package; where two have one name, the first is kept."""
    found = Platforms()
    for point in sorted_points(PLATFORM_GROUP):
        try:
            for platform in exported(point, "PLATFORMS"):
                _add_platform(found, platform, point.value)
        except PluginError as error:
            found.problems.append(error)
    return found


def _add_platform(found: Platforms, platform: Any, package: str) -> None:
    name = check_platform(platform, f"Plugin {package}")
    if name in found.known:
        raise PluginError(
            f"Plugin {package}: a platform named {name} is already registered "
            f"by {found.known[name][1]}.",
            "Give it another name: platforms are selected by it.",
        )
    found.known[name] = (platform, package)


def check_platform(platform: Any, where: str) -> str:
    """Return the name of a platform, a class or an object; PluginError where it is none, or was
    written for an older form of the contract.
    """
    name, function = getattr(platform, "name", None), getattr(platform, "open", None)
    form = f"open(self, {', '.join(_OPEN)})"
    if not isinstance(name, str) or not callable(function):
        raise PluginError(
            f"{where}, platform {platform!r:.60}: a name or the method open is missing.",
            f"A platform has name, clock and {form}.",
        )
    given = ("self", *_OPEN) if inspect.isfunction(function) else _OPEN
    try:
        inspect.signature(function).bind(*given)
    except ValueError:  # Python cannot tell
        pass
    except TypeError as error:
        raise PluginError(
            f"{where}, platform {name}: open does not take ({', '.join(_OPEN)}): {error}.",
            f"Write {form}: config.ccl_bytes are the bytes of a CCL buffer, and None is returned "
            "where this process owns no rank of the group. run returns a Work: DONE where it "
            "comes back after the run.",
        ) from None
    return name


def find_platform(name: str) -> Platform:
    """Return the platform of this name; ParameterError names the known ones."""
    found = installed_platforms()
    if name not in found.known:
        if found.problems:
            raise found.problems[0]
        raise ParameterError(f"Platform {name!r} is unknown.", did_you_mean(name, found.known))
    return found.known[name][0]()


def sorted_points(group: str) -> list[EntryPoint]:
    """Return a group's entry points, the built-in one first."""
    points = _all_points(tuple(sys.path)).select(group=group)
    return sorted(points, key=lambda point: (point.name != "builtin", point.name))


@lru_cache(maxsize=1)
def _all_points(path: tuple[str, ...]) -> Any:
    """Read the entry points of every package on the path, once for all groups; the class of what
    holds them depends on Python's version.
    """
    return entry_points()


def _attribute(point: EntryPoint, name: str) -> Any:
    """Load a plugin package and return what it has by a name; None where it has nothing."""
    try:
        # A plugin's output is not part of the results. One thread at a time: another one would take
        # the diverted output for the true one, and put that back.
        with _LOADING, redirect_stdout(sys.stderr):
            return getattr(point.load(), name, None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(
            f"Plugin {point.value} cannot be imported: {type(error).__name__}: {error}",
            "Fix or uninstall the package; "
            f"`python -c 'import {point.module}'` shows where it fails.",
        ) from error


def exported(point: EntryPoint, name: str) -> Iterable[Any]:
    """Load a plugin package and return its tuple."""
    exported = _attribute(point, name)
    if not isinstance(exported, tuple):
        if exported is None:
            message = f"Plugin {point.value} has no tuple {name}."
        else:
            message = f"Plugin {point.value}: {name} is no tuple, but a {type(exported).__name__}."
        hint = f"Write {name} = (MyClass, ...) in the package that the entry point names."
        raise PluginError(message, hint)
    return exported


def _validated(candidate: Any, package: str) -> Registered:
    """Check an executor, or its class, against the contract and return its record."""
    name = getattr(candidate, "__name__", type(candidate).__name__)
    where = f"Plugin {package}, executor {name!a}"
    try:
        return Registered.of(_checked(candidate, where), package)
    except (PluginError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginError(
            f"{where} cannot be examined: {type(error).__name__}: {error}",
            "op and algorithm are plain strings, suits, resources and orchestrate plain methods.",
        ) from error


def _checked(candidate: Any, where: str) -> Executor:
    name = candidate.__name__ if inspect.isclass(candidate) else type(candidate).__name__
    if not name.isidentifier():
        raise PluginError(f"{where}: the name is no identifier.", "Executors are selected by it.")
    ops = getattr(candidate, "op", None)
    for attribute, kinds in (("op", (str, tuple)), ("algorithm", str)):
        if not isinstance(getattr(candidate, attribute, None), kinds):
            raise PluginError(
                f"{where}: the attribute {attribute} is missing.",
                f'Add {attribute} = "..." to the class.',
            )
    order, _, fidelity, _ = declarations_of(candidate)
    if order not in ORDERS:
        raise PluginError(
            f"{where}: order {order!r} is unknown.", f"One of {', '.join(ORDERS)}, or leave it out."
        )
    if not isinstance(fidelity, Fidelity):
        raise PluginError(
            f"{where}: fidelity {fidelity!r} is none.",
            "Write fidelity = same(source), steps(deviation, source) or ours(deviation), "
            "or leave it out.",
        )
    for op in ops if isinstance(ops, tuple) else (ops,):
        if op not in OPERATORS:
            raise PluginError(f"{where}: op {op!r} is unknown.", did_you_mean(str(op), OPERATORS))
    if not ops:
        raise PluginError(f"{where}: it executes no op.", 'Name one: op = "all_gather".')
    if inspect.isclass(candidate):
        try:
            candidate = candidate()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{where} cannot be instantiated: {type(error).__name__}: {error}",
                "Executors take no arguments.",
            ) from error
    for method, parameters in _METHODS.items():
        _check_method(candidate, method, parameters, where)
    executor: Executor = candidate
    return executor


def _check_method(executor: Any, method: str, parameters: tuple[str, ...], where: str) -> None:
    function = getattr(executor, method, None)
    if not callable(function):
        raise PluginError(
            f"{where}: the method {method} is missing.",
            f"def {method}(self, {', '.join(parameters)}): ...",
        )
    if _named_parameters(function) == ("self", *parameters):
        return
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        raise PluginError(
            f"{where}: {method} does not take ({', '.join(parameters)}): {error}.",
            f"def {method}(self, {', '.join(parameters)}): ...",
        ) from None


def _named_parameters(function: Any) -> tuple[str, ...] | None:
    """Return the parameters of a method that has no others; None for any other callable. A
    signature costs ten times as much, for the methods of hundreds of executors.
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_kwonlyargcount or not inspect.ismethod(function):
        return None
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names
