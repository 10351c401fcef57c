"""A page in headless Chromium, as a user meets it: keys, clicks, wheel, and what it then says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1440,900",
    "--lang=en-US",
)


def start(chromium: str, driver: str, profile: Path) -> webdriver.Chrome:
    """Start a browser that asks nobody for anything."""
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


@dataclass(frozen=True)
class OpenPage:
    """A page that is open. `state()` is what the page says of itself (static/hook.js)."""

    driver: webdriver.Chrome

    @staticmethod
    def of(driver: webdriver.Chrome, path: Path, timeout_s: float = 60) -> OpenPage:
        """Open a page from disk and wait until it has drawn."""
        driver.get(path.as_uri())
        page = OpenPage(driver)
        page.wait(lambda: page.run("return 'hcclPage' in window"), timeout_s)
        return page

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page, by the driver, which the page's policy does not hold."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, reached: Callable[[], Any], timeout_s: float = 10) -> Any:
        """Wait until something is so; what it then is."""
        return WebDriverWait(self.driver, timeout_s, 0.02).until(lambda _: reached())

    def state(self) -> Any:
        """Return what the page shows."""
        return self.run("return hcclPage.state()")

    def task(self, bar: int, scene: int = 0) -> Any:
        """Return a task's columns by their names."""
        return self.run("return hcclPage.task(arguments[0], arguments[1])", bar, scene)

    def keys(self, *keys: str, shift: bool = False) -> None:
        """Press keys one after the other."""
        chain = ActionChains(self.driver, duration=0)
        if shift:
            chain.key_down(Keys.SHIFT)
        for key in keys:
            chain.send_keys(key)
        if shift:
            chain.key_up(Keys.SHIFT)
        chain.perform()
        self.settle()

    def settle(self) -> None:
        """Wait for two pictures of the browser: what was asked for before is drawn then."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def find(self, selector: str) -> WebElement:
        """Return the first element that a CSS selector fits."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """Return all of them."""
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def click(self, selector: str) -> None:
        """Click on an element."""
        self.find(selector).click()
        self.settle()

    def text(self, selector: str) -> str:
        """Return the text of an element, as it is in the document."""
        return str(self.find(selector).get_attribute("textContent"))

    def click_task(self, bar: int, scene: int = 0) -> None:
        """Click on the middle of a task's bar; its row has to be on the screen."""
        box = self.run("return hcclPage.where(arguments[0], arguments[1])", bar, scene)
        assert box is not None, "the row of the task is hidden"
        self.pointer(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, press=True)

    def pointer(self, x: float, y: float, *, press: bool = False) -> None:
        """Move the mouse to a place of the window, and click there."""
        chain = ActionChains(self.driver, duration=0)
        chain.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        if press:
            chain.w3c_actions.pointer_action.click()
        chain.perform()
        self.settle()

    def drag(self, selector: str, begin: tuple[int, int], end: tuple[int, int]) -> None:
        """Drag from one place of an element to another, from its upper left corner."""
        box = self.find(selector).rect
        chain = ActionChains(self.driver, duration=0)
        mouse = chain.w3c_actions.pointer_action
        mouse.move_to_location(round(box["x"] + begin[0]), round(box["y"] + begin[1]))
        mouse.pointer_down()
        mouse.move_to_location(round(box["x"] + end[0]), round(box["y"] + end[1]))
        mouse.pointer_up()
        chain.perform()
        self.settle()

    def wheel(self, selector: str, at: tuple[int, int], by: int) -> None:
        """Turn the wheel over a place of an element, from its upper left corner."""
        box = self.find(selector).rect
        chain = ActionChains(self.driver, duration=0)
        x, y = round(box["x"] + at[0]), round(box["y"] + at[1])
        chain.w3c_actions.wheel_action.scroll(x, y, 0, by, 0, "viewport")
        chain.perform()
        self.settle()

    def complaints(self) -> list[str]:
        """Return what the browser has said since it was last asked, and what the page has asked
        for from anywhere.
        """
        said = [str(entry["message"]) for entry in self.driver.get_log("browser")]
        asked = self.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        return said + [str(name) for name in asked]
