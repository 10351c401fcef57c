"""Authors' classes from the current folder, named `module:Class`."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from hccl_py.errors import ParameterError, did_you_mean


def author_class(name: str, what: str) -> Any:
    """Import the class, or an executor made of one, that `module:Class` names; `what` says in
    errors where the name stood.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not module_name.isprintable() or not attribute.isidentifier():
        raise ParameterError(
            f"{what} {name!r} is not module:Class.",
            f"For example {what} my_ring:MyRing, where my_ring.py lies in this folder.",
        )
    module = _imported(module_name)
    if not hasattr(module, attribute):
        raise ParameterError(f"Module {module_name} has no {attribute}.", _near(attribute, module))
    found = getattr(module, attribute)
    if not isinstance(found, type) and not hasattr(type(found), "orchestrate"):
        raise ParameterError(
            f"{what} {name!r} is no class, but a {type(found).__name__}.", _near(attribute, module)
        )
    return found


def _near(name: str, module: ModuleType) -> str:
    """Return a hint with the nearest classes of a module, or all of them."""
    return did_you_mean(name, [n for n, v in vars(module).items() if isinstance(v, type)])


def _imported(name: str) -> Any:
    """Import an author's module from the current folder, which stays on the path, but last."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):
            raise ParameterError(
                f"There is no module {name}.",
                f"{name.replace('.', '/')}.py is looked for in this folder and where packages are.",
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)


def _broken(name: str, error: BaseException) -> ParameterError:
    return ParameterError(
        f"Module {name} cannot be imported: {type(error).__name__}: {error}",
        "--debug shows where it fails.",
    )
