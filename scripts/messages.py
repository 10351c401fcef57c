#!/usr/bin/env python3
"""Collect the messages of the sources in catalogues, one for each room and language.

scripts/messages.py            add new messages, drop those that are gone, keep translations
scripts/messages.py --check    fail if a catalogue lacks a message or a translation, or if a
                               translation has other values than its message

Nothing marks messages in the sources: a message is a text with English words in it that is neither
a docstring nor compared, nor a pattern, nor of an error that shows a defect. Headings and nouns of
one word are messages where a call or a table shows them. Names in braces stand for values. A
catalogue is a file of gettext: a translation that equals its message leaves the text as it is.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hccl_py.language import LANGUAGES  # noqa: E402
from hccl_py.language.catalogue import FOLDER, pieces, words  # noqa: E402

Text = str | tuple[str, str]
"""A message, or its singular and plural."""

SOURCES = {
    "executors": ROOT / "executors",
    "platform": ROOT / "platform",
    "interop": ROOT / "interop",
}

LEFT_OUT = ("hccl_py/trace/page",)
"""Texts that are no messages: a page with words of its own, and projects to start from."""

MORE: dict[str, tuple[Text, ...]] = {
    "base": tuple(
        ("{count} " + noun, "{count} " + noun + "s")
        for noun in ("core", "device", "element", "iteration", "server", "step", "superpod")
    ),
    "documents": (
        *("No such file or directory", "Permission denied", "Is a directory", "Not a directory"),
        *("No space left on device", "Read-only file system"),
    ),
    "selection": (
        *(f"is {than} {{value}}" for than in ("more than", "at most", "at least", "less than")),
        *("bytes", "devices", "servers", "superpods", "mode"),
        "{name} needs {fact}, it is {actual}",
    ),
    "tuning": ("others",),
    "clocks": ("α is an engineering choice: 10 µs",),
    "topology": (
        *("{count} switches", "{count} switches and ports"),
        *("{servers} server x {devices} devices", "{servers} servers x {devices} device"),
    ),
    "program": (
        *(f"{{task}} {verb}s {{memory}} to {{target}}" for verb in ("read", "write")),
        *("{task} copies {memory} to {target}", "{task} reduces {memory} into {target}"),
        *("copy {memory} to {target}", "rank {rank}'s {memory}", "no phase"),
    ),
    "executors": (
        *("copies of other sizes", "fewer copies here", "more copies here"),
        *("other buffers", "other copies or buffers"),
    ),
    "verifier": (
        ("{count} error", "{count} errors"),
        ("{count} warning", "{count} warnings"),
        ("{count} hint", "{count} hints"),
    ),
    "trace": (
        *("!{number} error: {name}", "!{number} warning: {name}"),
        *("busy", "waits", "idle", "finding", "transfer", "copy", "stuck", "compute"),
        *("start", "never", "notifies", "transports", "after", "before"),
        (": {number} task: {kinds}", ": {number} tasks: {kinds}"),
        *(kind + " {us} us" for kind in ("copy", "transfer", "compute")),
    ),
    "cli": (
        "Usage: {command}",
        "Commands",
        "{heading}:",
        "hardware",
        "here",
        *("ok", "no", "there", "none", "Target"),
        *("topologies", "follows:", "assumed", "one", "other", "value"),
        *("program file {path}", "then source its set_env.sh"),
        *(f"Input should be {than} {{value}}" for than in ("greater than", "less than")),
        "Input should be greater than or equal to {value}",
        "required",
        "default: {value}",
        "Invalid value for {option}: {why}",
        "Missing argument {name}",
        "Missing option {name}",
        "No such option: {option}",
        "No such option: {option} Did you mean {other}?",
        "No such option: {option} (Possible options: {others})",
        "No such command {name}.",
        "Option {option} requires an argument.",
        "Option {option} does not take a value.",
        "Got unexpected extra argument ({value})",
        "Got unexpected extra arguments ({values})",
        "{value} is not a valid integer.",
        "{value} is not a valid float.",
        "{value} is not in the range {range}.",
        "Show this message and exit.",
        "Install completion for the current shell.",
        "Show completion for the current shell, to copy it or customize the installation.",
    ),
}
"""Messages by room that no text of the sources is: words of enumerations, and those of typer."""

NODES = ("device", "server")
"""What `{who}` stands for in sentences about steps; alone these words are names."""

NO_SHOWS = {
    *("compile", "fullmatch", "match", "sub", "search", "findall", "finditer", "TypeVar"),
    "filterwarnings",
}
DEFECTS = {
    "AssertionError",
    "AttributeError",
    "IndexError",
    "KeyError",
    "RuntimeError",
    "TypeError",
}
TABLES = {"table", "_table"}
HEADINGS = TABLES | {"AdvicePart", "Check", "Fact", "add_column", "say", "show"}
NAMED = {"ARGUMENTS", "JOINTS", "_CUTS", "OWN_OPTIONS", "PANELS"}
"""Calls whose texts nobody reads, errors of a programmer, calls that show words alone, all of
their texts or the first, and constants of words.
"""

CODE = re.compile(
    r"^\s*//|^ +return |^ *(const|constexpr|void\*|u?int\d+_t|extern|if \() ?"
    r"|&& | != | = \d+$|;$|^}} |^k\{"
)
"""Texts that are lines of C++ and of protobuf, as exports write them."""


class Messages(ast.NodeVisitor):
    """Collects the messages of a module."""

    def __init__(self) -> None:
        self.found: dict[Text, None] = {}

    def take(self, node: ast.AST, *, heading: bool = False) -> None:
        """Take the message that an expression makes, if it makes one."""
        for text in templates(node):
            if (heading and re.search("[A-Za-z]{2}", text)) or is_message(text):
                self.found[text] = None

    def visit_Expr(self, node: ast.Expr) -> None:
        """Pass by docstrings."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Take the help of a command, paragraph by paragraph."""
        decorators = {getattr(decorator, "id", "") for decorator in node.decorator_list}
        if node.name == "command" or "grouped" in decorators:
            for part in filter(None, (ast.get_docstring(node) or "").split("\n\n")):
                self.found[escaped(" ".join(part.split()))] = None
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Pass by."""

    def visit_Compare(self, node: ast.Compare) -> None:
        """Pass by."""

    def visit_Assign(self, node: ast.Assign) -> None:
        """Take the words of constants that are named."""
        names = {
            leaf.id
            for target in node.targets
            for leaf in ast.walk(target)
            if isinstance(leaf, ast.Name)
        }
        if names & NAMED:
            keys = (
                node.value.keys
                if isinstance(node.value, ast.Dict)
                else getattr(node.value, "elts", [])
            )
            for leaf in filter(None, keys):
                if isinstance(leaf, ast.Constant):
                    self.found[leaf.value] = None
            return
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """Take the name of a row: it stands before what is computed."""
        match node.elts:
            case [
                ast.Constant(value=str()) as name,
                ast.List() | ast.ListComp() | ast.Call() | ast.Name(),
            ]:
                self.take(name, heading=True)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Take nouns that are counted, and headings."""
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name in DEFECTS or (name in NO_SHOWS and isinstance(node.func, ast.Attribute)):
            return
        if name == "counted" and isinstance(node.args[-1], ast.Constant):
            noun = node.args[-1].value
            self.found["{count} " + noun, "{count} " + noun + "s"] = None
            self.visit(node.args[0])
            return
        if name in HEADINGS:
            for argument in node.args if name in TABLES else node.args[:1]:
                self.take_headings(argument)
        if name == "Binding" and len(node.args) > 2:
            self.take_headings(node.args[2])
        for keyword in node.keywords:
            if keyword.arg in ("noun", "parts", "left"):
                self.take_headings(keyword.value)
        for child in (node.func, *node.args, *(k.value for k in node.keywords if k.arg != "style")):
            self.visit(child)

    def take_headings(self, node: ast.expr) -> None:
        """Take a text, or those of a list, even of one word."""
        for leaf in getattr(node, "elts", [node]):
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                self.take(leaf, heading=True)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take a text."""
        if isinstance(node.value, str):
            if node.value.startswith("\n"):  # a table: the reasons of its rows
                for reason in re.findall(r"leave (.+?)(?: if |$)", node.value, re.MULTILINE):
                    self.found[escaped(reason)] = None
            else:
                self.take(node)
                for noun in NODES if "{who}" in node.value else ():
                    self.found[node.value.replace("{who}", noun)] = None

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Take a text with values, and the texts in these."""
        self.take(node)
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.visit(value.value)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Take a sum of texts as one text."""
        parts = list(parts_of(node))
        if isinstance(node.op, ast.Add) and any(isinstance(part, str) for part in parts):
            self.take(node)
            for part in parts:
                if not isinstance(part, str):
                    self.visit(part)
        else:
            self.generic_visit(node)


def parts_of(node: ast.AST) -> Iterator[str | ast.AST]:
    """Yield the literal texts and the values of which an expression makes a text."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=values):
            for value in values:
                yield from (
                    [value.value] if isinstance(value, ast.FormattedValue) else parts_of(value)
                )
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from parts_of(left)
            yield from parts_of(right)
        case _:
            yield node


