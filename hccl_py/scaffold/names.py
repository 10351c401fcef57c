"""The names in a new project: of the class, its package, its distribution."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass

from hccl_py import orchestration
from hccl_py.errors import ParameterError
from hccl_py.plugins import executor
from hccl_py.plugins.discovery import installed_executors

LONGEST = 80
"""Characters of a class name: it has to fit a line of code and a file name."""

_CLASS = re.compile("[A-Z][A-Za-z0-9]*")
_WORDS = re.compile("[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[0-9]+")


@dataclass(frozen=True)
class Names:
    """The names of a project's class, package and distribution."""

    executor: str

    @property
    def package(self) -> str:
        """The package to import, and the project's folder."""
        return _snake(self.executor)

    @property
    def project(self) -> str:
        """The distribution to install."""
        return self.package.replace("_", "-")


def names_of(name: str) -> Names:
    """Return the names of a project for an executor; ParameterError where one cannot be used."""
    if not _CLASS.fullmatch(name) or len(name) > LONGEST:
        raise ParameterError(
            f"{name!r} is no name for an executor.",
            f"Executors are classes: up to {LONGEST} letters and digits, "
            f"such as {_class_style(name)}.",
        )
    _check_class(name)
    names = Names(name)
    _check_package(names)
    return names


def _check_class(name: str) -> None:
    """Refuse names of Python, of hccl_py and of installed executors."""
    if keyword.iskeyword(name) or hasattr(builtins, name):
        raise ParameterError(f"{name} is a name of Python itself.", f"For example {name}Executor.")
    if name in {*executor.__all__, *orchestration.__all__}:
        raise ParameterError(
            f"{name} is a name that executors import from hccl_py.", f"For example My{name}."
        )
    taken = installed_executors().executors.get(name)
    if taken is not None:
        raise ParameterError(
            f"An executor named {name} is installed already, by {taken.package}.",
            "Give another name: executors are selected by it.",
        )


def _check_package(names: Names) -> None:
    """Refuse package names that would hide another module, or be hidden by it."""
    package = names.package
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        owner = "a word of Python itself"
    elif importlib.util.find_spec(package) is not None:
        owner = "a module that is installed already"
    else:
        return
    raise ParameterError(
        f"{names.executor} would be in a package {package}, which is {owner}.",
        f"Give a longer name, such as {names.executor}Executor.",
    )


def _snake(name: str) -> str:
    """Return MyRing2 as my_ring2."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return re.sub(r"_(?=[0-9])", "", "_".join(words))


def _class_style(name: str) -> str:
    """Return the nearest name that a class may have."""
    words = _WORDS.findall(name)
    while words and not words[0][0].isalpha():
        words.pop(0)
    near = "".join(word[0].upper() + word[1:] for word in words)[:LONGEST]
    return near if near and not hasattr(builtins, near) else "MyRing"
