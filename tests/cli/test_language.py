"""The eight commands in Chinese: help, reports, findings, errors; documents stay English."""

import json
import re
from pathlib import Path

import pytest

from hccl_py.cli import main

CHINESE = re.compile("[\u4e00-\u9fff]")
COMMANDS = ("check", "trace", "simulate", "explain", "advise", "compare", "fit", "doctor")


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_PY_LANG", "zh")


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(arguments) == status
    done = capsys.readouterr()
    return done.out + done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_in_chinese(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, command, "--help")
    assert text.startswith(f"用法：hccl-py {command}")
    paragraphs = [
        line for line in text.splitlines() if re.fullmatch(r"(?:  )?[A-Z][a-z ,]+\.", line)
    ]
    assert paragraphs == []
    options = [
        line for line in text.splitlines() if re.match(r"  -", line) and "  " in line.strip()
    ]
    assert [line for line in options if not CHINESE.search(line)] == []


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            ("simulate", "all_gather", "-b", "1M"),
            (
                r"all_gather，1M 字节，fp32，op_base",
                r"耗时 +模型时间 21\.41 us",
                r"最忙的 rank +0：忙",
            ),
        ),
        (
            ("explain", "all_gather", "-b", "1M"),
            (r"运行 +AllGatherMesh", r"HCCL 选取 +相同", r"程序 +1 轮共 \d+ 个任务"),
        ),
        (("trace", "all_gather"), (r"rank 0-3，与 rank 0 相同 +忙", r"关键路径：")),
        (
            ("compare", "all_gather", "--jobs", "1"),
            (r"字节 +最快 +HCCL", r"HCCL 规则", r"准确度："),
        ),
    ],
)
def test_reports_are_in_chinese(
    arguments: tuple[str, ...], lines: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, *arguments)
    for line in lines:
        assert re.search(line, text), f"{line}\n{text}"


def test_the_page_of_a_comparison_is_in_chinese(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "found.html"
    said(capsys, "compare", "all_gather", "-b", "1M", "--jobs", "1", "--html", str(page))
    text = page.read_text("utf-8")
    assert "<h1>all_gather fp32，4 个 rank</h1>" in text
    assert re.search(r"<th [^>]*>字节</th>.*<th [^>]*>与下界之比</th>", text)


def test_columns_of_a_table_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.cells import cell_len

    text = said(capsys, "simulate", "all_gather", "-b", "1M", "-e", "2M", "-f", "2")
    rows = [line for line in text.splitlines() if "GB/s" in line or "Executor" in line]
    assert len({cell_len(re.split(r"(?=执行器|AllGather)", row)[0]) for row in rows}) == 1


def test_findings_and_hints_are_in_chinese(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(BROKEN)
    text = said(capsys, "check", "broken:Broken", "--ranks", "4", status=1)
    assert re.search(r"MISSING_CONTRIBUTION|OUTPUT_MISSING", text)
    assert "从未写过的输出" in text
    assert "提示：请加上拷贝，或 deliver 结果" in text
    assert "最小用例：" in text


BROKEN = """
from hccl_py.plugins.resources import ResourceRequest

class Broken:
    op = "all_gather"
    algorithm = "nothing"

    def suits(self, op, topology):
        return True

    def resources(self, op, rank):
        return ResourceRequest()

    def orchestrate(self, op, rank):
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
"""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("simulate", "all_gathr"), "错误：算子 'all_gathr' 无法识别。\n提示：是否想写 "),
        (("simulate", "all_gather", "-b", "x"), "错误：-b/--minbytes 'x' 不是数据量。"),
        (
            ("simulate", "all_gather", "--topology", "nix"),
            "错误：拓扑 'nix' 无法识别。\n提示：已知：",
        ),
        (("simulate", "--nix"), "错误：没有这样的选项：--nix"),
        (("check", "none.json"), "错误：没有文件 'none.json'。"),
    ],
)
def test_errors_are_in_chinese(
    arguments: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, *arguments, status=2).startswith(error)


def test_documents_stay_english(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "all_gather", "--json"]) == 0
    in_chinese = json.loads(capsys.readouterr().out)
    assert not CHINESE.search(json.dumps(in_chinese, ensure_ascii=False))


def test_an_unknown_language_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_PY_LANG", "fr")
    text = said(capsys, "list", status=2)
    assert text == "error: HCCL_PY_LANG 'fr' is not a language of hccl-py.\nhint: Known: en, zh.\n"
