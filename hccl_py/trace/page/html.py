"""One HTML file that needs nothing else: no server, no network, no other file.

Nothing that comes from a program is markup or script: it is base64 in data blocks, and the script
makes text nodes of it; in the film strip, which needs no script, its texts are escaped. The
Content-Security-Policy allows the page's own script and style by their hashes and nothing else, so
that even a defect here could load and run nothing.

The script is joined from the modules in static/, ordinary JavaScript, which editors and linters
understand. A file opened from disk cannot import others, so each becomes a function that is called
once: what it imports it takes from the results of others, what it exports it returns.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template

from hccl_py.documents.disk import PathLike, check_place, write_file
from hccl_py.documents.kind import PAGE
from hccl_py.printable import one_line
from hccl_py.trace.page.scene_block import scene_block
from hccl_py.trace.pictures.algorithm_steps import AlgorithmSteps, steps_of_scene
from hccl_py.trace.pictures.film import film_markup
from hccl_py.trace.pictures.svg import HUES, SHAPES
from hccl_py.trace.scene import Scene

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="generator" content="hccl-py">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
$markup
$data
<script>$script</script>
</body>
</html>
""")


def check_page(path: PathLike) -> None:
    """Refuse, before anything runs, a file that no page could be written to."""
    check_place(path, PAGE)


def write_page(path: PathLike, scenes: Sequence[Scene]) -> None:
    """Write one scene, or two that are compared; FileError for a place that cannot be written."""
    write_file(path, page_bytes(scenes), PAGE)


def page_bytes(scenes: Sequence[Scene]) -> bytes:
    """Return the page of one scene, or of two that are compared."""
    if not 1 <= len(scenes) <= 2:
        raise ValueError(f"a page shows one scene or two, not {len(scenes)}")
    looks, code = style() + HUES + SHAPES, script()
    steps = [steps_of_scene(scene) for scene in scenes]
    data = [
        _data(k, scene, some) for k, (scene, some) in enumerate(zip(scenes, steps, strict=True))
    ]
    return _PAGE.substitute(
        policy=(
            f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(looks)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        title=html.escape(f"{one_line(scenes[0].title[:200])} · hccl-py"),
        style=looks,
        markup=markup().replace("<!-- film -->", "".join(map(film_markup, steps))),
        data="\n".join(data),
        script=code,
    ).encode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(number: int, scene: Scene, steps: AlgorithmSteps) -> str:
    """Return a data block: browsers neither run nor parse what is of no type that they know."""
    block = scene_block(scene, steps).decode("ascii")
    return f'<script type="application/gzip" id="scene-{number}">{block}</script>'


_IMPORT = re.compile(r"^import (\{[^}]*\}) from '\./(\w+)\.js';$", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def _text(name: str) -> str:
    return (files(__package__) / "static" / name).read_text("utf-8")


@cache
def script() -> str:
    """Return all modules that main.js leads to, each behind those that it imports."""
    parts: dict[str, str] = {}
    _add("main", parts, ())
    return "(() => {\n'use strict';\n" + "".join(parts.values()) + "})();\n"


def _add(name: str, parts: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"These modules import each other: {', '.join((*above, name))}.")
    if name in parts:
        return
    text = _text(f"{name}.js")
    for _, other in _IMPORT.findall(text):
        _add(other, parts, (*above, name))
    exported = ", ".join(found for _, found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = $\2;", text))
    parts[name] = f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


@cache
def style() -> str:
    """Return the style sheet."""
    return _text("page.css")


@cache
def markup() -> str:
    """Return the markup of the page's body, without data and scripts."""
    return _text("page.html")
