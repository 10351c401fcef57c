"""Labels and source lines of a job; every call has labels of its own."""

from __future__ import annotations

from hccl_py.jobs.pieces import Piece
from hccl_py.jobs.program import CallOn
from hccl_py.program.instruction import Texts


class Labels:
    """All labels, and the number of the call of each, -1 for none."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.call_of: list[int] = []
        self.calls: list[CallOn] = []
        self._plain: dict[str, int] = {}

    def plain(self, text: str) -> int:
        """Return the number of a label that belongs to no call."""
        if text not in self._plain:
            self._plain[text] = self._add(text, -1)
        return self._plain[text]

    def of_call(self, call: CallOn, pieces: list[Piece], phases: Texts[str]) -> list[Piece]:
        """Return pieces, whose labels are numbers of phases, under labels of a new call."""
        self.calls.append(call)
        names, known = list(phases), dict[int, int]()
        for piece in pieces:
            for phase in {instruction.label for instruction in piece.instructions} - known.keys():
                text = f"{call.label}: {names[phase]}" if names[phase] else call.label
                known[phase] = self._add(text, len(self.calls) - 1)
        return [
            Piece(piece.ranks, tuple(i._replace(label=known[i.label]) for i in piece.instructions))
            for piece in pieces
        ]

    def _add(self, text: str, call: int) -> int:
        self.texts.append(text)
        self.call_of.append(call)
        return len(self.texts) - 1
