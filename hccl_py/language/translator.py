"""The translation of sentences that were filled with values before they came here.

A sentence is compared with all messages: one fits if its literal texts stand in the sentence in
their order. Values are sentences themselves as often as not, so they are translated, too. Reports
put sentences together with commas, colons and semicolons, so a sentence may also be cut there. Of
all these readings the one counts that leaves the fewest English words, then the one with the most
literal text. A message does not count where its values hold much English themselves: a sentence
that no message made stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from hccl_py.language.catalogue import pieces, read_catalogues, words

_CUTS = (". ", "; ", ": ", ", ", " and ", " or ", "  ")
_LIST = {", ", " and ", " or "}
JOINTS = (*_CUTS, ".", " (", ")")
"""The texts between parts of a sentence, brackets, and its end."""

_MOST_READINGS, _LONGEST = 8, 4000
"""Readings of a sentence by messages that are tried, and characters of a sentence."""

_JOINT = 4
"""Letters of a message that outweigh a joint."""

_NUMBER = re.compile(r"[\d., ]*\d")
_BRACKETS = re.compile(r"(.+?) \(([^()]+)\)(; |: |, | and | or | |\.|)(.*)")
_BEHIND = re.compile(r"(\{\w+\}) ([A-Z].*)", re.DOTALL)
_PLURAL = re.compile(r"s\b")
_BETWEEN = re.compile("(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")
"""A space between two Chinese characters: one stands around values that are English words."""

_QUOTES = ("'", '"', "`")
_ENDS = ("。", "：", "；", "，")


@cache
def translator_of(language: str) -> Translator:
    """Return the translator of a language's catalogues."""
    return Translator(read_catalogues(language))


class Message(NamedTuple):
    """A message with values: its literal texts, the names between them, and its translation."""

    texts: list[str]
    names: list[str]
    said: str
    weight: int
    words: int
    """English words of the literal texts."""

    @staticmethod
    def of(message: str, said: str) -> Message:
        """Take a message apart."""
        texts, names = pieces(message)
        literal = " \0 ".join(texts)
        return Message(texts, names, said, _weight(literal), _left(literal))

    @property
    def stays(self) -> bool:
        """True if the text stays as it is."""
        return pieces(self.said) == (self.texts, self.names)

    @property
    def is_counted(self) -> bool:
        """True if this is a number of things: `3 tasks`."""
        return self.names[:1] == ["count"] and not self.texts[0]

    @property
    def ends_open(self) -> bool:
        """True if any sentence may stand at the end: that of another error, a hint."""
        return self.texts[-2].endswith(": ") and self.texts[-1] in ("", ".")

    def values(self, text: str) -> list[str] | None:
        """Return the values with which this message makes a text; None where it cannot. A text may
        begin with a capital where its message has a small letter.
        """
        first, *middle, last = self.texts
        if not text.startswith(first):
            text = text[:1].lower() + text[1:]
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
        head = (self.texts[0] + found[0]).strip(" ")
        if self.texts[1].startswith(" ") and (not head or head.endswith(":")):
            return None  # a part that follows another one
        behind = [_PLURAL.sub("", literal) for literal in self.texts[1:]]
        if any(map(_is_glued, self.texts, found)) or any(map(_is_glued, found, behind)):
            return None
        if any("  " in value.strip() for value in found):
            return None  # columns of a table
        return None if self.is_counted and not _NUMBER.fullmatch(found[0]) else found

    def filled(self, values: list[str]) -> str:
        """Return the translation with values."""
        texts, names = pieces(self.said)
        by_name = dict(zip(self.names, values, strict=True))
        parts = zip(texts, [*names, ""], strict=True)
        return _BETWEEN.sub("", "".join(text + by_name.get(name, "") for text, name in parts))


class Reading(NamedTuple):
    """A reading of a sentence in the other language; the smallest is the best."""

    left: int
    """English words that it leaves."""

    cost: int
    """Its messages and joints, of cuts and inside of values, less the weight of the messages."""

    text: str


