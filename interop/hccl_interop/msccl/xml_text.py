"""From the text of an MSCCL XML file to algorithms; what is no such file is refused in a sentence.

The file is read inside a root element of ours: so one with several `<algo>` one after the other is
read, and no document type, hence no entity, can ever be declared in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from hccl_interop.msccl.algorithm import STEP_TYPES, Gpu, Local, ThreadBlock, XmlAlgorithm, XmlStep
from hccl_interop.msccl.protocols import PROTOCOLS
from hccl_py.documents.checks import defect, format_value
from hccl_py.documents.disk import PathLike, format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.parse import decoded
from hccl_py.errors import FileError, ProgramFileError, did_you_mean

XML_LIMIT = 32 << 20
"""Bytes of a file that are read unless the caller allows more."""

MAX_STEPS = 1 << 17
MAX_BLOCKS = 1 << 14
MAX_CHUNKS = (1 << 15) - 1
"""The runtime keeps offsets in 16 bits."""

_MAX_BYTES = (1 << 62) - 1
_DEEPEST = 8
_ALGO, _GPU, _BLOCK, _STEP = range(1, 5)
_CHILDREN = {0: ("algo",), _ALGO: ("gpu",), _GPU: ("tb", "copy"), _BLOCK: ("step",), _STEP: ()}

MSCCL = FileKind(
    noun="MSCCL algorithm",
    parts="steps",
    error=ProgramFileError,
    larger="Allow more with --max-size.",
    suffixes=(".xml",),
    mark=re.compile(rb"<algo\s"),
)


def read_algorithms(path: PathLike, max_bytes: int | None = None) -> tuple[XmlAlgorithm, ...]:
    """Return the algorithms of a file, one or more.

    Raises ProgramFileError for a file that cannot be read, is too large, or says what no algorithm
    could: its message is one sentence with the line.
    """
    limit = XML_LIMIT if max_bytes is None else max_bytes
    return algorithms_from(read_file(path, limit, MSCCL), format_path(path))


def algorithms_from(data: bytes, name: str) -> tuple[XmlAlgorithm, ...]:
    """Return the algorithms of a file's bytes; raises as `read_algorithms`."""
    return named(f"{name:.200}", MSCCL, lambda: _algorithms(data, name))


_DECLARATION = re.compile(r"<\?xml\s[^>]*\?>")


def _algorithms(data: bytes, name: str) -> tuple[XmlAlgorithm, ...]:
    text = decoded(data, MSCCL).removeprefix("\ufeff")
    text = _DECLARATION.sub(lambda found: "\n" * found[0].count("\n"), text)
    parser = expat.ParserCreate("utf-8")
    reader = _XmlReader(parser)
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    try:
        parser.Parse("<algorithms>", False)
        parser.Parse(text, False)
        parser.Parse("</algorithms>", True)
    except expat.ExpatError as error:
        raise _broken(text, error) from None
    except ValueError as error:  # half of a surrogate pair cannot get here, a NUL can
        raise FileError(f"$: the text is no XML: {error}.", MSCCL.text) from None
    if not reader.found:
        raise defect("$", "an element <algo>", "none", "Is it an MSCCL algorithm?")
    return tuple(open_algo.closed(name) for open_algo in reader.found)


def _broken(text: str, error: expat.ExpatError) -> FileError:
    lines = text.split("\n")
    here = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
    if "<!DOCTYPE" in here or "<!ENTITY" in here:
        hint = "An algorithm needs none; take it out."
        return defect(f"line {error.lineno}", "no document type", "one", hint)
    why = expat.ErrorString(error.code)
    hint = "Check the file with any XML tool; was it cut off?"
    return FileError(f"line {error.lineno}: the text is no XML: {why}.", hint)


@dataclass
class _OpenBlock:
    """A threadblock that is being read."""

    attributes: Mapping[str, str]
    line: int
    steps: list[XmlStep] = field(default_factory=list)


