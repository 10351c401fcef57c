"""Sentences in another language: which message made them, and what stays as it is."""

import pytest

from hccl_py.errors import ConfigError
from hccl_py.language import language_of, speaking, translated
from hccl_py.language.translator import Translator
from hccl_py.language.wrapping import columns, padded, wrapped

MESSAGES = {
    "error: {message}": "错误：{message}",
    "{option} {name} is unknown.": "{option} {name} 无法识别。",
    "{a} waits for {b}": "{a} 等待 {b}",
    "{count} task": "{count} 个任务",
    "{count} tasks": "{count} 个任务",
    "{tasks} in {rounds}": "{rounds}共 {tasks}",
    "{count} rounds": "{count} 轮",
    "the rest": "其余",
    ", within {share}": "，差别在 {share} 以内",
    "takes {time}": "耗时 {time}",
    ", ": "，",
    "; ": "；",
    ": ": "：",
    " (": "（",
    ")": "）",
}


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("error: --algo 'task' is unknown.", "错误：--algo 'task' 无法识别。"),
        ("172 tasks in 3 rounds", "3 轮共 172 个任务"),
        ("rank 3 waits for the rest", "rank 3 等待其余"),
        ("takes 3 us, within 9 %", "耗时 3 us，差别在 9 % 以内"),
        ("the rest; takes 3 us", "其余；耗时 3 us"),
        ("the rest (2 tasks)", "其余（2 个任务）"),
        ("  1 task\n2 tasks", "  1 个任务\n2 个任务"),
    ],
)
def test_sentences_find_their_messages(sentence: str, said: str) -> None:
    assert Translator(MESSAGES).translated(sentence) == said


@pytest.mark.parametrize(
    "sentence",
    [
        "timed task by task in a loop of ours",
        "no message made this sentence",
        "AllReduceRingExecutor",
        "rank 3 takes_time",
    ],
)
def test_other_sentences_stay_as_they_are(sentence: str) -> None:
    assert Translator(MESSAGES).translated(sentence) == sentence


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "HCCL_PY_LANG": "en"}, "en"),
        ({"LANG": "de_DE", "HCCL_PY_LANG": "zh-Hans"}, "zh"),
        ({"LC_MESSAGES": "fr_FR"}, "en"),
    ],
)
def test_the_environment_says_the_language(environment: dict[str, str], language: str) -> None:
    assert language_of(environment) == language


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ConfigError, match="HCCL_PY_LANG 'tlh' is not a language"):
        language_of({"HCCL_PY_LANG": "tlh"})


def test_a_language_is_spoken_for_a_while() -> None:
    with speaking("zh"):
        assert translated("Give -b 1 or more.") == "请给出 -b 1 或更大的值。"
    assert translated("Give -b 1 or more.") == "Give -b 1 or more."


def test_lines_have_as_many_columns_as_they_may() -> None:
    lines = wrapped("rank 0 等待 rank 1，而后者从未 post。（见上）", 12, "  ", "    ")
    assert lines == [
        "  rank 0 等",
        "    待 rank",
        "    1，而后",
        "    者从未",
        "    post。",
        "    （见上）",
    ]
    assert max(map(columns, lines)) <= 12
    assert padded("等待", 6) == "等待  "
    assert wrapped("x" * 9, 4) == ["xxxx", "xxxx", "x"]
