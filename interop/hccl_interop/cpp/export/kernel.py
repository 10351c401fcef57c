"""The kernel in C++: a function for every section, a loop for every loop, a call for every task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from hccl_interop.cpp.export.calls import (
    KernelWords,
    Terms,
    Use,
    call_of,
    depth_of,
    multiple_text,
    uses_of,
)
from hccl_interop.cpp.export.data_cuts import Path
from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.folding import CppStep, Loop, Node
from hccl_interop.cpp.export.forks import fork_or_join
from hccl_interop.cpp.export.formulas import (
    BOUND,
    DEVICE,
    RANK,
    RANKS,
    Binary,
    Formula,
    Number,
    Spelling,
    Table,
    Variable,
    parts,
    text_of,
    variables,
)
from hccl_interop.cpp.export.memory_slots import DATA, Length, SlotRow
from hccl_interop.cpp.export.steps import Branch, CppSection, steps_in
from hccl_interop.cpp.export.text import CppLines, camel_case, listed
from hccl_py.enums import READS, WRITES

_COUNTS = {"ranks": "kRanks", "devices": "kDevices", "servers": "kServers"}

_TAKEN = {
    *("ExecOp", "Round", "Fork", "Join", "Notify", "OpParam", "Peer", "Resources", "Slice"),
    *("Part", "EvenPart", "Front", "Back", "FromZero", "Aligned"),
}
"""Names of the project that no section can have."""

_CUTS = {"aligned": "Part", "even": "EvenPart", "front": "Front", "back": "Back"}
"""The functions of cuts."""

_MOST_INT = (1 << 15) - 1
"""Two numbers up to this one have a product that an int holds."""

_LONG = 40
"""Characters of a value that has a variable, however often it is used."""

_OFTEN, _LONG_INDEX = 2, 16
"""Uses and characters from which on an index in a loop has a variable."""

_SHORT = 30
"""Characters of a slot that reads well where it is used."""

_GIVEN = ("param", "res")
"""The arguments of all functions of the kernel."""

_OF_RANK = {"server": "param.rank / kDevices", "device": "param.rank % kDevices"}


def write_kernel(
    sections: Sequence[CppSection], fitter: Fitter, words: KernelWords, whole: str = "ExecOp"
) -> tuple[str, str]:
    """Return the algorithm in C++: tables, then functions, the last of which is `whole`."""
    return KernelWriter(fitter, words).kernel(sections, whole)


@dataclass
class Scope:
    """The names taken and the variables declared in a block and in those around it."""

    names: set[str] = field(default_factory=set)
    known: dict[Use, str] = field(default_factory=dict)
    loops: tuple[str, ...] = ()
    indices: dict[Formula, str] = field(default_factory=dict)

    def inner(self, *loops: str) -> Scope:
        """Return the scope of a block inside."""
        return Scope(
            self.names | {*loops}, dict(self.known), (*self.loops, *loops), dict(self.indices)
        )

    def name(self, wish: str) -> str:
        """Return a free name, and take it."""
        found, number = wish, 1
        while found in self.names:
            number += 1
            found = f"{wish}{number}"
        self.names.add(found)
        return found


class KernelWriter:
    """The text of an algorithm: of its loops, of variables, and of a call for every step."""

    def __init__(self, fitter: Fitter, words: KernelWords) -> None:
        self._fitter, self._words = fitter, words
        self._tables: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}
        self._wishes: Counter[str] = Counter()
        self._terms: dict[int, tuple[CppStep, Terms]] = {}
        self._strides: dict[Length, str] = {}
        self._functions: dict[str, str] = {}

    def kernel(self, sections: Sequence[CppSection], name_of_all: str) -> tuple[str, str]:
        """Return tables and functions; the last function is all of the algorithm."""
        out, whole = CppLines(), CppLines(1)
        names, scope = Scope(set(_TAKEN)), Scope()
        for section in sections:
            if section.label and len(sections) > 1:
                name = names.name(camel_case(section.label))
                inside = CppLines(1)
                self._section(section, inside, Scope())
                out.comment(section.said)
                self._function(out, name, inside)
                if section.is_function:
                    self._functions[section.label] = name
                else:
                    whole.checked(name, _GIVEN)
            else:
                self._section(section, whole, scope)
        self._function(out, name_of_all, whole)
        return self._tables_text(), str(out).rstrip("\n") + "\n"

    def _function(self, out: CppLines, name: str, inside: CppLines) -> None:
        """Add a function, and at its begin the variables that its body needs."""
        text = str(inside)
        head = self._head(text)
        body = "".join([*head, text])
        given = [
            f"const {kind}& {word}" if re.search(rf"\b{word}\b", body) else f"const {kind}&"
            for kind, word in (("OpParam", "param"), ("Resources", "res"))
        ]
        out.add(f"HcclResult {name}({', '.join(given)})")
        out.add("{")
        for line in head:
            out.add(line)
        for line in text.splitlines():
            out.add(line)
        out.add("    return HCCL_SUCCESS;")
        out.add("}")
        out.add()

    def _head(self, text: str) -> list[str]:
        """Return the declarations of the variables of a rank and of the data that a body needs."""
        head = [
            f"    const uint32_t {word} = {value};"
            for word, value in {"rank": "param.rank", **_OF_RANK}.items()
            if re.search(rf"(?<![.\w]){word}\b", text)
        ]
        strides = [
            f"    const uint64_t {name} = {self._length(length)};"
            for length, name in self._strides.items()
            if re.search(rf"\b{name}\b", text)
        ]
        if re.search(r"\bdata\b", "".join([text, *strides])):
            head.append("    const Slice data{0, param.bytes};")
        if re.search(r"\bmain\b", text):
            head.append("    const ThreadHandle main = res.threads[0];")
        return head + strides

    def _section(self, section: CppSection, out: CppLines, scope: Scope) -> None:
        branches = [branch for branch in section.branches if branch.nodes]
        left = list(range(self._fitter.ranks))
        for number, branch in enumerate(branches):
            is_rest = set(branch.ranks) == set(left)
            if is_rest and number == 0:
                self._block(branch.nodes, out, scope)
                return
            condition = "" if is_rest else f" if ({self._condition(branch, left)})"
            out.add(f"{'} else' * (number > 0)}{condition} {{".strip())
            inner = out.deeper()
            self._block(branch.nodes, inner, scope.inner())
            out.extend(inner)
            left = [rank for rank in left if rank not in branch.ranks]
        if branches:
            out.add("}")

    def _condition(self, branch: Branch, left: Sequence[int]) -> str:
        found = self._fitter.condition(branch.ranks, left)
        if found is None:
            flags = tuple(int(rank in branch.ranks) for rank in range(self._fitter.ranks))
            found = Table(flags, (len(flags),), (RANK,))
        return text_of(found, self._spelling(Scope(), "takesPart"))

    def _block(self, nodes: Sequence[Node], out: CppLines, scope: Scope) -> None:
        """Write nodes, each behind the variables that it is the first to need."""
        counts = Counter(use for step in steps_in(nodes) for use in self._uses(step))
        self._declare_indices(nodes, out, scope)
        number = 0
        while number < len(nodes):
            pair = nodes[number : number + 2]
            known = fork_or_join(pair, len(scope.loops), lambda step: dict(self._of(step).fields))
            if known is not None and self._count_of(pair[0]) == self._count_of(pair[1]):
                out.checked(known, ["res", self._workers(pair[0], scope)])
                number += 2
                continue
            self._node(nodes[number], nodes, counts, out, scope)
            number += 1
        out.drop_unused()

    def _declare_indices(self, nodes: Sequence[Node], out: CppLines, scope: Scope) -> None:
        """Write the rests of divisions by which several peers and parts are chosen in a loop."""
        uses = dict.fromkeys(use for step in steps_in(nodes) for use in self._uses(step))
        counts = Counter(
            part
            for use in uses
            for formula in use.formulas
            for part in parts(formula)
            if isinstance(part, Binary) and part.operator == "%" and part not in scope.indices
        )
        for formula, count in counts.items():
            if count < _OFTEN or not 0 < depth_of(formula) == len(scope.loops):
                continue
            text = text_of(formula, self._spelling(scope))
            if len(text) > _LONG_INDEX:
                is_device = {"device"} <= variables(formula)
                name = scope.name("other" if is_device else "index")
                out.set(f"const uint32_t {name}", f"{text};")
                scope.indices[formula] = name

    def _node(
        self,
        node: Node,
        nodes: Sequence[Node],
        counts: Counter[Use],
        out: CppLines,
        scope: Scope,
    ) -> None:
        """Write one of several nodes, behind the variables that it is the first to need."""
        inside = {use: None for step in steps_in([node]) for use in self._uses(step)}
        for use in inside:
            is_here = use.depth <= len(scope.loops) and use not in scope.known
            if is_here and self._is_worth_it(use, counts[use], scope):
                self._declare(use, nodes, out, scope)
        if isinstance(node, CppStep):
            self._step(node, out, scope)
        else:
            self._loop(node, out, scope)

    def _step(self, step: CppStep, out: CppLines, scope: Scope) -> None:
        """Write the call of a step, or of the function that has its steps."""
        if called := self._of(step).shape.function:
            out.checked(self._functions[called], _GIVEN)
            return
        spelling = self._spelling(scope)
        out.checked(
            *call_of(self._of(step), self._words, spelling, lambda use: self._name(use, scope))
        )

    def _count_of(self, node: Node) -> Formula | None:
        return self._fitter.formula(node.count) if isinstance(node, Loop) else None

    def _workers(self, node: Node, scope: Scope) -> str:
        """Return the number of workers of a fork or join."""
        count = self._count_of(node)
        assert count is not None
        if count == Number(self._words.threads - 1):
            return "kThreads - 1"
        if isinstance(count, Number):
            return self._count_text(count.value)
        return text_of(count, self._spelling(scope))

    def _is_worth_it(self, use: Use, times: int, scope: Scope) -> bool:
        """True if a variable reads better than the value."""
        value = self._value(use, scope)
        if use.kind in ("slot", "place") and len(value) <= _SHORT:
            return False
        return value not in ("main", "data") and (times > 1 or len(value) > _LONG)

    def _loop(self, loop: Loop, out: CppLines, scope: Scope) -> None:
        counter = self._counter(loop, scope)
        count = self._fitter.formula(loop.count)
        text = text_of(count, self._spelling(scope), BOUND)
        if isinstance(count, Number):
            text = str(count.value) if self._doubles(loop, scope) else self._count_text(count.value)
        out.add(f"for (uint32_t {counter} = 0; {counter} < {text}; ++{counter}) {{")
        inner = out.deeper()
        self._block(loop.body, inner, scope.inner(counter))
        out.extend(inner)
        out.add("}")

    def _doubles(self, loop: Loop, scope: Scope) -> bool:
        """Return True if a loop shifts by its counter: its turns are bits, not ranks."""
        counter = Variable(f"loop{len(scope.loops)}")
        return any(
            isinstance(part, Binary) and part.operator in ("<<", ">>") and part.right == counter
            for step in steps_in(loop.body)
            for formula in self._of(step).fields.values()
            for part in parts(formula)
        )

    def _count_text(self, count: int) -> str:
        sizes = {self._fitter.ranks: "kRanks"}
        if self._fitter.has_servers:
            sizes[self._fitter.devices] = "kDevices"
        if count > 1 and count in sizes:
            return sizes[count]
        return f"{sizes[count + 1]} - 1" if count > 1 and count + 1 in sizes else str(count)

    def _counter(self, loop: Loop, scope: Scope) -> str:
        """Return a name for the counter of a loop: a lane where every turn has its own thread."""
        own = f"loop{len(scope.loops)}"
        threads = [
            formula
            for step in steps_in(loop.body)
            for formula in map(self._of(step).fields.get, ("thread", "owner"))
            if formula is not None
        ]
        if any(own in variables(formula) for formula in threads):
            wishes = ["lane", "sub"]
        else:
            wishes = ["step", "i", "j", "k"]
        return next(
            (wish for wish in wishes if wish not in scope.names), wishes[-1] + str(len(scope.loops))
        )

    def _uses(self, step: CppStep) -> Iterator[Use]:
        """Yield the values in the call of a step."""
        return uses_of(self._of(step))

    def _of(self, step: CppStep) -> Terms:
        if id(step) not in self._terms:
            self._terms[id(step)] = step, Terms.of(step, self._fitter)
        return self._terms[id(step)][1]

    def _declare(self, use: Use, nodes: Sequence[Node], out: CppLines, scope: Scope) -> None:
        kinds = {"peer": "const Peer&", "thread": "const ThreadHandle"}
        kinds |= {"slot": "const uint64_t", "place": "const uint64_t", "slice": "const Slice"}
        value = self._value(use, scope)
        name = scope.name(self._wish(use, nodes))
        scope.known[use] = name
        out.set(f"{kinds[use.kind]} {name}", f"{value};")

    def _wish(self, use: Use, nodes: Sequence[Node]) -> str:
        """Return the wanted name of a variable."""
        if use.kind in ("thread", "slot", "place"):
            return "worker" if use.kind == "thread" else use.kind
        if use.kind == "slice":
            _, origin = cast("tuple[Path, int]", use.where)
            if origin:  # the part counts from the begin of a slot
                return "inSlot"
            return "mine" if use.formulas[0] in (RANK, DEVICE) else "chunk"
        (peer,) = use.formulas
        right = Binary("%", Binary("+", RANK, Number(1)), RANKS)
        before = Binary("-", Binary("+", RANK, RANKS), Number(1))
        if peer == right:
            return "right"
        if peer == Binary("%", before, RANKS):
            return "left"
        terms = [self._of(step) for step in steps_in(nodes)]
        peers = {one.peer for one in terms if one.peer is not None and one.peer.depth == use.depth}
        if len(peers) == 1:
            return "peer"
        read = {one.peer for one in terms if one.shape.kind in READS}
        written = {one.peer for one in terms if one.shape.kind in WRITES}
        if use in read or use in written:
            return "from" if use in read else "to"
        if len(peers) == 2 and (peers & read or peers & written):  # the other one is the partner
            return "to" if peers & read else "from"
        return "peer"

    def _name(self, use: Use, scope: Scope) -> str:
        return scope.known.get(use) or self._value(use, scope)

    def _value(self, use: Use, scope: Scope) -> str:
        spelling = self._spelling(scope, {"slice": "chunk"}.get(use.kind, use.kind))
        if use.kind == "peer":
            return f"res.{self._words.planes[str(use.where)]}[{text_of(use.formulas[0], spelling)}]"
        if use.kind == "thread":
            if use.formulas[0] == Number(0):
                return "main"
            if use.formulas[0] == Number(self._words.threads - 1) != Number(1):
                return "res.threads[kThreads - 1]"
            return f"res.threads[{text_of(use.formulas[0], spelling)}]"
        if use.kind == "slot":
            unit = "param.stride" if use.where else "param.bytes"
            return multiple_text(use.formulas[0], unit, spelling)
        if use.kind == "place":
            assert isinstance(use.where, SlotRow)
            return self._place(use.where, use.formulas[0], spelling)
        path, origin = cast("tuple[Path, int]", use.where)
        return self._slice(path, origin, use.formulas, spelling)

    def _place(self, slots: SlotRow, many: Formula, spelling: Spelling) -> str:
        terms = [multiple_text(Number(n), self._stride(one), spelling) for n, one in slots.base]
        if slots.stride is not None and many != Number(0):
            terms.append(multiple_text(many, self._stride(slots.stride), spelling))
        return " + ".join(terms)

    def _stride(self, length: Length) -> str:
        """Return the name of a stride, which every function that has it declares."""
        if length == DATA:
            return "param.bytes"
        if length not in self._strides:
            wish, taken = self._slot_name(length), self._strides.values()
            names = (wish if k == 1 else f"{wish}{k}" for k in range(1, len(taken) + 2))
            self._strides[length] = next(name for name in names if name not in taken)
        return self._strides[length]

    def _slot_name(self, length: Length) -> str:
        """Return a name for the bytes of a slot, by the largest part of the data that it holds:
        frontDeviceSlot for that of a device of the front of the data.
        """
        sizes = {self._fitter.ranks: "Rank", 2: "Half"}
        if self._fitter.has_servers:
            servers = self._fitter.ranks // self._fitter.devices
            sizes |= {servers: "Server", self._fitter.devices: "Device"}
        words = [
            sizes.get(cut.number, "Part") if cut.has_index else cut.kind.capitalize()
            for cut in length.path
        ]
        name = "".join([*words, "Slot"])
        return name[0].lower() + name[1:]

    def _length(self, length: Length) -> str:
        """Return the bytes of a stride."""
        text = self._largest(length.path) + (" + kUnit" if length.has_more else "")
        if length.others:
            others = " + ".join(self._length(one) for one in length.others)
            more = f" + {length.more}" if length.more else ""
            text = f"std::max<uint64_t>({text},\n        {others}{more})"
        return f"Aligned({text})" if length.is_aligned else text

    def _largest(self, path: Path) -> str:
        """Return the size of the first part of all cuts."""
        if not path:
            return "param.bytes"
        first = (Number(0),) * sum(cut.has_index for cut in path)
        spelling = self._spelling(Scope())
        return f"{self._slice(path, 0, (*first, Number(1)), spelling)}.size"

    def _slice(
        self, path: Path, origin: int, formulas: tuple[Formula, ...], spelling: Spelling
    ) -> str:
        """Return a part of the data: the last of `formulas` is the number of parts in a row."""
        text, taken = "data", 0
        for number, cut in enumerate(path):
            if taken and taken == origin:
                text, origin = f"FromZero({text})", -1
            if not cut.has_index:
                text = f"{_CUTS[cut.kind]}({text}, {cut.number})"
                continue
            is_last = number + 1 == len(path)
            count = formulas[-1] if is_last else Number(1)
            more = "" if count == Number(1) else f", {text_of(count, spelling)}"
            index = text_of(formulas[taken], spelling)
            text = f"{_CUTS[cut.kind]}({text}, {self._count_text(cut.number)}, {index}{more})"
            taken += 1
        return text

    def _spelling(self, scope: Scope, wish: str = "number") -> Spelling:
        names = {**_COUNTS, "rank": "rank", "server": "server", "device": "device"}
        names |= {f"loop{depth}": name for depth, name in enumerate(scope.loops)}
        return Spelling(names, lambda table: self._table(table, wish), _wide, scope.indices)

    def _table(self, table: Table, wish: str) -> str:
        key = (table.values, table.shape)
        if sorted(table.values) == list(range(len(table.values))):
            wish = "place"
        if key not in self._tables:
            self._wishes[wish] += 1
            number = "" if self._wishes[wish] == 1 else str(self._wishes[wish])
            self._tables[key] = f"k{wish[0].upper()}{wish[1:]}{number}"
        return self._tables[key]

    def _tables_text(self) -> str:
        out = CppLines()
        for (values, shape), name in self._tables.items():
            width = next(bits for bits in (8, 16, 64) if max(values) < 1 << bits)
            bounds = "".join(f"[{length}]" for length in shape)
            for line in listed(
                f"constexpr uint{width}_t {name}{bounds} = {{", _rows(values, shape), "};", 4
            ):
                out.add(line)
        return str(out)


def _wide(number: int) -> str:
    """Return a number in C++, with 64 bits where a product with it could overflow an int."""
    return f"{number}ULL" if number > _MOST_INT else str(number)


def _rows(values: Sequence[int], shape: Sequence[int]) -> Iterator[str]:
    """Yield the numbers of a table, in brackets for all but the last index."""
    if len(shape) == 1:
        yield from map(str, values)
        return
    size = len(values) // shape[0]
    for start in range(0, len(values), size):
        yield "{" + ", ".join(_rows(values[start : start + size], shape[1:])) + "}"
