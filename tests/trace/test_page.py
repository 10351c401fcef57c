"""The page as a file: its data is the scene's, its policy fits its scripts, its words are there.

What it does in a browser is tested in browser/.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hccl_py as hccl
from hccl_py.cli import main
from hccl_py.trace.page import page_bytes
from hccl_py.trace.page.html import script
from hccl_py.trace.page.scene_block import block
from hccl_py.trace.scene import Scene, scene_of

STATIC = Path(str(files("hccl_py.trace.page"))) / "static"


@pytest.fixture(scope="module")
def scene() -> Scene:
    op = hccl.OpParam("all_gather", 1 << 10, hccl.DataType.FP32)
    topology = hccl.topology_of(ranks=4)
    return scene_of(hccl.record("AllGatherMeshOpbaseExecutor", op, topology), topology)


class Tags(HTMLParser):
    """Every tag with its attributes, and the text of scripts and styles."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.texts[-1] += data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        found = zip(self.tags, self.texts, strict=True)
        return [(attributes, text) for (name, attributes), text in found if name == tag]


def unpacked(data: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read a data block as its description in columns.py says."""
    raw = gzip.decompress(base64.b64decode(data))
    length = int.from_bytes(raw[:4], "little")
    header, rest = json.loads(raw[4 : 4 + length]), raw[4 + length :]
    columns = {}
    for name, entry in header["columns"].items():
        count, kind = entry["length"], np.dtype(f"<{entry['type']}")
        if "constant" in entry:
            columns[name] = np.full(count, entry["constant"], kind)
            continue
        part = rest[entry["offset"] : entry["offset"] + count * kind.itemsize]
        planes = np.frombuffer(part, np.uint8).reshape(kind.itemsize, count)
        columns[name] = np.ascontiguousarray(planes.T).view(kind).reshape(-1)
    return header, columns


def test_the_data_is_the_scene_s(scene: Scene) -> None:
    (data,) = [text for attrs, text in Tags(page_bytes([scene])).of("script") if "id" in attrs]
    header, columns = unpacked(data)
    assert header["said"]["en"]["title"] == scene.title
    assert header["said"]["en"]["facts"] == [[name, value, name] for name, value in scene.facts]
    for name in scene.bars._fields:
        if name != "row":
            assert columns[f"bars.{name}"].tolist() == getattr(scene.bars, name).tolist(), name
    assert scene.memory is not None
    assert columns["memory.start"].tolist() == scene.memory.start.tolist()
    assert columns["ranks"].tolist() == [0, 1, 2, 3]
    assert scene.links is not None
    assert len(header["links"]["names"]) == len(scene.links)


def test_the_title_and_the_facts_are_in_chinese_too(scene: Scene) -> None:
    said = replace(scene, title="all_gather of 1M bytes, fp32, op_base", facts=(("tasks", "172"),))
    (data,) = [text for attrs, text in Tags(page_bytes([said])).of("script") if "id" in attrs]
    chinese = unpacked(data)[0]["said"]["zh"]
    assert chinese == {
        "title": "all_gather，1M 字节，fp32，op_base",
        "facts": [["任务", "172", "tasks"]],
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "i1"),
        ([7, 7, 7], "i1"),
        ([-128, 127], "i1"),
        ([0, 128], "i2"),
        ([0, 1 << 20], "i4"),
        ([-1, 1 << 40], "f8"),
        ([0.5, float("inf")], "f8"),
        ([float("inf")] * 2, "f8"),
    ],
)
def test_columns_are_as_narrow_as_they_can_be(values: list[Any], kind: str) -> None:
    header, columns = unpacked(block({}, {"some": np.array(values)}).decode())
    assert header["columns"]["some"]["type"] == kind
    assert columns["some"].tolist() == values


def test_the_policy_allows_the_page_s_own_scripts_and_nothing_else(scene: Scene) -> None:
    tags = Tags(page_bytes([scene, scene]))
    (policy,) = [
        str(attrs["content"])
        for attrs, _ in tags.of("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules.keys() == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    runs = [text for attrs, text in tags.of("script") if "type" not in attrs]
    assert rules["script-src"].split() == [hash_of(text) for text in runs]
    assert rules["style-src"].split() == [hash_of(text) for _, text in tags.of("style")]
    assert [attrs["id"] for attrs, _ in tags.of("script") if "id" in attrs] == [
        "scene-0",
        "scene-1",
    ]


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_names_nothing_outside_itself(scene: Scene) -> None:
    for tag, attributes in Tags(page_bytes([scene])).tags:
        assert tag not in ("link", "img", "iframe", "base", "form"), tag
        assert not attributes.keys() & {"src", "href", "style"}, tag
        assert not any(name.startswith("on") for name in attributes), tag


def test_a_page_shows_one_scene_or_two(scene: Scene) -> None:
    for scenes in ([], [scene] * 3):
        with pytest.raises(ValueError, match="one scene or two"):
            page_bytes(scenes)


def test_the_same_scene_gives_the_same_page(scene: Scene) -> None:
    assert page_bytes([scene]) == page_bytes([scene])
    assert page_bytes([scene]) != page_bytes([replace(scene, title="other")])


def words(language: str) -> dict[str, str]:
    text = (STATIC / f"words_{language}.js").read_text("utf-8")
    return dict(re.findall(r"^  (\w+): '(.*)',$", text, re.MULTILINE))


def test_both_languages_have_the_same_words() -> None:
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), key


def test_every_word_is_used_and_there() -> None:
    code = script()
    said = set(re.findall(r"\bt\('(\w+)'", code))
    assert said <= words("en").keys()
    modules = "".join(
        path.read_text("utf-8") for path in STATIC.glob("*.js") if "words_" not in path.name
    )
    for key in words("en"):
        prefix = key.partition("_")[0]
        assert f"'{key}'" in modules or f"`{prefix}_${{" in modules, f"{key} is not used"


def test_the_script_reads_the_columns_that_there_are(scene: Scene) -> None:
    """The script is run in browsers only, whose tests are a run of their own."""
    listed = re.search(r"BAR_COLUMNS = \[(.*?)\]", script(), re.DOTALL)
    assert listed is not None
    columns = set(re.findall(r"'(\w+)'", listed[1]))
    assert columns == set(scene.bars._fields) - {"row"}
    taken = re.findall(r"\{([\w, ]+)\} = (?:this|\w+)?\.?(?:scene\.)?bars;", script())
    named = {name.strip() for names in taken for name in names.split(",")}
    named |= set(re.findall(r"[\w.]+\.bars\.([a-z_]+)\[", script()))
    assert len(named) > 10
    assert named <= columns


def test_modules_stay_small_and_import_downwards() -> None:
    for path in STATIC.glob("*.js"):
        assert len(path.read_text("utf-8").splitlines()) < 400, path.name
    code = script()
    for path in STATIC.glob("*.js"):
        assert f"const ${path.stem} = " in code, f"main.js does not lead to {path.name}"
    assert "import {" not in code
    assert not re.search(r"^export ", code, re.MULTILINE)


def test_modules_that_import_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"main.js": "import { a } from './a.js';\n", "a.js": "import { b } from './main.js';\n"}
    monkeypatch.setattr("hccl_py.trace.page.html._text", texts.__getitem__)
    with pytest.raises(ValueError, match="import each other: main, a, main"):
        script.__wrapped__()


def test_trace_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, program = tmp_path / "page.html", tmp_path / "program.json"
    call = ["trace", "all_gather", "--ranks", "2"]
    assert main([*call, "--html", str(page), "--save", str(program)]) == 0
    assert len(Tags(page.read_bytes()).of("script")) == 2
    assert main([*call, "--html", str(page), "--against", str(program)]) == 0
    assert len(Tags(page.read_bytes()).of("script")) == 3
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--against", "x.json"], "--against is about the page that --html writes."),
        (["--html", "page.html", "--against", "no-op"], "--against 'no-op' is no program file."),
        (["--html", "page.txt"], "is not written to such a file"),
        (["--html", "mine.html"], "holds no page of HTML"),
        (["--html", "page.html", "--against", "gone.json"], "There is no file 'gone.json'."),
    ],
)
def test_what_cannot_be_written_is_refused(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.html").write_text("<p>My own page")
    assert main(["trace", "all_gather", "--ranks", "2", *options]) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / "mine.html").read_text() == "<p>My own page"
