"""How long the page takes with very many tasks; what the limits are is what was promised."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest

from hccl_py.trace.scene import Scene, scene_of
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import recorded

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]

STEPS = """
const [key, count, done] = arguments;
const times = [];
function step() {
  const began = performance.now();
  document.dispatchEvent(new KeyboardEvent('keydown', { key: times.length % 8 < 4 ? key : 's' }));
  requestAnimationFrame(() => {
    times.push(hcclPage.timings().draw);
    requestAnimationFrame(() => {
      times[times.length - 1] = Math.max(times[times.length - 1], performance.now() - began - 16);
      if (times.length < count) step();
      else done(times);
    });
  });
}
step();
"""


def ring_of(ranks: int) -> Scene:
    """An all-reduce over one ring: for each of p ranks 2(p - 1) steps of five tasks, a barrier of
    four, and two copies.
    """
    program, topology = recorded("AllReduceRing", "all_reduce", ranks, 1 << 20)
    return scene_of(program, topology)


def zoom_ms(page: OpenPage) -> float:
    """Return what a zoom step takes until its picture stands: the median of sixteen."""
    return float(median(page.driver.execute_async_script(STEPS, "w", 16)))


def test_100_000_tasks_stay_smooth(opens: Opens) -> None:
    scene = ring_of(101)
    assert len(scene.bars) == 101 * (200 * 5 + 4 + 2) > 100_000
    page = opens(scene)
    assert page.run("return hcclPage.timings().opened") < 3000
    assert zoom_ms(page) < 100
    page.keys("u", shift=True)
    assert len(page.state()["rows"]) > 2 * 101
    assert zoom_ms(page) < 100
    page.keys("f", shift=True)
    assert zoom_ms(page) < 100
    page.find("#query").send_keys("wait")
    page.keys("c")
    assert zoom_ms(page) < 100


@pytest.mark.long
def test_a_million_tasks_open(opens: Opens) -> None:
    scene = ring_of(320)
    assert len(scene.bars) == 320 * (638 * 5 + 4 + 2) > 1_000_000
    page = opens(scene)
    assert page.run("return hcclPage.timings().opened") < 15_000
    assert zoom_ms(page) < 200
    page.keys("u", shift=True)
    assert zoom_ms(page) < 200