@dataclass
class _OpenGpu:
    """A GPU that is being read."""

    attributes: Mapping[str, str]
    line: int
    blocks: list[_OpenBlock] = field(default_factory=list)
    copies: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class _OpenAlgo:
    """An algorithm that is being read: checked as a whole when the file is over."""

    attributes: Mapping[str, str]
    line: int
    gpus: list[_OpenGpu] = field(default_factory=list)

    def closed(self, file: str) -> XmlAlgorithm:
        """Return it with everything checked that no step says by itself."""
        at = _XmlAttributes("algo", self.attributes, self.line)
        ranks = at.number("ngpus", 1, MAX_CHUNKS)
        gpus = sorted((_gpu(gpu, ranks) for gpu in self.gpus), key=lambda gpu: gpu.id)
        _check_ids([(gpu.id, gpu.line) for gpu in gpus], "gpu")
        if len(gpus) != ranks:
            missing = next(r for r in range(ranks) if r >= len(gpus) or gpus[r].id != r)
            hint = "ngpus says how many there are, numbered from 0."
            raise defect(f"line {self.line}", f"a <gpu> of id {missing}", "none", hint)
        inplace = at.flag("inplace", "0")
        return XmlAlgorithm(
            file=file,
            name=self.attributes.get("name", "")[:200],
            protocol=at.word("proto", PROTOCOLS),
            channels=at.number("nchannels", 0, MAX_CHUNKS, optional=True),
            chunks=at.number("nchunksperloop", 1, MAX_CHUNKS),
            collective=self.attributes.get("coll", "custom")[:200],
            inplace=inplace,
            outofplace=at.flag("outofplace", "0" if inplace else "1"),
            gpus=tuple(gpus),
            line=self.line,
            min_bytes=at.number("minBytes", -1, _MAX_BYTES, optional=True),
            max_bytes=at.number("maxBytes", -1, _MAX_BYTES, optional=True),
            threads=at.number("nthreads", 0, MAX_CHUNKS, optional=True) or 0,
        )


class _XmlReader:
    """Keeps what is open; elements that the format does not have are passed over, as the runtime
    does.
    """

    def __init__(self, parser: expat.XMLParserType) -> None:
        self._parser = parser
        self._path: list[str] = []
        self._passed_over = 0
        self._steps = self._blocks = 0
        self.found: list[_OpenAlgo] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        line = self._parser.CurrentLineNumber
        self._path.append(name)
        depth = len(self._path) - 1  # below the root element
        if depth > _DEEPEST:
            hint = "An algorithm has GPUs, these have threadblocks, and these have steps."
            raise defect(f"line {line}", f"at most {_DEEPEST} levels of elements", "more", hint)
        if depth == 0:
            return
        if self._passed_over or name not in _CHILDREN.get(depth - 1, ()):
            self._passed_over = self._passed_over or depth
            return
        if depth == _ALGO:
            self.found.append(_OpenAlgo(attributes, line))
        elif depth == _GPU:
            self.found[-1].gpus.append(_OpenGpu(attributes, line))
        elif depth == _STEP:
            self._count_step(line)
            self.found[-1].gpus[-1].blocks[-1].steps.append(_step(attributes, line))
        elif name == "tb":
            self._blocks += 1
            if self._blocks > MAX_BLOCKS:
                raise _too_many("threadblocks", MAX_BLOCKS, line)
            self.found[-1].gpus[-1].blocks.append(_OpenBlock(attributes, line))
        else:
            self._count_step(line)
            self.found[-1].gpus[-1].copies.append(_copy(attributes, line))

    def end(self, name: str) -> None:
        """Close an element."""
        if self._passed_over == len(self._path) - 1:
            self._passed_over = 0
        self._path.pop()

    def _count_step(self, line: int) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _too_many("steps", MAX_STEPS, line)


def _too_many(what: str, most: int, line: int) -> FileError:
    hint = "MSCCL's runtime takes 64 threadblocks of 64 steps per GPU."
    return defect(f"line {line}", f"at most {most} {what}", "more", hint)


def _gpu(gpu: _OpenGpu, ranks: int) -> Gpu:
    at = _XmlAttributes("gpu", gpu.attributes, gpu.line)
    number = at.number("id", 0, ranks - 1)
    blocks = sorted((_block(block, number, ranks) for block in gpu.blocks), key=lambda b: b.id)
    _check_ids([(block.id, block.line) for block in blocks], "tb")
    i_chunks, o_chunks, s_chunks = (at.number(f"{name}_chunks", 0, MAX_CHUNKS) for name in "ios")
    copies = tuple(gpu.copies)
    return Gpu(number, i_chunks, o_chunks, s_chunks, tuple(blocks), copies, gpu.line)


