"""HCCL_ALGO's grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.call.algo import ALGORITHMS, check_algo, parse_algo
from hccl_py.errors import ConfigError, ParameterError
from tests.selection.calls import call, chosen, topology


@pytest.mark.parametrize(
    ("text", "op", "levels"),
    [
        ("", "all_reduce", {}),
        ("level0:NA;level1:ring", "all_reduce", {"level0": "NA", "level1": "ring"}),
        (" level1 : NHR ", "all_gather", {"level1": "NHR"}),
        ("level0:null", "all_gather", {"level0": "null"}),
        ("allreduce=level1:NB/allgather=level1:ring", "all_gather", {"level1": "ring"}),
        ("allreduce=level1:NB/allgather=level1:ring", "all_gather_v", {}),
        ("reducescatter=level1:NB", "reduce_scatter_v", {}),
        ("level1:NB", "reduce_scatter_v", {"level1": "NB"}),
        ("   ", "all_reduce", {}),
        ("l e v e l1:N H R", "all_gather", {"level1": "NHR"}),
        ("allreduce=level1:NB/allreduce=level1:ring", "all_reduce", {"level1": "ring"}),
        (
            "level0:fullmesh;level1:pairwise",
            "all_to_all",
            {"level0": "fullmesh", "level1": "pairwise"},
        ),
        ("allreduce=level0:ring", "all_reduce", {"level0": "ring"}),
        ("allreduce=level1:NB/others=level1:ring", "broadcast", {"level1": "ring"}),
        ("allreduce=level1:NB", "broadcast", {}),
        ("alltoall=level1:pairwise", "all_to_all_vc", {"level1": "pairwise"}),
        (
            "level1:AHC;level2:NHR;level3:NB",
            "reduce",
            {"level1": "AHC", "level2": "NHR", "level3": "NB"},
        ),
        ("allreduce=level1:NB", "barrier", {"level1": "NB"}),
        ("sendrecv=level1:ring", "batch_send_recv", {"level1": "ring"}),
        ("sendrecv=level1:ring", "send_recv", {}),
        ("send=level1:ring/receive=level1:ring", "send_recv", {"level1": "ring"}),
        ("reducescatter=level0:NA;level1:NB", "reduce_scatter", {"level0": "NA", "level1": "NB"}),
        ("scatter=level1:NB/gather=level1:ring/reduce=level1:NB", "gather", {"level1": "ring"}),
    ],
)
def test_levels_by_op(text: str, op: str, levels: dict[str, str]) -> None:
    assert parse_algo(text, op) == levels


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("level0", "is not level:algorithm"),
        ("level0:NA;", "segment ''"),
        ("level1:\tring", "unknown"),
        ("others=level0:null", "level0 cannot be set to null"),
        ("level9:ring", "level 'level9' is unknown"),
        ("level1:rnig", "Did you mean ring"),
        ("level1:ring;level1:NHR", "level1 appears twice"),
        ("allreduce=level0:null", "level0 cannot be set to null"),
        ("allreduce=level1:ring/level1:NHR", "names no op"),
        ("alreduce=level1:ring", "Did you mean allreduce"),
        ("level1:ring/level1:NB", "more than one setting for all ops"),
        ("level0:NA;level1:ring/allreduce=level1:NB", "names no op while other parts do"),
        ("allreduce=", "segment '' is not"),
        ("level0:NA;;level1:ring", "segment '' is not"),
        ("level1:", "is not level:algorithm"),
        (":ring", "is not level:algorithm"),
        ("level1:Ring", "algorithm 'Ring' is unknown"),
        ("=level1:ring", "op '' is unknown"),
    ],
)
def test_what_hccl_refuses(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_algo(text, "all_reduce")


@given(st.text(alphabet="level01:;=/ringNA ", max_size=30))
def test_any_text_parses_or_is_refused_with_a_sentence(text: str) -> None:
    refusal = None
    try:
        levels = parse_algo(text, "all_reduce")
    except ConfigError as error:
        refusal = error
    if refusal is None:
        assert set(levels.values()) <= set(ALGORITHMS)
    else:
        assert "HCCL_ALGO" in refusal.message
        assert refusal.hint


def test_an_error_of_another_op_is_one_too() -> None:
    with pytest.raises(ConfigError, match="algorithm 'rnig' is unknown") as caught:
        check_algo("allreduce=level1:ring/allgather=level1:rnig")
    assert "EI0001" in caught.value.hint


def test_others_is_what_hccl_reads_and_then_refuses() -> None:
    """Its first loop sets all ops, its second one knows no op of this name: E_PARA."""
    found = chosen(call("all_reduce", 1 << 10), topology(4, 8), algo="others=level1:ring")
    assert (found.hccl_executor, found.result) == (None, "HCCL_E_PARA")
    assert found.hccl_algorithm["level1"] == "ring"
    assert "others=" in found.refusal
    with pytest.raises(ParameterError, match="HCCL refuses all_reduce"):
        chosen(call("all_reduce", 1 << 10), topology(4, 8), algo="others=level1:NB", strict=True)
