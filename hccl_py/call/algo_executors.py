"""HCCL_ALGO of the Ascend 950: the executors that may run, and the algorithms on their levels.

allreduce:sequence{level0=mesh_2die, level1=not(nhr)};not(sole{mesh_oneshot})

    setting     choice (';' choice)*            the last one that fits an op counts
    choice      [op ':'] (executor | 'not(' executor ')')
    executor    kind '{' [item (',' item)*] '}' | algorithm, which is short for sole{algorithm}
    item        ['level' number '='] (algorithm | 'not(' algorithm ')')

Case does not matter, nor do underscores in algorithms, nor white space. A kind without algorithms
stands for all of that kind. Source: `alg_parse.cc` of hicann/hccl, August 2026.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from hccl_py.errors import ConfigError, did_you_mean

OPS_950: Mapping[str, str] = {
    "allgather": "AllGather",
    "allgatherv": "AllGatherV",
    "allreduce": "AllReduce",
    "alltoall": "AllToAll",
    "alltoallv": "AllToAllV",
    "alltoallvc": "AllToAllVC",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "reducescatter": "ReduceScatter",
    "reducescatterv": "ReduceScatterV",
    "scatter": "Scatter",
}
KINDS_950: Mapping[str, str] = {
    "sole": "Sole",
    "sequence": "Sequence",
    "parallel": "Parallel",
    "pipeline": "PipeLine",
    "concur": "Concur",
    "strictordered": "StrictOrdered",
}
ALGORITHMS_950: Mapping[str, str] = {
    "mesh": "Mesh",
    "mesh2die": "Mesh2Die",
    "meshoneshot": "MeshOneShot",
    "meshtwoshot": "MeshTwoShot",
    "meshconcur": "MeshConcur",
    "meshmultilink": "MeshMultiLink",
    "meshchunk": "MeshChunk",
    "meshchunktwoshot": "MeshChunkTwoShot",
    "nhr": "NHR",
    "nhrmultilink": "NHRMultiLink",
    "nhraicpureduce": "NHRAicpuReduce",
    "nhrsinglechannel": "MeshSingleChannel",
    "meshconcurrent": "MeshConcurrent",
}
"""Words of the setting, and their spelling in names of executors."""

MOST_LEVELS = 8

_TOKEN = re.compile(r"\s*([\w-]+|[:;{}(),=]|\S)", re.ASCII)
_LEVEL = re.compile(r"level([0-9]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm on a level; `negated`: any other one."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class ExecutorChoice:
    """Executors of a kind for an op, or for all ops where `op` is empty; `negated`: any but them.
    `algorithms` are those on the levels from the first; where there are none, any will do.
    """

    op: str
    kind: str
    algorithms: tuple[Algorithm, ...]
    negated: bool = False


@lru_cache
def is_executors(text: str) -> bool:
    """True if a setting has this form."""
    try:
        return bool(_Parser(text).choices())
    except _UnreadError:
        return False


def parse_executors(text: str) -> tuple[ExecutorChoice, ...]:
    """Return the choices of a setting, in its order. ConfigError names what is wrong, and where."""
    try:
        return _Parser(text).choices()
    except _UnreadError as unread:
        raise ConfigError(
            f"HCCL_ALGO {text!r}, character {unread.place}: {unread.what}.",
            f"{unread.hint()} (EI0001)",
        ) from None


class _UnreadError(Exception):
    """The place where a setting ends as one, and why; the hint is worked out to be told."""

    def __init__(self, place: int, what: str, hint: Callable[[], str]) -> None:
        self.place, self.what, self.hint = place, what, hint


class _Parser:
    """Tokens of a setting, from `at` on."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = list(_TOKEN.finditer(text))
        self.tokens = [match[1] for match in found]
        self.places = [match.start(1) for match in found]
        self.at = 0

    def choices(self) -> tuple[ExecutorChoice, ...]:
        """Return all choices."""
        found = []
        while self.at < len(self.tokens):
            found.append(self._choice())
            if not self._eat(";"):
                break
        if self.at < len(self.tokens):
            self._fail(f"{self.tokens[self.at]!r} comes after a choice", "Separate choices by ';'.")
        return tuple(found)

    def _choice(self) -> ExecutorChoice:
        op = ""
        if self._peek(1) == ":":
            op = self._word("op", OPS_950)
            self._expect(":")
        negated = self._eats_not()
        kind, algorithms = self._executor()
        if negated:
            self._expect(")")
        return ExecutorChoice(op, kind, algorithms, negated)

    def _executor(self) -> tuple[str, tuple[Algorithm, ...]]:
        if self._peek(1) != "{":
            return "sole", (Algorithm(self._algorithm()),)
        kind = self._word("executor", KINDS_950)
        self._expect("{")
        listed: dict[int, Algorithm] = {}
        while self._peek() != "}":
            level, algorithm = self._item(len(listed) and max(listed) + 1)
            listed[level] = algorithm
            if not self._eat(","):
                break
            if self._peek() == "}":
                self._fail("an algorithm is missing after ','", "Leave the comma out.")
        self._expect("}")
        return kind, tuple(listed[level] for level in sorted(listed))

    def _item(self, following: int) -> tuple[int, Algorithm]:
        """Return an algorithm and its level, the next one where none is named."""
        level = following
        match = _LEVEL.fullmatch(self._peek())
        if match and self._peek(1) == "=":
            level = int(match[1]) if len(match[1]) < 3 else MOST_LEVELS
            if level >= MOST_LEVELS:
                self._fail(f"{match[0]} is no level", f"Levels go from 0 to {MOST_LEVELS - 1}.")
            self.at += 2
        negated = self._eats_not()
        algorithm = Algorithm(self._algorithm(), negated)
        if negated:
            self._expect(")")
        return level, algorithm

    def _algorithm(self) -> str:
        return self._word("algorithm", ALGORITHMS_950, without="_")

    def _word(self, what: str, known: Mapping[str, str], without: str = "") -> str:
        """Take a word that is known, in lower case."""
        word = self._peek()
        found = word.lower()
        for character in without:
            found = found.replace(character, "")
        if found not in known:
            shown = f"{what} {word!r} is unknown" if word else f"an {what} is missing"
            self._stop(shown, lambda: did_you_mean(found, known))
        self.at += 1
        return found

    def _eats_not(self) -> bool:
        if self._peek().lower() != "not" or self._peek(1) != "(":
            return False
        self.at += 2
        return True

    def _peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def _eat(self, token: str) -> bool:
        found = self._peek() == token
        self.at += found
        return found

    def _expect(self, token: str) -> None:
        if not self._eat(token):
            found = repr(self._peek()) if self._peek() else "the end"
            self._fail(f"expected {token!r}, found {found}", "See docs/selection.md for its form.")

    def _fail(self, what: str, hint: str) -> NoReturn:
        self._stop(what, lambda: hint)

    def _stop(self, what: str, hint: Callable[[], str]) -> NoReturn:
        place = self.places[self.at] if self.at < len(self.places) else len(self.text)
        raise _UnreadError(place, what, hint)
