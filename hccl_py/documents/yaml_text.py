"""YAML to the plain values of JSON, for people who write files by hand.

The values are those of YAML 1.2's core schema: null, true and false, numbers, texts, lists and
mappings. The additions of YAML 1.1 (dates, `yes` and `no`, numbers to the base of 60, merge keys)
are text; tags are refused. Values are built from the parser's events, so nesting and aliases are
counted while the file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hccl_py.documents.checks import defect, format_value
from hccl_py.documents.kind import FileKind
from hccl_py.documents.parse import decoded
from hccl_py.errors import FileError, NotSupportedError

YAML = (".yaml", ".yml")

MOST_BYTES = 4_000_000
"""The largest file, which is read in some seconds."""

MOST_LEVELS = 100
MOST_VALUES = 500_000
"""Values of a document, those that aliases repeat counted each time."""

_SYNTAX = "Check indentation, colons and quotes; was the file cut off?"

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MOST_DIGITS = 4000
"""Python reads no more."""


class _Node(NamedTuple):
    """A value, how many values it holds, itself included, and the line it begins in."""

    value: Any
    size: int
    line: int


def parse_yaml(data: bytes, kind: FileKind) -> object:
    """Return the value of a YAML document.

    Raises FileError for text that is not YAML in UTF-8, for a second document, tags, keys that
    appear twice or are no strings, nesting and aliases without end; NotSupportedError where PyYAML
    is not installed.
    """
    yaml = pyyaml()
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        return _YamlBuilder(yaml, yaml.parse(decoded(data, kind), loader), kind).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1} column {mark.column + 1}" if mark else "$"
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or ""
        if "nesting depth" in problem:  # PyYAML from 6.0.4 on has a limit of its own, above ours
            raise _too_deep(kind) from None
        raise FileError(f"{place}: the text is not YAML ({problem}).", _SYNTAX) from None


def _too_deep(kind: FileKind) -> FileError:
    return defect("", f"at most {MOST_LEVELS} levels of nesting", "more", kind.depth)


class _YamlBuilder:
    """Builds values from events."""

    def __init__(self, yaml: Any, events: Iterator[Any], kind: FileKind) -> None:
        self._yaml, self._events, self._kind = yaml, events, kind
        self._anchors: dict[str, _Node | None] = {}
        """Values by their anchors; None while the value is not complete."""
        self._values = 0

    def document(self) -> object:
        """Return the only document's value; None where there is none."""
        yaml, found = self._yaml, None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    line = f"line {event.start_mark.line + 1}"
                    hint = "Keep one of them, without the line of dashes between them."
                    raise defect(line, "one document", "a second one", hint)
                found = self._node(next(self._events), 1)
        return None if found is None else found.value

    def _node(self, event: Any, level: int) -> _Node:
        """Return the value that begins with an event."""
        yaml, line = self._yaml, event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._counted(self._aliased(event.anchor, line))
        if event.tag is not None:
            hint = "Leave the tag out; write texts that look like numbers in quotes."
            raise defect(f"line {line}", "a value without a tag", format_value(event.tag), hint)
        if level > MOST_LEVELS:
            raise _too_deep(self._kind)
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            text = event.value
            value = self._scalar(text, line) if event.implicit[0] else text
            node = self._counted(_Node(value, 1, line))
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._list(line, level)
        else:
            node = self._mapping(line, level)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _counted(self, node: _Node) -> _Node:
        self._values += node.size
        if self._values > MOST_VALUES:
            hint = "Write a file as large as this as JSON."
            raise defect(f"line {node.line}", f"at most {MOST_VALUES:,} values", "more", hint)
        return node

    def _members(self, end: type, level: int) -> Iterator[_Node]:
        while not isinstance(event := next(self._events), end):
            yield self._node(event, level + 1)

    def _list(self, line: int, level: int) -> _Node:
        before = self._values
        value = [node.value for node in self._members(self._yaml.SequenceEndEvent, level)]
        self._values += 1
        return _Node(value, self._values - before, line)

    def _mapping(self, line: int, level: int) -> _Node:
        before, value = self._values, dict[str, Any]()
        members = self._members(self._yaml.MappingEndEvent, level)
        for key, member in zip(members, members, strict=True):
            place = f"line {key.line}"
            if not isinstance(key.value, str):
                raise defect(
                    place, "a string as the key", format_value(key.value), "Write it in quotes."
                )
            if key.value in value:
                hint = "Keep one of the two: the other would be overlooked."
                raise defect(place, f"the key {format_value(key.value)} once", "it twice", hint)
            value[key.value] = member.value
        self._values += 1
        return _Node(value, self._values - before, line)

    def _aliased(self, anchor: str, line: int) -> _Node:
        node = self._anchors.get(anchor)
        if node is None:
            found = "itself" if anchor in self._anchors else "nothing"
            hint = "An alias *name stands behind the value with &name."
            raise defect(f"line {line}", "an alias of a value before it", found, hint)
        return node

    def _scalar(self, text: str, line: int) -> object:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if len(text) > _MOST_DIGITS and _NUMBER.fullmatch(text):
            expected, found = "numbers of at most 19 digits", "one of thousands"
            raise defect(f"line {line}", expected, found, self._kind.digits)
        if _WHOLE.fullmatch(text):
            return int(text, 10 if text.lstrip("+-").isdecimal() else 0)
        if _NUMBER.fullmatch(text):
            return float(text)
        return float(text.replace(".", "")) if _ENDLESS.fullmatch(text) else text


def pyyaml() -> Any:
    """Return the package; NotSupportedError where it is not installed."""
    try:
        import yaml
    except ImportError:
        raise NotSupportedError(
            "YAML needs PyYAML, which is not installed.",
            "Install hccl-py[yaml], or write the file as JSON.",
        ) from None
    return yaml
