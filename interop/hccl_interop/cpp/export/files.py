"""Files of a project from templates."""

from __future__ import annotations

from importlib.resources import files
from string import Template


def filled(name: str, /, **fill: object) -> str:
    """Return a template with its names filled in."""
    template = files("hccl_interop.cpp.export").joinpath("templates", f"{name}.tmpl")
    return Template(template.read_text("utf-8")).substitute(fill)


def size_text(number: int) -> str:
    """Return bytes as C++ writes them: whole megabytes with a shift."""
    megabytes, rest = divmod(number, 1 << 20)
    return f"{megabytes}ULL << 20" if megabytes and not rest else str(number)
