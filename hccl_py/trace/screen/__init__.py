"""A scene on the whole screen, to browse.

`browser.py` keeps the visible part and the selection, without a screen; `app.py`, `lanes_view.py`
and `dialogs.py` show them with textual, and are the modules that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_py.errors import ParameterError

if TYPE_CHECKING:
    from hccl_py.trace.scene import Scene

__all__ = ["browse", "check_screen"]


def check_screen() -> None:
    """Raise ParameterError where the library for it is missing."""
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise ParameterError(
            "The view needs textual.",
            "pip install 'hccl-py[view]' brings it; `hccl-py trace` draws without it.",
        )


def browse(scene: Scene, *, unicode: bool) -> None:
    """Show a scene until the user leaves."""
    check_screen()
    from hccl_py.trace.screen.app import Viewer

    Viewer(scene, unicode=unicode).run()
