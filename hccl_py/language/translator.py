"""The translation of sentences that were filled with values before they came here.

A sentence is compared with all messages: one fits if its literal texts stand in the sentence in
their order. Values are sentences themselves as often as not, so they are translated, too. Reports
put sentences together with commas, colons and semicolons, so a sentence may also be cut there. Of
all these readings the one counts that leaves the fewest English words, then the one with the most
literal text. A message does not count where its values hold much English themselves: a sentence
that no message made stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from hccl_py.language.catalogue import pieces, read_catalogues, words

JOINTS = (". ", "; ", ": ", ", ", " and ", " or ", " (", ") ", "  ", ")", ".")
"""The texts between parts of a sentence, those first at which it is cut first."""

_MOST_READINGS = 8
_DEEPEST = 8
_LONGEST = 4000
"""Readings of a sentence that are tried, values inside values, and characters of a sentence."""


@cache
def translator_of(language: str) -> Translator:
    """Return the translator of a language's catalogues."""
    return Translator(read_catalogues(language))


class Message(NamedTuple):
    """A message with values: its literal texts, the names between them, and its translation."""

    texts: list[str]
    names: list[str]
    said: str
    letters: int
    words: int
    """English words of the literal texts."""

    @staticmethod
    def of(message: str, said: str) -> Message:
        """Take a message apart."""
        texts, names = pieces(message)
        literal = " \0 ".join(texts)
        return Message(texts, names, said, sum(map(str.isalpha, literal)), _left(literal))

    @property
    def is_counted(self) -> bool:
        """True if this is a number of things: `3 tasks`."""
        return self.names[:1] == ["count"] and not self.texts[0]

    @property
    def is_mark(self) -> bool:
        """True if this is a mark before any sentence: `error: `."""
        return len(self.names) == 1 and self.texts[0].endswith(": ") and not self.texts[1]

    def values(self, text: str) -> list[str] | None:
        """Return the values with which this message makes a text; None where it cannot."""
        first, *middle, last = self.texts
        at, end = len(first), len(text) - len(last)
        if at > end or not text.startswith(first) or not text.endswith(last):
            return None
        found = []
        for literal in middle:
            begin = text.find(literal, at, end)
            if begin < 0:
                return None
            found.append(text[at:begin])
            at = begin + len(literal)
        found.append(text[at:end])
        return None if self.is_counted and not found[0][:1].isdigit() else found

    def filled(self, values: list[str]) -> str:
        """Return the translation with values."""
        texts, names = pieces(self.said)
        by_name = dict(zip(self.names, values, strict=True))
        return "".join(
            text + by_name.get(name, "") for text, name in zip(texts, [*names, ""], strict=True)
        )


class Reading(NamedTuple):
    """A reading of a sentence in the other language; the smallest is the best."""

    left: int
    unsaid: int
    text: str


class Translator:
    """Finds the messages that sentences were made from."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        self._whole = {}
        self._filled = []
        for message, said in messages.items():
            found = Message.of(message, said)
            if found.names:
                self._filled.append(found)
            else:
                self._whole[found.texts[0]] = pieces(said)[0][0]
        self._filled.sort(key=lambda found: -found.letters)
        self._needles = [max(found.texts, key=len) for found in self._filled]
        self._known: dict[str, Reading] = {}

    def translated(self, text: str) -> str:
        """Return a text with the sentences of its lines translated; spaces around them stay."""
        return "\n".join(map(self._line, text.split("\n")))

    def _line(self, line: str) -> str:
        inner = line.strip(" ")
        if len(inner) > _LONGEST or not any(words(inner)):
            return line
        at = line.index(inner)
        return line[:at] + self._best(inner, _DEEPEST).text + line[at + len(inner) :]

    def _best(self, text: str, depth: int) -> Reading:
        """Return the best reading of a sentence."""
        known = self._known.get(text)
        if known is not None:
            return known
        best = Reading(_left(text), 0, text)
        if best.left and depth:
            best = min(best, *self._readings(text, depth - 1))
        self._known[text] = best
        return best

    def _readings(self, text: str, depth: int) -> Iterator[Reading]:
        yield Reading(_left(text), 0, text)
        if (said := self._said(text)) is not None:
            yield Reading(_left(said), -len(text), said)
            return
        for number, (message, values) in enumerate(self._fitting(text)):
            if number == _MOST_READINGS:
                break
            inner = [self._value(value, depth) for value in values]
            if sum(map(_left, inner)) * 2 <= message.words or message.is_mark:
                said = message.filled(inner)
                yield Reading(_left(said), -message.letters, said)
        if text.endswith(".") and text[:-1] not in ("", text):
            bare = self._best(text[:-1], depth)
            if bare.text != text[:-1]:
                yield Reading(bare.left, bare.unsaid, bare.text + self._whole.get(".", "."))
        yield from self._cut(text, depth)

    def _said(self, text: str) -> str | None:
        """Return the translation of a message without values; the case of its first letter and a
        full stop at its end do not matter.
        """
        found = self._whole.get(text) or self._whole.get(text[0].swapcase() + text[1:])
        if found is None and (whole := self._whole.get(f"{text}.")) is not None:
            found = whole.removesuffix("。")
        return found

    def _value(self, value: str, depth: int) -> str:
        inner = value.strip(" ")
        if not inner or (inner[0] in "'\"`" and inner.find(inner[0], 1) in (-1, len(inner) - 1)):
            return value
        whole = self._whole.get(value)
        if whole is not None:
            return whole
        at = value.index(inner)
        for text in (value, inner):
            found = self._best(text, depth)
            if found.text != text:
                return found.text if text == value else value[:at] + found.text
        return value

    def _fitting(self, text: str) -> Iterator[tuple[Message, list[str]]]:
        """Yield the messages that fit a text, those with most literal text first."""
        for message, needle in zip(self._filled, self._needles, strict=True):
            if needle in text and (values := message.values(text)) is not None:
                yield message, values

    def _cut(self, text: str, depth: int) -> Iterator[Reading]:
        """Yield the readings of a text as two parts, cut at a joint."""
        for joint in JOINTS[:-2]:
            head, between, tail = text.partition(joint)
            if not between or not head:
                continue
            first = self._best(head, depth)
            rest = self._best(between + tail, depth) if self._begins(between) else None
            if rest is not None and rest.text != between + tail:
                yield Reading(first.left + rest.left, 0, first.text + rest.text)
            second = self._best(tail, depth)
            if first.text != head or second.text != tail:
                middle = self._whole.get(joint, joint)
                if first.text.endswith(("。", "：", "；", "，")):
                    middle = middle.lstrip(".;:, ")
                if joint == " (" and second.text.endswith(")"):
                    second = second._replace(text=second.text[:-1] + self._whole.get(")", ")"))
                said = first.text + middle + second.text
                yield Reading(first.left + second.left, 0, said)

    @cache  # noqa: B019 - translators live as long as the process
    def _begins(self, joint: str) -> bool:
        """True if messages begin with a joint."""
        return any(message.texts[0].startswith(joint) for message in self._filled) or any(
            text.startswith(joint) and text != joint for text in self._whole
        )


def _left(text: str) -> int:
    """Return the number of English words in a text."""
    return sum(1 for _ in words(text))
