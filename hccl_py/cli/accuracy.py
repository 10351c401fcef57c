"""The accuracy of model times: one line beside them, and the digits that they have.

    accuracy   ±9 % (p90 of 21 held-out times of a vendor's simulation, 512K–512M, 16 ranks);
               this call: inside

The band is that of the cost model's measured sets (`clocks/measured.py`). Times and rates for
people have as many digits as it leaves them; without a band they have all that the model gives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hccl_py.call.op_param import OpParam
from hccl_py.cli.request import Model, Request
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.engines import engine_of
from hccl_py.clocks.measured import Accuracy, TimedCallFacts, accuracy_of
from hccl_py.program.program import Program
from hccl_py.trace.units import format_share, format_size, format_time

_KINDS = {
    "hardware": "hardware",
    "vendor simulation": "a vendor's simulation",
    "document": "a document",
}
_MOST_DIGITS = 9


@dataclass(frozen=True)
class TimeAccuracy:
    """The accuracy of a cost model's time of one call."""

    cost: CostModel
    found: Accuracy

    @staticmethod
    def of(request: Request, program: Program, op: OpParam, model: Model) -> TimeAccuracy:
        """Return the accuracy of the time of a call's program."""
        call = TimedCallFacts(
            op=op.name if program.has_op else "",
            bytes=request.data_size(op),
            ranks=program.ranks,
            engine=engine_of(program, request.topology),
            protocol=program.protocol,
            network=model.network,
        )
        return TimeAccuracy(model.cost, accuracy_of(model.cost.measured, call))

    @property
    def band(self) -> float | None:
        """The size of the relative error that nine of ten held-out times stayed below."""
        return self.found.band

    @property
    def line(self) -> str:
        """The accuracy in one sentence without a full stop."""
        place = "inside" if self.found.is_inside else "; ".join(map(_short, self.found.outside))
        return f"{self._of_model}; this call: {place}" if place else self._of_model

    @property
    def _of_model(self) -> str:
        measured = self.found.measured
        if measured is None:
            first = self.cost.uncertain.partition(".")[0]
            return f"no measurement of {self.cost.name}" + (f"; {first}" if first else "")
        kind, held_out = _KINDS[measured.kind], measured.held_out
        span = [] if measured.bytes is None else [_span(*measured.bytes)]
        ranks = [f"{', '.join(map(str, measured.ranks))} ranks"] if measured.ranks else []
        of = ", ".join([kind, *span, *ranks])
        if held_out is None:
            return f"no error is known: none of {measured.points} times was held out, of {of}"
        share, points = format_share(held_out.p90), held_out.points
        if points == 1:
            return f"±{share} (the one held-out time of {of})"
        return f"±{share} (p90 of {points} held-out times of {of})"

    def document(self) -> dict[str, Any]:
        """Return the accuracy for a JSON document."""
        measured = self.found.measured
        held_out = None if measured is None else measured.held_out
        return {
            "band": self.band,
            "points": None if held_out is None else held_out.points,
            "kind": "none" if measured is None else measured.kind,
            "measured": None if measured is None else measured.what,
            "source": None if measured is None else measured.source,
            "is_inside": self.found.is_inside,
            "outside": list(self.found.outside),
        }

    def time(self, us: float) -> str:
        """Return a time with its unit: all digits in microseconds where there is no band."""
        if self.band is None:
            return f"{us:.2f} us"
        unit, of_unit = next(pair for pair in _UNITS if us < pair[1] * 1000 or pair is _UNITS[-1])
        rounded = float(_rounded(us, self._digits))
        if rounded >= of_unit * 1000 and unit != _UNITS[-1][0]:  # 999.7 us is 1.0 ms
            return self.time(rounded)
        return f"{_rounded(us / of_unit, self._digits)} {unit}"

    def microseconds(self, us: float) -> str:
        """Return the number of a column of microseconds."""
        return format_time(us) if self.band is None else _rounded(us, self._digits)

    def number(self, value: float, decimals: int, *, fixed: bool = True) -> str:
        """Return a rate or a ratio; without a band it has so many decimals, or so many digits where
        it is not `fixed`.
        """
        if self.band is None:
            return f"{value:.{decimals}{'f' if fixed else 'g'}}"
        return _rounded(value, self._digits)

    @property
    def _digits(self) -> int:
        """The fewest digits, two or more, whose rounding is below the band."""
        assert self.band is not None
        fewest = range(2, _MOST_DIGITS)
        return next((n for n in fewest if 0.5 * 10.0 ** (1 - n) <= self.band), _MOST_DIGITS)


_UNITS = (("us", 1.0), ("ms", 1e3), ("s", 1e6))


def _span(least: int, most: int) -> str:
    return "–".join(map(format_size, sorted({least, most})))


def _short(reason: str) -> str:
    """Return a reason why a call is outside with its bytes in short."""
    if " bytes, " not in reason:
        return reason
    return re.sub("[0-9]+", lambda number: format_size(int(number[0])), reason)


def line_of_calls(calls: Sequence[TimeAccuracy]) -> str:
    """Return the accuracy of calls of several sizes in one sentence without a full stop."""
    first = calls[0]
    if len({one.line for one in calls}) == 1:
        return first.line
    inside = sum(one.found.is_inside for one in calls)
    return f"{first._of_model}; these calls: {inside} of {len(calls)} inside"


def _rounded(value: float, digits: int) -> str:
    """Return a number with so many significant digits, without an exponent."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))  # 0.996 is 1.0
    return f"{rounded:.{max(decimals, 0)}f}"
