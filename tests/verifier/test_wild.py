"""Files that no sane tool writes: whatever loads is judged, or refused in a sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from hccl_py.errors import HcclError
from hccl_py.formats import from_json
from hccl_py.topology.presets import DEFAULT_PRESET, PRESETS
from hccl_py.verifier import CLASSES, Options, verify_program
from hccl_py.verifier.terminal import format_report

NUMBERS = st.one_of(
    st.integers(0, 20), st.integers(0, 300), st.sampled_from((2**31, 2**40, 2**60, 2**62 - 1))
)
NAMES = ("IN", "OUT", "CCL", "odd name", "CCL_IN")
OPS: dict[str, dict[str, Any]] = {
    "all_gather": {},
    "all_reduce": {"reduce": "sum"},
    "reduce_scatter": {"reduce": "max"},
    "broadcast": {"root": 0},
    "reduce": {"root": 1, "reduce": "prod"},
    "scatter": {"root": 0},
    "gather": {"root": 1},
    "all_to_all": {},
    "barrier": {},
    "send_recv": {},
}


@st.composite
def slices(draw: st.DrawFn) -> list[Any]:
    return [draw(st.sampled_from(NAMES[:3])), draw(NUMBERS), draw(NUMBERS)]


@st.composite
def tasks(draw: st.DrawFn, rank: int, ranks: int) -> list[Any]:
    peer = (rank + draw(st.integers(1, ranks - 1))) % ranks
    index = draw(st.sampled_from((0, 0, 1, 2, 3, 9)))
    src, dst, op = draw(slices()), draw(slices()), draw(st.sampled_from(("sum", "min")))
    if draw(st.booleans()):
        dst[2] = src[2]
    return draw(
        st.sampled_from(
            [
                ["copy", src, dst],
                ["reduce", op, src, dst],
                ["read", peer, src, dst],
                ["read_reduce", peer, op, src, dst],
                ["write", peer, src, dst],
                ["write_reduce", peer, op, src, dst],
                ["post", peer, index],
                ["post", peer, index],
                ["wait", peer, index],
                ["wait", peer, index],
                ["local_post", draw(st.integers(0, 3)), index],
                ["local_wait", index],
                ["compute", 1.5],
            ]
        )
    )


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    ranks = draw(st.integers(2, 4))
    name = draw(st.sampled_from(list(OPS)))
    count = draw(st.sampled_from((0, 1, 4, 7, 2**50)))
    op = {"name": name, "dtype": draw(st.sampled_from(("fp32", "uint8", "int64"))), "count": count}
    op |= OPS[name] | {"in_place": draw(st.booleans())}
    most = draw(st.sampled_from((64, 64, 64, 2**55, 2**62 - 1)))
    sizes = st.sampled_from((0, 4, 16, 64, most))
    document: dict[str, Any] = {
        "format": "hccl-py.program/1",
        "op": op,
        "ranks": ranks,
        "link": draw(st.sampled_from(("sdma", "rdma"))),
        "exported": draw(st.lists(st.sampled_from(NAMES[:3]), unique=True, max_size=2)),
        "buffers": {str(r): {n: draw(sizes) for n in NAMES[:3]} for r in range(ranks)},
        "tasks": {
            str(rank): {
                str(stream): draw(st.lists(tasks(rank, ranks), max_size=6))
                for stream in range(draw(st.integers(0, 3)))
            }
            for rank in range(ranks)
        },
    }
    if draw(st.booleans()):
        document["resources"] = {
            "0": {"streams": draw(st.integers(1, 3)), "channel_notifies": {"1": 1}}
        }
    return document


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(documents(), st.booleans(), st.booleans(), st.sampled_from((1, 2, 3)))
def test_what_loads_is_judged_or_refused(
    document: dict[str, Any], in_place: bool, strict: bool, repeat: int
) -> None:
    product = PRESETS[DEFAULT_PRESET] if strict else None
    with suppress(HcclError):
        program = from_json(json.dumps(document))
        event("loads")
        report = verify_program(program, Options(repeat, in_place, strict, product))
        event("is judged")
        for finding in report:
            assert finding.name in CLASSES
            assert finding.message
            assert finding.hint
            assert finding.message[0] != " "
            assert all(m.start <= m.stop for m in finding.memory)
        json.dumps(report.document())
        assert format_report(report)