def templates(node: ast.AST) -> Iterator[str]:
    """Yield the messages that an expression makes: several where words have other endings."""
    parts = list(parts_of(node))
    choices: list[list[str | ast.AST]] = []
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else ""
        is_glued = isinstance(before, str) and before[-1:].isalpha()
        choices.append(endings(part) if is_glued and not isinstance(part, str) else [part])
    for chosen in product(*choices) if parts else ():
        yield template(chosen)


def endings(node: ast.AST) -> list[str | ast.AST]:
    """Return the texts that may follow a word: `s` or nothing."""
    match node:
        case ast.IfExp(
            body=ast.Constant(value=str() as one), orelse=ast.Constant(value=str() as other)
        ):
            return [one, other]
        case ast.BinOp(left=ast.Constant(value=str() as one), op=ast.Mult()):
            return [one, ""]
    return [node]


def template(parts: Iterable[str | ast.AST]) -> str:
    """Return the message of parts; values have the last names of their expressions, and those that
    only spaces part are one.
    """
    found, names = "", set()
    for part in parts:
        if isinstance(part, str):
            found += escaped(part)
            continue
        if found.rstrip(" ").endswith("}") and not found.rstrip(" ").endswith("}}"):
            found = found.rstrip(" ")
            continue
        first = name = value_name(part)
        count = 1
        while name in names:
            count += 1
            name = f"{first}_{count}"
        names.add(name)
        found += "{" + name + "}"
    return found


