"""A program file may hold any text: in the page it is text, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hccl_py.trace.page import page_bytes
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.trace.scene.model import Lanes, SceneFinding
from hccl_py.verifier.finding import Finding, MemoryRange
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import ping, ping_tasks, program_of, recorded

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]

SCRIPT = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>"
OTHERS = (
    "<!--<script>",
    "--></style><svg onload=harmed=3>",
    "{{7*7}}${window.harmed=4}",
    "javascript:window.harmed=5",
    "\x1b[31mred\x07\x00",
    "\u202eright to left\u2066",
    "\ud800 half a pair",
    "line\nend\r\u2028\u2029",
    "a" * 3000,
)


def poisoned(text: str) -> Scene:
    """Return a scene that has a text wherever a scene has texts."""
    scene = ping()
    lanes = scene.lanes
    found = Finding("RACE", text, text, source=text, memory=(MemoryRange(0, text, 0, 4),))
    return replace(
        scene,
        title=text,
        facts=(("executor", text), (text, text), ("topology", text)),
        left_out=text,
        memory_left_out=text,
        labels=tuple(text for _ in scene.labels),
        sources=tuple(text for _ in scene.sources),
        notifies=tuple(text for _ in scene.notifies),
        buffers=tuple(text for _ in scene.buffers),
        lanes=Lanes(lanes.rank, lanes.stream, tuple(text for _ in lanes.names), lanes.first),
        findings=(SceneFinding(found, (3, 4)),),
    )


def look_at_everything(page: OpenPage) -> None:
    page.keys("\ue014", "\ue014", "\ue014", "\ue014", "e", "c", "z")
    page.click("#traffic summary")
    page.pointer(700, 200)
    page.click("[data-tool=language]")
    page.keys("l", "\ue014", "e", "b", "]", "\ue010", "l")


@pytest.mark.parametrize("text", [SCRIPT, *OTHERS], ids=range(1 + len(OTHERS)))
def test_texts_do_no_harm(opens: Opens, text: str) -> None:
    page = opens(poisoned(text))
    elements = "return document.querySelectorAll('script, style, img, svg, iframe, link').length"
    before = page.run(elements)
    look_at_everything(page)
    assert page.run("return window.harmed") is None
    assert page.run(elements) == before
    assert page.state()["scenes"][0]["tasks"] == 14


def test_a_hostile_text_is_shown_as_it_is(opens: Opens) -> None:
    page = opens(poisoned(SCRIPT))
    page.keys("\ue014")
    assert SCRIPT in page.text("#side")
    assert SCRIPT in page.text("#title")
    assert page.driver.title == f"{SCRIPT} · hccl-py"


def test_control_characters_are_seen(opens: Opens) -> None:
    page = opens(poisoned("\x1b]0;a\x07 \u202eb\n"))
    page.keys("\ue014")
    assert "\\x1b]0;a\\x07 \\u202eb\\n" in page.text("#side")


def test_a_program_file_does_no_harm(opens: Opens) -> None:
    page = opens(scene_of(program_of(ping_tasks(label=SCRIPT, source=SCRIPT)), title=SCRIPT))
    look_at_everything(page)
    page.click("[data-tool=language]")
    assert page.run("return window.harmed") is None
    assert SCRIPT in page.text("#side")


def test_ten_megabytes_of_text_are_shortened(opens: Opens) -> None:
    text = SCRIPT + "x" * (10 << 20)
    scene = poisoned(text)
    assert len(page_bytes([scene])) < 1 << 20
    page = opens(scene)
    look_at_everything(page)
    page.click("[data-tool=language]")
    assert f"({len(text):,} characters, shortened)" in page.text("#side")
    assert page.run("return window.harmed") is None


def test_the_policy_refuses_scripts_styles_and_requests(opens: Opens, tmp_path: Path) -> None:
    (tmp_path / "stolen.js").write_text("window.harmed = 6")
    page = opens(ping())
    page.run(
        "for (const [name, text] of [['script', 'window.harmed = 7'], ['style', '* {color: red}']])"
        " { const e = document.createElement(name); e.textContent = text;"
        " document.head.append(e); }"
        "const e = document.createElement('script'); e.src = 'stolen.js'; document.head.append(e);"
        "const i = document.createElement('img'); i.src = 'stolen.js'; document.body.append(i);"
        "i.setAttribute('onclick', 'window.harmed = 8'); i.click();"
    )
    page.wait(lambda: page.run("return window.harmed === undefined"))
    assert page.run("return getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    said = "\n".join(page.complaints())
    for part in ("script-src", "style-src", "img-src"):
        assert part in said
    assert page.run("return window.harmed") is None
    page.driver.get("about:blank")  # what was refused here is nobody's complaint
    page.driver.get_log("browser")


def test_two_hostile_scenes(opens: Opens) -> None:
    page = opens(poisoned(SCRIPT), poisoned(OTHERS[1]))
    assert page.run("return window.harmed") is None
    assert SCRIPT in page.text("#title")


def test_nothing_to_show(opens: Opens) -> None:
    program, topology = recorded("AllGatherMeshOpbaseExecutor", "all_gather", 1, 0)
    page = opens(scene_of(program, topology))
    page.click("#traffic summary")
    page.keys("\ue014", ".", "e", "n", "z", "p", "f", "i", "w")
