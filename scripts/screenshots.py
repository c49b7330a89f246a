"""Take the pictures of the web page for README and docs, with a real server and headless Chromium.

    .venv/bin/python scripts/screenshots.py --library .local-rag

Needs Debian's chromium and chromium-driver, and a library of corpus/. Look at every picture before you commit it.
"""

import argparse
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

CHECKOUT = Path(__file__).parents[1]
sys.path.insert(0, str(CHECKOUT))

from tests.support.browser import chromium, missing  # noqa: E402

IMAGES = CHECKOUT / "docs" / "images"
ASKED = "How many weeks of paid leave does the parent who gives birth get in Ireland?"
REFUSED = "What is the salary of the harbour master?"
PATIENCE = 300.0
ENDS = ("is complete", "are quoted", "do not answer")  # of the status when a question is done


def main() -> None:
    """Start a server and take every picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=Path(".local-rag"))
    parser.add_argument("--address", help="address of a running server")
    arguments = parser.parse_args()
    if reason := missing():
        sys.exit(f"No pictures: {reason}.")
    IMAGES.mkdir(exist_ok=True)
    if arguments.address:
        take_all(arguments.address.rstrip("/"))
        return
    command = [
        sys.executable,
        "-P",
        "-c",
        "from local_rag.cli.main import main; main()",
        "serve",
        "--no-token",
        "--port",
        "0",
    ]
    with subprocess.Popen([*command, "--library", arguments.library], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            take_all(server.stdout.readline().split()[-1].rstrip("/"))
        finally:
            server.terminate()


def take_all(address: str) -> None:
    """Take the pictures of docs/serve.md."""
    wait_until(lambda: b'"ready": true' in urllib.request.urlopen(f"{address}/healthz").read())  # noqa: S310
    with chromium(width=1280, height=860) as driver:
        size = {"width": 1280, "height": 860, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        light = {"name": "prefers-color-scheme", "value": "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [light]})
        ask(driver, address, ASKED)
        save(driver, "answer-light")
        go_on(driver, "And in Norway?")
        save(driver, "conversation")
        ask(driver, address, REFUSED)
        save(driver, "refusal")
        driver.get(f"{address}/search?{urlencode({'q': 'replace the lamp changer bulb'})}")
        pdf = next(link for link in driver.find_elements(By.CSS_SELECTOR, ".card .place a") if ".pdf" in link.text)
        driver.get(str(pdf.get_attribute("href")))
        wait_until(lambda: bool(driver.execute_script("return document.querySelector('.page img').complete")))
        driver.execute_script("window.scrollTo(0, 0)")
        save(driver, "document")


def ask(driver: Chrome, address: str, question: str) -> None:
    """Ask a question on the page and wait until the answer is complete."""
    driver.get(address)
    driver.find_element(By.ID, "question").send_keys(question)
    driver.find_element(By.CSS_SELECTOR, "button.primary").click()
    wait_until(lambda: any(end in status(driver) for end in ENDS))
    driver.execute_script("window.scrollTo(0, 0)")


def go_on(driver: Chrome, question: str) -> None:
    """Ask a follow-up question on the open page."""
    driver.find_element(By.ID, "question").clear()
    driver.find_element(By.ID, "question").send_keys(question)
    driver.find_element(By.CSS_SELECTOR, "button.primary").click()
    wait_until(lambda: bool(driver.find_elements(By.CSS_SELECTOR, "#thread .turn")))
    wait_until(lambda: any(end in status(driver) for end in ENDS))
    driver.execute_script("window.scrollTo(0, 0)")


def status(driver: Chrome) -> str:
    """Return the status that the page shows."""
    return driver.find_element(By.ID, "status").text


def save(driver: Chrome, name: str) -> None:
    """Save a picture of the window."""
    driver.save_screenshot(str(IMAGES / f"{name}.png"))


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit("It took too long; run the script again on an idle machine.")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