def _block(block: _OpenBlock, rank: int, ranks: int) -> ThreadBlock:
    at = _XmlAttributes("tb", block.attributes, block.line)
    peers = [at.number(name, -1, ranks - 1) for name in ("send", "recv")]
    if rank in peers:
        found = f"rank {rank} itself"
        hint = "Inside a rank, steps cpy and re need no peer: -1."
        raise defect(f"line {block.line}", "another rank, or -1, as a peer", found, hint)
    return ThreadBlock(
        id=at.number("id", 0, MAX_CHUNKS),
        send=peers[0],
        recv=peers[1],
        channel=at.number("chan", -1 if peers == [-1, -1] else 0, MAX_CHUNKS),
        steps=tuple(block.steps),
        line=block.line,
    )


def _check_ids(ids: list[tuple[int, int]], element: str) -> None:
    seen: dict[int, int] = {}
    for number, line in ids:
        if number in seen:
            first = min(seen[number], line)
            hint = f"Line {first} has it already."
            raise defect(
                f"line {max(seen[number], line)}",
                f"a <{element}> with an id of its own",
                f"id {number} again",
                hint,
            )
        seen[number] = line


def _copy(attributes: Mapping[str, str], line: int) -> tuple[int, int, int]:
    at = _XmlAttributes("copy", attributes, line)
    return at.number("i_off", 0, MAX_CHUNKS), at.number("o_off", 0, MAX_CHUNKS), line


def _step(attributes: Mapping[str, str], line: int) -> XmlStep:
    at = _XmlAttributes("step", attributes, line)
    kind = at.word("type", STEP_TYPES)
    form = STEP_TYPES[kind]
    depid = at.number("depid", -1, MAX_CHUNKS)
    return XmlStep(
        s=at.number("s", 0, MAX_CHUNKS),
        type=kind,
        src=_local(at, "src", used=form.src),
        dst=_local(at, "dst", used=form.dst),
        cnt=at.number("cnt", 0, MAX_CHUNKS),
        depid=depid,
        deps=at.number("deps", -1, MAX_CHUNKS),
        hasdep=at.flag("hasdep", None),
        line=line,
    )


def _local(at: _XmlAttributes, side: str, *, used: bool) -> Local:
    buffer = at.word(f"{side}buf", ("i", "o", "s"))
    return Local(buffer, at.number(f"{side}off", 0 if used else -1, MAX_CHUNKS))


class _XmlAttributes:
    """The attributes of one element."""

    def __init__(self, element: str, attributes: Mapping[str, str], line: int) -> None:
        self._element, self._given, self._place = element, attributes, f"line {line}"

    def number(self, name: str, low: int, high: int, *, optional: bool = False) -> int:
        """Return a whole number; None where it may be left out and is."""
        text = self._text(name, optional)
        if text is None:
            return None  # type: ignore[return-value]
        text = text.strip()
        if len(text) < 21 and re.fullmatch(r"-?[0-9]+", text) and low <= int(text) <= high:
            return int(text)
        expected = f"{name} of <{self._element}> from {low} to {high}"
        hint = "Write a plain whole number in that range."
        raise defect(self._place, expected, format_value(text), hint)

    def flag(self, name: str, usual: str | None) -> bool:
        """Return a 0 or 1; `usual` where it may be left out and is."""
        text = self._text(name, usual is not None)
        text = usual if text is None else text.strip()
        if text in ("0", "1"):
            return text == "1"
        expected = f"{name} of <{self._element}> 0 or 1"
        raise defect(self._place, expected, format_value(text), "The runtime takes no other.")

    def word(self, name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
        """Return one of some words."""
        text = self._text(name, False) or ""
        if text not in known:
            words = ", ".join(known)
            expected = f"{name} of <{self._element}> one of {words}"
            hint = did_you_mean(text[:40], known)
            raise defect(self._place, expected, format_value(text), hint)
        return text

    def _text(self, name: str, optional: bool) -> str | None:
        text = self._given.get(name)
        if text is None and not optional:
            hint = f"It has {', '.join(map(format_value, list(self._given)[:12])) or 'none'}."
            raise defect(self._place, f"an attribute {name} of <{self._element}>", "none", hint)
        return text