def escaped(text: str) -> str:
    """Return a text whose braces are no values, but for names that `format` fills in."""
    parts = re.split(r"(\{[a-z_]+\})", text.replace("%s", "{value}").replace("%d", "{value}"))
    parts[::2] = [part.replace("{", "{{").replace("}", "}}") for part in parts[::2]]
    return "".join(parts)


def value_name(node: ast.AST) -> str:
    """Return the name of a value: the last one in its expression that says what it is."""
    match node:
        case ast.Call(func=func, args=args):
            return value_name(args[0]) if args else value_name(func)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_") or "value"
        case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.UnaryOp(operand=inner):
            return value_name(inner)
        case ast.GeneratorExp(elt=inner) | ast.ListComp(elt=inner) | ast.IfExp(body=inner):
            return value_name(inner)
        case ast.BinOp(left=inner):
            return value_name(inner)
    return "value"


def is_message(message: str) -> bool:
    """True if a text has words that people read."""
    texts, names = pieces(message)
    literal = "\0".join(texts)
    if "{{" in message or re.search(r"[;{]\n|<[a-z/]|://", literal) or CODE.search(message):
        return False
    found = list(words(literal.replace("\0", " \0 ")))
    return bool(found) and (bool(names) or " " in literal.strip())


def room_of(path: Path) -> str:
    """Return the room of a module."""
    name = path.relative_to(ROOT).parts
    if name[0] != "hccl_py":
        return name[0]
    return name[1] if len(name) > 2 else "base"


def collected() -> dict[str, dict[Text, set[str]]]:
    """Return the messages of every room, with the files that have each."""
    rooms: dict[str, dict[Text, set[str]]] = {}
    for root in (ROOT / "hccl_py", *SOURCES.values()):
        for path in sorted(root.rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(LEFT_OUT):
                continue
            messages = Messages()
            messages.visit(ast.parse(path.read_text("utf-8")))
            for text in messages.found:
                rooms.setdefault(room_of(path), {}).setdefault(text, set()).add(name)
    for room, texts in MORE.items():
        for text in texts:
            rooms.setdefault(room, {}).setdefault(text, set())
    return rooms


def catalogue_path(language: str, room: str) -> Path:
    """Return the place of a catalogue."""
    return FOLDER / language / f"{room}.po"


def read(language: str, room: str) -> Catalog:
    """Return a catalogue as it is kept."""
    path = catalogue_path(language, room)
    return read_po(io.BytesIO(path.read_bytes() if path.exists() else b""), locale=language)


def update(language: str, room: str, texts: dict[Text, set[str]]) -> None:
    """Bring a catalogue up to date."""
    catalogue, wanted = read(language, room), Catalog()
    for text, files in texts.items():
        wanted.add(text, locations=[(name, 0) for name in sorted(files)])
    catalogue.update(wanted)
    for message in catalogue:
        message.flags.discard("python-brace-format")
    out = io.BytesIO()
    write_po(
        out, catalogue, width=100, include_lineno=False, ignore_obsolete=True, omit_header=True
    )
    head = (
        f"# Messages of {room} for readers of {language}; scripts/messages.py keeps this file.\n"
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        f'"Language: {language}\\n"\n"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
    )
    path = catalogue_path(language, room)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(head.encode() + out.getvalue().strip() + b"\n")


def complaints(language: str, room: str, texts: dict[Text, set[str]]) -> Iterator[str]:
    """Yield what is wrong with a catalogue."""
    place = catalogue_path(language, room).relative_to(ROOT)
    kept = {message.id: message for message in read(language, room) if message.id}
    for text in texts:
        message = kept.get(text)
        if message is None:
            yield f"{place}: lacks {text!r}; run scripts/messages.py"
        elif message.fuzzy or not said(message):
            yield f"{place}: no translation of {text!r}"
    for message in kept.values():
        if said(message) and not message.fuzzy and values(said(message)) != values(message.id):
            yield f"{place}: other values in the translation of {message.id!r}"


def said(message: Message) -> str:
    """Return the translation of a message."""
    return message.string if isinstance(message.string, str) else message.string[0]


def values(text: Text) -> set[str]:
    """Return the names of the values of a message."""
    return set(pieces(text if isinstance(text, str) else text[0])[1])


def main() -> int:
    """Write or check the catalogues."""
    wrong = []
    for language in LANGUAGES[1:]:
        for room, texts in collected().items():
            if sys.argv[1:] == ["--check"]:
                wrong += complaints(language, room, texts)
            else:
                update(language, room, texts)
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
