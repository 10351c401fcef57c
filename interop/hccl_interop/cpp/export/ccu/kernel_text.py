"""The kernels in C++: loops over peers and steps, and a call of the engine for every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hccl_interop.cpp.export.calls import Terms, Use
from hccl_interop.cpp.export.folding import CppStep, Node
from hccl_interop.cpp.export.formulas import Number, text_of
from hccl_interop.cpp.export.kernel import KernelWriter, Scope
from hccl_interop.cpp.export.steps import Branch, CppSection
from hccl_interop.cpp.export.text import CppLines, listed
from hccl_py.enums import TaskKind

_CALLS = {
    TaskKind.COPY: "Copy",
    TaskKind.REDUCE: "Reduce",
    TaskKind.READ: "Read",
    TaskKind.READ_REDUCE: "ReadReduce",
    TaskKind.WRITE: "Write",
    TaskKind.WRITE_REDUCE: "WriteReduce",
    TaskKind.NOTIFY_POST: "Record",
    TaskKind.NOTIFY_WAIT: "Await",
}


class EngineWriter(KernelWriter):
    """The bodies of kernels; the words' memories are those of the project's enumeration."""

    def body(self, branches: Sequence[Branch]) -> CppLines:
        """Return the steps of all groups of ranks."""
        out = CppLines(1)
        self._section(CppSection("", list(branches)), out, Scope({"param", "engine", "rank"}))
        return out

    def with_variables(self, text: str) -> str:
        """Return a body behind the variables of the rank that it needs."""
        return "".join(f"{line}\n" for line in self._head(text)) + text

    def tables(self) -> str:
        """Return the tables of all bodies."""
        return self._tables_text()

    def _uses(self, step: CppStep) -> Iterator[Use]:
        peer = self._of(step).peer
        if peer is not None:
            yield peer

    def _wish(self, use: Use, nodes: Sequence[Node]) -> str:
        return "peer"

    def _is_worth_it(self, use: Use, times: int, scope: Scope) -> bool:
        return True

    def _value(self, use: Use, scope: Scope) -> str:
        spelling = self._spelling(scope, "peer")
        return f"param.{self._words.planes[str(use.where)]}[{text_of(use.formulas[0], spelling)}]"

    def _step(self, step: CppStep, out: CppLines, scope: Scope) -> None:
        terms = self._of(step)
        name, arguments = _CALLS[terms.shape.kind], []
        if terms.peer is not None:
            arguments.append(self._name(terms.peer, scope))
        if terms.shape.kind.moves_data:
            arguments += [self._place(terms, side, scope) for side in ("dst", "src")]
            size = self._number(terms, "size", scope)
            arguments.append(f"OrNone({size})" if terms.shape.may_be_empty else f"Size({size})")
            arguments.append(self._number(terms, "bit", scope))
        elif terms.peer is None:
            name = "AwaitMoves"
            arguments = [self._number(terms, "event", scope), self._mask(terms, scope)]
        else:
            arguments.append(self._number(terms, "notify", scope))
        head = f"engine.{name}("
        for line in listed(head, arguments, ");", len(head)):
            out.add(line)

    def _place(self, terms: Terms, side: str, scope: Scope) -> str:  # type: ignore[override]
        memory = self._words.memories[terms.shape.src if side == "src" else terms.shape.dst].owner
        if side not in terms.fields:
            return f"Place({memory})"
        return f"Place({memory}, {self._number(terms, side, scope)})"

    def _number(self, terms: Terms, name: str, scope: Scope) -> str:
        return text_of(terms.fields[name], self._spelling(scope, name))

    def _mask(self, terms: Terms, scope: Scope) -> str:
        mask = terms.fields["mask"]
        if isinstance(mask, Number):
            return f"0x{mask.value:x}"
        return self._number(terms, "mask", scope)
