"""The commands in Chinese: help, reports, findings, errors; documents stay English."""

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
    assert {"时间（µs）", "数据量（字节）", "下界", "其他"} <= {
        *re.findall("<text[^>]*>([^<]*)", text)
    }


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


ENGLISH = re.compile(r"(?<![\w./`'-])[A-Za-z]?[a-z]+(?: [a-z]+)+(?![\w./(=-])")
"""Two or more English words in a row, in none of which code is."""

TERMS = {
    *("rank", "main", "sub", "read", "write", "post", "wait", "notify", "transport", "scratch"),
    *("mesh", "ring", "sum", "same", "hardware", "emulated", "level", "pipeline", "deliver"),
    *("deterministic", "strict", "barrier", "platform", "us", "cd", "mine", "pip", "install"),
}
"""Words that stay: HCCL's, and names of the product."""

CALL = "all_reduce --servers 2 --devices 2 -b 1M"

SENTENCES = [
    f"run {CALL} -n 1 -w 0",
    f"trace {CALL} --rank 0",
    f"trace {CALL} --slow rank=1:2x",
    "trace all_gather --ranks 2 -b 1K --step --limit 2",
    f"simulate {CALL} --report --network contended",
    f"simulate {CALL} --slow link=0-2:lost",
    f"explain {CALL} --algo level0:ring",
    f"advise {CALL} --jobs 1 --markdown",
    f"compare {CALL} -e 4M --jobs 1 --all",
    f"numerics {CALL}",
    "check AllReduceRing --ranks 2",
    "new executor Mine --op all_gather",
    "new",
    "tuning none.json",
    "run all_gather -r 2",
    "simulate all_gather --slow link=0-9:2x",
    "trace all_gather --rank 9",
    "trace all_gather --from 5 --to 2",
    "compare all_gather --executor Nix",
    "check nix:Class",
    "explain all_reduce --algo level9:ring",
]
"""Command lines whose every word is read."""


@pytest.mark.parametrize("line", SENTENCES)
def test_no_sentence_is_in_english(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) in (0, 1, 2)
    assert english_in(*capsys.readouterr()) == []


def english_in(*texts: str) -> list[str]:
    """Return the English of texts, but for terms, and for the line that hccl_test prints."""
    lines = [line for text in texts for line in text.splitlines() if "minbytes is" not in line]
    found = [match[0] for line in lines for match in ENGLISH.finditer(line)]
    return [said for said in found if not TERMS.issuperset(said.split())]


def test_english_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_PY_LANG", "en")
    assert "no such option" not in english_in("没有 sub 之类的 post wait，data_size(Bytes)")
    assert main(["explain", "all_gather"]) == 0
    assert "the links of" in " ".join(english_in(capsys.readouterr().out))


def test_figures_are_in_chinese(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = tmp_path / "film.svg"
    said(capsys, "trace", *CALL.split(), "--svg", str(film))
    texts = re.findall(r"<(?:text|title|desc)[^>]*>([^<]*)", film.read_text("utf-8"))
    assert "初始状态" in texts
    assert english_in(*texts) == []


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
