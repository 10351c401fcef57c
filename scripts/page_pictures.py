#!/usr/bin/env python3
"""Take the pictures of docs/viewing.md anew, docs/pictures/page_*: pages in headless Chromium.

Needs the extras browser-test and plots, and Debian's chromium and chromium-driver.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import hccl_py as hccl  # noqa: E402
from hccl_py.trace.page import write_page  # noqa: E402
from hccl_py.trace.scene import Scene, scene_of  # noqa: E402
from tests.trace.browser.chromium import OpenPage, start  # noqa: E402


def scene(executor: str) -> Scene:
    """Return what there is to see of an all-reduce of 8 ranks."""
    op = hccl.OpParam("all_reduce", 1 << 20, hccl.DataType.FP32, hccl.ReduceOp.SUM)
    topology = hccl.topology_of(ranks=8, preset="atlas-800-9000")
    facts = (("executor", executor), ("topology", topology.description))
    title = "all_reduce sum of 4M bytes, fp32, op_base"
    program = hccl.record(executor, op, topology)
    return scene_of(program, topology, title=title, facts=facts)


def main() -> None:
    """Take them all."""
    ring, mesh = scene("AllReduceRingExecutor"), scene("AllReduceMeshExecutor")
    with tempfile.TemporaryDirectory() as folder:
        driver = start("/usr/bin/chromium", "/usr/bin/chromedriver", Path(folder) / "profile")
        try:
            one, two = Path(folder) / "one.html", Path(folder) / "two.html"
            write_page(one, [ring])
            write_page(two, [mesh, ring])
            page = OpenPage.of(driver, one)
            page.keys(*["\ue014"] * 3)
            shoot(page, "picture", "webp")
            page.keys("l", "c", *["."] * 20, "e", "e")
            shoot(page, "light")
            page.keys("t", "g", "z", "s", "s", "s")
            shoot(page, "dark")
            shoot(OpenPage.of(driver, two), "against")
        finally:
            driver.quit()


def shoot(page: OpenPage, name: str, suffix: str = "png") -> None:
    """Take one of what the page shows now."""
    page.settle()
    path = ROOT / "docs" / "pictures" / f"page_{name}.{suffix}"
    with Image.open(io.BytesIO(page.driver.get_screenshot_as_png())) as picture:
        image = picture.convert("RGB")
        (image if suffix == "webp" else image.quantize(200)).save(path, optimize=True)
    print(path.relative_to(ROOT), path.stat().st_size >> 10, "KiB")


main()
