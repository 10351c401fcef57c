"""Lengths: the offsets and sizes that a launch passes to a kernel, each of them once.

A kernel knows ranks and peers when it is registered, and learns sizes of data at every launch. The
offsets and sizes of a group's moves that are equal at all ranks and all sizes are one argument, but
for offsets in the user's memory: there slots are as far apart as the data of all rounds is long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hccl_interop.cpp.export.calls import Use, bytes_of, offset_of, offset_uses
from hccl_interop.cpp.export.ccu.instruction_order import AlikeRanks
from hccl_interop.cpp.export.folding import CppStep
from hccl_interop.cpp.export.kernel import KernelWriter, Scope
from hccl_interop.cpp.export.memory import USER, Home, Zone
from hccl_interop.cpp.export.points import Points
from hccl_interop.cpp.export.sizes import SideForm, SizeFields, SizeForm, StepLayout, columns_of
from hccl_interop.cpp.export.steps import Branch, CppSection, StepShape
from hccl_interop.cpp.export.text import CppLines
from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.values import IntArray


@dataclass
class LengthList:
    """The lengths of a group in a kernel, in the order in which moves first need them."""

    group: AlikeRanks
    sizes: SizeFields
    zones: Mapping[str, Zone]
    steps: list[CppStep] = field(default_factory=list)
    numbers: dict[tuple[bool, bytes], int] = field(default_factory=dict)

    def offset(self, program: Program, number: int, side: str) -> int:
        """Return the number of the offset of one side of an instruction."""
        one = self.group.instructions[number]
        buffer = program.buffers[one.src_buffer if side == "src" else one.dst_buffer]
        zone = self.zones.get(buffer)
        column = self.column(number, side) + (0 if zone is None else zone.offset)
        layout, numbers = self.sizes.fields(self.group.batch, number)
        form = None
        if layout is not None:
            mine = layout.src if side == "src" else layout.dst
            form = StepLayout(mine, SideForm(is_fixed=True), SizeForm())
        shape = StepShape(TaskKind.COPY, is_local=True, src=buffer, layout=form)
        fields = {
            f"src{name.removeprefix(side)}": values
            for name, values in numbers.items()
            if name.startswith(side)
        }
        return self._number(column, shape, fields)

    def size(self, number: int) -> int:
        """Return the number of the size of an instruction."""
        layout, numbers = self.sizes.fields(self.group.batch, number)
        fixed = SideForm(is_fixed=True)
        form = None if layout is None else StepLayout(fixed, fixed, layout.size)
        shape = StepShape(TaskKind.COPY, is_local=True, layout=form)
        fields = {name: values for name, values in numbers.items() if name.startswith("size")}
        return self._number(self.column(number, "size"), shape, fields)

    def may_be_empty(self, number: int) -> bool:
        """Return True for a move that has no bytes at some size."""
        layout, _ = self.sizes.fields(self.group.batch, number)
        cuts = () if layout is None else layout.size.path
        is_rounded = any(cut.kind == "aligned" for cut in cuts)
        return is_rounded or bool((self.column(number, "size") == 0).any())

    def column(self, number: int, name: str) -> IntArray:
        """Return offsets or sizes in bytes, [samples, ranks]."""
        found = columns_of(self.sizes.samples, self.group.batch, number)[name]
        return found[:, self.group.places]

    def _number(self, column: IntArray, shape: StepShape, fields: Mapping[str, IntArray]) -> int:
        key = shape.src in USER, column.tobytes()
        if key not in self.numbers:
            self.numbers[key] = len(self.steps)
            points = {
                name: Points.of_ranks(self.group.ranks, values[self.group.places])
                for name, values in fields.items()
            }
            self.steps.append(CppStep(shape, points))
        return self.numbers[key]


class LengthWriter(KernelWriter):
    """Host code that lists the lengths of a launch."""

    def listing(self, name: str, branches: Sequence[Branch]) -> str:
        """Return the function that lists the lengths of a launch."""
        inside = CppLines(1)
        self._section(CppSection("", list(branches)), inside, Scope({"param", "lengths", "rank"}))
        head = "".join(f"{line}\n" for line in self._head(str(inside)))
        taken = "const OpParam& param" if "param" in head + str(inside) else "const OpParam&"
        given = "std::vector<uint64_t>& lengths" if str(inside) else "std::vector<uint64_t>&"
        return f"void {name}({taken}, {given})\n{{\n{head}{inside}}}\n\n"

    def tables(self) -> str:
        """Return the tables of all functions."""
        return self._tables_text()

    def _uses(self, step: CppStep) -> Iterator[Use]:
        terms = self._of(step)
        if terms.shape.src:
            yield from offset_uses(terms, "src")
        elif terms.sizing is not None:
            yield terms.sizing

    def _step(self, step: CppStep, out: CppLines, scope: Scope) -> None:
        terms, spelling = self._of(step), self._spelling(scope)
        if terms.shape.src:
            home = self._words.memories[terms.shape.src]
            found = offset_of(
                terms, "src", Home("", home.offset), spelling, lambda use: self._name(use, scope)
            )
            text = " + ".join(found) or "0"
        else:
            text = bytes_of(terms, spelling, lambda use: self._name(use, scope))
        out.add(f"lengths.push_back({text});")
