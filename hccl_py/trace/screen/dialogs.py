"""Dialogs over the picture: the keys, the list of findings."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hccl_py.language import translated
from hccl_py.printable import brief
from hccl_py.trace.screen.browser import Browser

HELP = """\
left right      the task before, behind on the lane
up down         lanes; the mouse selects, too
w  d            what the task waits for; what waits for it
b               back to where you were
c  C            next, previous task on the critical path
e               findings; enter goes to the task

+ -             zoom in, out; the wheel with ctrl does, too
< >             earlier, later
0  z            all of the time; the selected task

enter           fold or open a group of ranks; a click does, too
f               fold or open all
a               ranks that do the same: together, apart

/  n  N         search; next, previous hit
   read kind:wait rank:3 peer:0 stream:sub notify:Ack label:ring
   source:mesh.py round:2 at:CCL_Out[256K] at:3.user_out
                what stands together must all match

?  escape       this help; close it
q               quit
"""


class Note(ModalScreen[None]):
    """A text over the picture."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close")
    ]
    DEFAULT_CSS = """
    Note { align: center middle; }
    Note > VerticalScroll {
        width: 72; height: auto; max-height: 90%; border: ascii $accent; padding: 0 1;
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Show the text."""
        with VerticalScroll():
            yield Static(Text(self._text))


class FindingList(ModalScreen[int]):
    """The findings, one of which is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,e", "dismiss", "close")]
    DEFAULT_CSS = """
    FindingList { align: center middle; }
    FindingList > OptionList { width: 90%; height: auto; max-height: 80%; }
    FindingList > OptionList, FindingList > OptionList:focus { border: ascii $accent; }
    """

    def __init__(self, browser: Browser) -> None:
        super().__init__()
        self._browser = browser

    def compose(self) -> ComposeResult:
        """List the findings."""
        yield OptionList(*(Option(self._said(k)) for k in range(len(self._browser.findings))))

    def _said(self, number: int) -> Text:
        group = self._browser.findings[number]
        finding = group.first.finding
        head = f"!{group.number} {finding.severity.spelling}: {finding.name}"
        text = Text().append(translated(head), "bold")
        if group.total > 1:
            text.append(translated(f" and {group.total - 1} more like this"))
        for part in filter(None, (finding.message, finding.source, finding.hint)):
            text.append("\n   " + brief(translated(part).replace("\n", " "), 1000))
        return text

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose one."""
        self.dismiss(event.option_index)
