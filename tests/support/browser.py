"""A headless Chromium, where Debian's chromium and chromium-driver are installed: nothing is downloaded."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

from tests.support import served

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
# Fetched by scripts/fetch_axe.sh: only the tests use it.
AXE = Path(__file__).parents[2] / ".axe" / "axe.min.js"


def missing() -> str:
    """Say what is missing to drive a browser, nothing where all is there."""
    found = {"chromium": CHROMIUM, "chromium-driver": DRIVER}
    absent = [name for name, path in found.items() if path is None]
    return f"not installed: {', '.join(absent)} (apt-get install chromium chromium-driver)" if absent else ""


@contextmanager
def chromium(*, width: int = 1200, height: int = 900, javascript: bool = True) -> Iterator[webdriver.Chrome]:
    """Start the browser; it keeps a log of what it asked for."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    # --no-sandbox: tests may run as root, for whom Chromium has none.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(flag)
    for flag in ("--disable-background-networking", "--disable-component-update", "--no-first-run", "--lang=en"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.set_page_load_timeout(120)
    driver.set_script_timeout(120)
    try:
        yield driver
    finally:
        driver.quit()


def requests_made(driver: webdriver.Chrome) -> list[str]:
    """Return the address of every request that pages of the browser have made, since last asked."""
    found = []
    for entry in driver.get_log("performance"):  # type: ignore[no-untyped-call]
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            address = urlsplit(message["params"]["request"]["url"])
            if address.scheme not in {"data", "about", "chrome"}:
                found.append(address.geturl())
    return found


def complaints(driver: webdriver.Chrome) -> list[str]:
    """Return what the console of the browser has complained of, violated policies among it."""
    return [str(entry["message"]) for entry in driver.get_log("browser")]  # type: ignore[no-untyped-call]


def axe_findings(driver: webdriver.Chrome) -> list[str]:
    """Return what axe-core finds of serious or critical on the page."""
    driver.execute_script(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = driver.execute_async_script(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']}).then(arguments[0])"
    )
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition of a page, which may be replaced by another one while it is looked at."""

    def holds_now() -> bool:
        try:
            return holds()
        except WebDriverException:  # of several kinds, when an element's page goes between two calls of the driver
            return False

    served.wait_until(holds_now)
