#!/usr/bin/env python3
"""Take the pictures of docs/viewing.md anew, docs/pictures/page_* and widths_*: pages in headless
Chromium.

Needs the extras browser-test and plots, and Debian's chromium and chromium-driver.
"""

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from selenium.webdriver import Chrome

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import hccl_py as hccl  # noqa: E402
from hccl_py.trace.page import write_page  # noqa: E402
from hccl_py.trace.scene import Scene, scene_of  # noqa: E402
from tests.trace.browser.chromium import OpenPage, start  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"

ALGORITHMS = {
    "All-gather on a mesh of 4": "all_gather --ranks 4 -b 1M",
    "All-reduce on a ring of 8": "all_reduce --ranks 8 -b 16M --topology atlas-800-9000 "
    "--executor AllReduceRing",
    "All-reduce on 2 servers of 8": "all_reduce --servers 2 --devices 8 -b 16M "
    "--executor AllReduceMeshExecutor",
    "All-reduce on 32 servers of 16": "all_reduce --topology atlas-900-a3 --servers 32 "
    "--devices 16 -b 64M",
}
"""What is shown at three widths, by its heading."""

WIDTHS, HEIGHT, SHRUNK = (1440, 800, 390), 900, 0.4


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
            pages = list(pages_of_algorithms(Path(folder)))
            for theme in ("light", "dark"):
                shoot_widths(driver, pages, theme)
        finally:
            driver.quit()


def pages_of_algorithms(folder: Path) -> Iterator[Path]:
    """Write a page for each algorithm, as a user would, and yield its path."""
    for number, call in enumerate(ALGORITHMS.values()):
        path = folder / f"{number}.html"
        command = [sys.executable, "-m", "hccl_py", "trace", *call.split(), "--html", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield path


def shoot_widths(driver: Chrome, pages: list[Path], theme: str) -> None:
    """Take the pages in the second step, or in the only one: a row for each, a column for each
    width.
    """
    colour = {"name": "prefers-color-scheme", "value": theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [colour]})
    gap, head = 8, 24
    tall = round(HEIGHT * SHRUNK)
    wide = [round(width * SHRUNK) for width in WIDTHS]
    size = (sum(wide) + gap * (len(wide) + 1), (tall + head + gap) * len(pages))
    back, ink = ("#d9d9d9", "#111111") if theme == "light" else ("#3a3a3a", "#f2f2f2")
    sheet = Image.new("RGB", size, back)
    font = ImageFont.load_default(size=15)
    for row, (title, path) in enumerate(zip(ALGORITHMS, pages, strict=True)):
        top = row * (tall + head + gap)
        ImageDraw.Draw(sheet).text((gap + 3, top + 4), title, ink, font=font)
        left = gap
        for width, shown in zip(WIDTHS, wide, strict=True):
            screen = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            page = OpenPage.of(driver, path)
            page.keys("\ue014")
            if page.state()["place"] == 1:  # the end of the only step
                page.keys("\ue012")
            page.settle()
            with Image.open(io.BytesIO(driver.get_screenshot_as_png())) as picture:
                image = picture.convert("RGB").resize((shown, tall), Image.Resampling.LANCZOS)
            sheet.paste(image, (left, top + head))
            left += shown + gap
    save(sheet, f"widths_{theme}.webp")


def shoot(page: OpenPage, name: str, suffix: str = "png") -> None:
    """Take one of what the page shows now."""
    page.settle()
    with Image.open(io.BytesIO(page.driver.get_screenshot_as_png())) as picture:
        image = picture.convert("RGB")
        save(image if suffix == "webp" else image.quantize(200), f"page_{name}.{suffix}")


def save(image: Image.Image, name: str) -> None:
    """Keep a picture, and say how large it is."""
    path = PICTURES / name
    image.save(path, optimize=True)
    print(path.relative_to(ROOT), path.stat().st_size >> 10, "KiB")


main()
