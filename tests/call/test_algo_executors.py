"""HCCL_ALGO's form for the Ascend 950: executors and the algorithms on their levels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.call.algo import check_algo, parse_algo
from hccl_py.call.algo_executors import (
    ALGORITHMS_950,
    Algorithm,
    ExecutorChoice,
    is_executors,
    parse_executors,
)
from hccl_py.errors import ConfigError

MESH, NHR = Algorithm("mesh"), Algorithm("nhr")


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("", []),
        ("mesh", [("", "sole", [MESH])]),
        ("Mesh_2_Die", [("", "sole", [Algorithm("mesh2die")])]),
        ("allreduce:nhr", [("allreduce", "sole", [NHR])]),
        ("AllReduce : Parallel { mesh , nhr }", [("allreduce", "parallel", [MESH, NHR])]),
        ("pipeline{}", [("", "pipeline", [])]),
        ("sole{nhr};", [("", "sole", [NHR])]),
        ("sequence{level1=nhr, level0=mesh}", [("", "sequence", [MESH, NHR])]),
        ("sequence{level3=nhr,level1=mesh}", [("", "sequence", [MESH, NHR])]),
        ("sequence{level0=nhr,level0=mesh,nhr}", [("", "sequence", [MESH, NHR])]),
        (
            "concur{not(mesh), NOT ( nhr )}",
            [("", "concur", [Algorithm("mesh", True), Algorithm("nhr", True)])],
        ),
        ("scatter:sole{mesh};sole{nhr}", [("scatter", "sole", [MESH]), ("", "sole", [NHR])]),
    ],
)
def test_choices(text: str, choices: list[tuple[str, str, list[Algorithm]]]) -> None:
    expected = [ExecutorChoice(op, kind, tuple(listed)) for op, kind, listed in choices]
    assert list(parse_executors(text)) == expected


def test_an_executor_may_be_forbidden() -> None:
    choice = ExecutorChoice("allgather", "parallel", (MESH, NHR), negated=True)
    assert parse_executors("allgather:not(parallel{mesh,nhr})") == (choice,)
    assert parse_executors("not(mesh)") == (ExecutorChoice("", "sole", (MESH,), negated=True),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("allreduce:sole{mesk}", r"character 15: algorithm 'mesk' is unknown"),
        ("allreduce:solo{mesh}", r"character 10: executor 'solo' is unknown"),
        ("allreduse:mesh", r"character 0: op 'allreduse' is unknown"),
        ("sole{mesh", r"character 9: expected '}', found the end"),
        ("sole{mesh;nhr}", r"character 9: expected '}', found ';'"),
        ("not(sole{mesh}", r"expected '\)', found the end"),
        ("sole{not(mesh}", r"expected '\)', found '}'"),
        ("sole{mesh,}", r"an algorithm is missing after ','"),
        ("sole{mesh} nhr", r"character 11: 'nhr' comes after a choice"),
        ("allreduce:", r"an algorithm is missing"),
        ("sole{level9=mesh}", r"level9 is no level"),
        ("sole{level99999999999=mesh}", r"is no level"),
        ("sole{me-sh}", r"algorithm 'me-sh' is unknown"),
        ("sole{не}", r"algorithm 'н' is unknown"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_executors(text)
    assert "EI0001" in caught.value.hint
    assert not is_executors(text)
    with pytest.raises(ConfigError):
        check_algo(text)


def test_errors_say_which_form_was_meant() -> None:
    with pytest.raises(ConfigError, match="executor 'level1' is unknown"):
        check_algo("level1{mesh}")
    with pytest.raises(ConfigError, match="is not level:algorithm"):
        check_algo("meshh")
    check_algo("allreduce:mesh")
    assert parse_algo("allreduce:mesh", "all_reduce") == {}


@given(st.text(alphabet="alreducsom:;{}(),=vh10nt _", max_size=40))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    if is_executors(text):
        choices = parse_executors(text)
        assert {a.name for choice in choices for a in choice.algorithms} <= set(ALGORITHMS_950)
    elif text.strip():
        with pytest.raises(ConfigError, match="HCCL_ALGO") as caught:
            parse_executors(text)
        assert caught.value.hint
