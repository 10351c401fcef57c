"""One browser for each worker, and pages of programs that are recorded here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_py.trace.page import write_page
from hccl_py.trace.scene import Scene

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.trace.browser.chromium import OpenPage

Opens = Callable[..., "OpenPage"]

IS_DEMANDED = "HCCL_PY_DEMAND_BROWSER" in os.environ

if find_spec("selenium") is None and not IS_DEMANDED:
    collect_ignore_glob = ["test_*.py"]  # pip install -e ".[browser-test]"


def found(*names: str) -> str:
    """Return a program's path; without it the test is skipped, or fails where browsers have to be.

    .ci/run demands them.
    """
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        reason = f"there is no {names[0]}; on Debian: apt-get install chromium chromium-driver"
        if IS_DEMANDED:
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    from tests.trace.browser.chromium import start

    browser = found("chromium", "chromium-browser", "google-chrome")
    driver = start(browser, found("chromedriver"), tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def opens(pictures: Opens) -> Opens:
    """Open the page of one scene or two, and there its lanes."""

    def opened(*scenes: Scene) -> OpenPage:
        page = pictures(*scenes)
        if page.state()["mode"] == "picture":
            page.keys("l")
        return page

    return opened


@pytest.fixture
def pictures(chrome: Chrome, tmp_path: Path) -> Iterator[Opens]:
    """Open the page of one scene or two; at the end nobody may have complained."""
    from tests.trace.browser.chromium import OpenPage

    chrome.get("about:blank")
    chrome.get_log("browser")
    pages: list[OpenPage] = []

    def opened(*scenes: Scene) -> OpenPage:
        path = tmp_path / f"page{len(pages)}.html"
        write_page(path, scenes)
        pages.append(OpenPage.of(chrome, path))
        pages[-1].settle()
        return pages[-1]

    yield opened
    if pages:
        assert pages[-1].complaints() == []