class Translator:
    """Finds the messages that sentences were made from."""

    def __init__(self, messages: dict[str, str]) -> None:
        self._whole = {}
        self._filled = []
        for message, said in (messages | dict(_sentences_behind(messages))).items():
            found = Message.of(message, said)
            if found.names:
                self._filled.append(found)
            else:
                self._whole[found.texts[0]] = pieces(said)[0][0]
        self._filled.sort(key=lambda found: -found.weight)
        self._needles = [
            max(found.texts[0][1:], *found.texts[1:], key=len) for found in self._filled
        ]
        self._known: dict[str, Reading] = {}

    def translated(self, text: str) -> str:
        """Return a text that is a message translated, of any other the sentences of its lines;
        spaces around them stay.
        """
        return self._whole.get(text) or "\n".join(map(self._line, text.split("\n")))

    def _line(self, line: str) -> str:
        if len(line) > _LONGEST:
            return line
        return self._value(line).text

    def _best(self, text: str) -> Reading:
        """Return the best reading of a sentence."""
        known = self._known.get(text)
        if known is None:
            known = Reading(_left(text), 0, text)
            if any(map(str.isalpha, text)):
                known = min([known, *self._readings(text)])
            self._known[text] = known
        return known

    def _readings(self, text: str) -> Iterator[Reading]:
        if (said := self._said(text)) is not None:
            yield Reading(0 if said == text else _left(said), 1 - _weight(text), said)
            return
        for message, values in islice(self._fitting(text), _MOST_READINGS):
            inner = [self._value(value) for value in values]
            own = inner[:-1] if message.ends_open else inner
            if sum(_left(one.text) for one in own) * 3 <= message.words * 2:
                said = message.filled([one.text for one in inner])
                held = sum(joint in value for value in values for joint in (*_CUTS, " ("))
                cost = sum(one.cost for one in inner) + _JOINT * held + 1 - message.weight
                left = sum(one.left for one in inner) if message.stays else _left(said)
                yield Reading(left, cost, said)
        if text.endswith(".") and len(text) > 1:
            yield from self._together([text[:-1]], ["", "."])
        yield from self._cut(text)

    def _said(self, text: str) -> str | None:
        """Return the translation of a message without values; the case of its first letter and a
        full stop at its end do not matter.
        """
        found = self._whole.get(text) or self._whole.get(text[0].swapcase() + text[1:])
        if found is None and (whole := self._whole.get(f"{text}.")) is not None:
            found = whole.removesuffix("。")
        return found

    def _value(self, value: str) -> Reading:
        """Return the best reading of a text; spaces around it stay unless a message has them."""
        inner = value.strip(" ")
        is_quoted = inner[:1] in _QUOTES and inner.find(inner[0], 1) in (-1, len(inner) - 1)
        if not inner or is_quoted:
            return Reading(0, 0, value)
        found = self._best(value)
        if found.text != value or inner == value:
            return found
        at, found = value.index(inner), self._best(inner)
        return found._replace(text=value[:at] + found.text + value[at + len(inner) :])

    def _fitting(self, text: str) -> Iterator[tuple[Message, list[str]]]:
        """Yield the messages that fit a text, those with most literal text first."""
        for message, needle in zip(self._filled, self._needles, strict=True):
            if needle in text and (values := message.values(text)) is not None:
                yield message, values

    def _cut(self, text: str) -> Iterator[Reading]:
        """Yield the readings of a text in parts, cut at a joint, or before and behind brackets."""
        for joint in _CUTS:
            places = {text.find(joint), text.rfind(joint)} - {-1, 0, len(text) - len(joint)}
            for at in sorted(places):
                head, tail = text[:at], text[at + len(joint) :]
                if self._starts(joint + tail, joint):
                    yield from self._together([head, joint + tail], ["", "", ""])
                stop = "." if joint == ". " else ""
                yield from self._together([head + stop, tail], ["", joint[len(stop) :], ""])
        if (match := _BRACKETS.fullmatch(text)) is not None:
            head, inner, joint, rest = match.groups()
            yield from self._together([head, inner, rest], ["", " (", ")" + joint, ""])

    def _starts(self, text: str, joint: str) -> bool:
        """True if a message that begins with a joint makes a text."""
        return text in self._whole or any(
            message.texts[0].startswith(joint) for message, _ in self._fitting(text)
        )

    def _together(self, parts: list[str], joints: list[str]) -> Iterator[Reading]:
        """Yield the reading of parts with joints around them, if it differs from the text."""
        is_list = not _LIST.isdisjoint(joints)
        found = [self._part(part) if is_list else self._best(part) for part in parts]
        if all(one.text == part for one, part in zip(found, parts, strict=True)):
            return
        said = self._joint(joints[0])
        for one, joint in zip(found, joints[1:], strict=True):
            said += one.text
            said += self._joint(joint).lstrip(" " if said.endswith(_ENDS) else "")
        cost = _JOINT + sum(one.cost for one in found)
        yield Reading(sum(one.left for one in found), cost, said)

    def _part(self, part: str) -> Reading:
        """Return the best reading of a part of a list: a word alone there is a name."""
        return self._best(part) if " " in part else Reading(_left(part), 0, part)

    def _joint(self, joint: str) -> str:
        """Return a joint, or a bracket with one behind it, in the other language."""
        if joint.startswith(")"):
            return self._whole.get(")", ")") + self._whole.get(joint[1:], joint[1:])
        return self._whole.get(joint, joint)


def _sentences_behind(messages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the sentences that stand behind another one in a message: they occur alone, too."""
    for message, said in messages.items():
        if (match := _BEHIND.fullmatch(message)) and said.startswith(match[1]):
            yield match[2], said.removeprefix(match[1]).lstrip(" ")


def _left(text: str) -> int:
    """Return the number of English words in a text."""
    return sum(1 for _ in words(text))


def _is_glued(text: str, more: str) -> bool:
    """True if two texts would be one word."""
    return text[-1:].isalpha() and more[:1].isalpha()


def _weight(text: str) -> int:
    """Return the number of letters and marks of a text."""
    return sum(letter not in " \0" for letter in text)
