"""Take the pictures of the web page for README and docs, or of every page in every form, with a real server.

    .venv/bin/python scripts/screenshots.py                 # those of docs/images
    .venv/bin/python scripts/screenshots.py --to shots      # every page: wide, on a tablet, on a phone, dark, printed

Needs Debian's chromium and chromium-driver, and the models of the profile. The library is made of corpus/ and a
spreadsheet, in a temporary folder. Look at every picture before you commit it.
"""

import argparse
import base64
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import openpyxl  # type: ignore[import-untyped]
import pypdfium2
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CHECKOUT = Path(__file__).parents[1]
sys.path.insert(0, str(CHECKOUT))

from local_rag.store.people_file import add_person  # noqa: E402
from scripts.benchmarks.serve_load import MAIN, wait_until_loaded  # noqa: E402
from tests.support.browser import chromium, missing  # noqa: E402

IMAGES = CHECKOUT / "docs" / "images"
FOLDERS = ("about", "benefits", "incidents", "manuals", "policies", "reports", "web")  # of corpus/
ASKED = "How many weeks of paid leave does the parent who gives birth get in Ireland?"
NEXT, SUM = "And in Norway?", "What is the sum of the amounts of Hallgrim Stores?"
REFUSED = "What is the salary of the harbour master?"
COLUMNS = (
    "Country: Which country is the policy for?\nOwner: Who owns the policy? (name)\nCertificate: When is a note needed?"
)
PATIENCE = 900.0
ENDS = ("is complete", "are quoted", "do not answer")  # of the status when a question is done
COLOURS = 128  # of a picture that is kept
_PHONE = 500  # pixels: narrower windows are those of phones


@dataclass(frozen=True, slots=True)
class Form:
    """A window: its width and height, and whether it is dark."""

    name: str
    width: int
    height: int
    dark: bool = False


WIDE = Form("1280", 1280, 860)
FORMS = (WIDE, Form("768", 768, 1000), Form("380", 380, 780), Form("dark", 1280, 860, dark=True))


def main() -> None:
    """Make a library, serve it, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, help="a folder for pictures of every page in every form")
    parser.add_argument("--profile", default="starter")
    arguments = parser.parse_args()
    if reason := missing():
        sys.exit(f"No pictures: {reason}.")
    with tempfile.TemporaryDirectory() as made, serving(Path(made), arguments.profile) as server, chromium() as driver:
        server.log_in(driver)
        pages = server.prepare()
        if arguments.to:
            arguments.to.mkdir(parents=True, exist_ok=True)
            for form in FORMS:
                take_all(Camera(driver, arguments.to, form), server, pages)
            for name, address in pages.items():
                driver.get(server.address + address)
                printed(driver, arguments.to / f"{name}-print.png")
        else:
            take_those_of_docs(Camera(driver, IMAGES, WIDE), server, pages)


class Camera:
    """A browser with a window of a form, which saves what it shows."""

    def __init__(self, driver: Chrome, folder: Path, form: Form) -> None:
        self.driver, self.folder, self.form = driver, folder, form
        size = {"width": form.width, "height": form.height, "deviceScaleFactor": 1, "mobile": form.width < _PHONE}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if form.dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def save(self, name: str) -> None:
        """Save what the window shows."""
        keep(Image.open(io.BytesIO(self.driver.get_screenshot_as_png())), self.folder / f"{name}.png")


@dataclass(frozen=True, slots=True)
class Served:
    """A server of the library, with the token of who serves it."""

    address: str
    token: str

    def log_in(self, driver: Chrome) -> None:
        """Log in with the form."""
        driver.get(f"{self.address}/login")
        driver.find_element(By.ID, "token").send_keys(self.token, Keys.ENTER)
        wait_until(lambda: bool(driver.find_elements(By.ID, "ask")))

    def send(self, path: str, body: bytes | None = None, kind: str = "application/x-www-form-urlencoded") -> Any:
        """Send a request; return the JSON of the reply."""
        headers = {"accept": "application/json", "authorization": f"Bearer {self.token}", "content-type": kind}
        with urllib.request.urlopen(urllib.request.Request(self.address + path, body, headers)) as reply:  # noqa: S310
            return json.load(reply)

    def prepare(self) -> dict[str, str]:
        """Ask, extract and send a file; return the address of each page by the name of its picture."""
        refused = self.send("/ask", as_form(question=REFUSED))["conversation"]
        counted = self.send("/ask", as_form(question=SUM))["conversation"]
        begun = self.send("/ask", as_form(question=ASKED))
        thread = self.send("/ask", as_form(question=NEXT, conversation=begun["conversation"]))["conversation"]
        table = self.send("/tables", as_form(name="Leave policies", columns=COLUMNS, source="cooperative/benefits"))[
            "id"
        ]
        sent = f"\r\n{ASKED}\n{REFUSED}\nHow often is the tide gauge read?\n\r\n"
        head = 'content-disposition: form-data; name="file"; filename="questions.txt"\r\n'
        body = f"--end\r\n{head}{sent}--end--\r\n".encode()
        asked = self.send("/questions", body, "multipart/form-data; boundary=end")["id"]
        wait_until(lambda: not self.send(f"/questions/{asked}?format=json")["running"])
        wait_until(lambda: not self.send(f"/tables/{table}?format=json")["running"])
        number = {one["path"].rpartition("/")[2]: one["id"] for one in self.send("/library?format=json")["documents"]}
        versions = urlencode({"before": "travel-policy-2022.md", "after": "travel-policy-2025.md"})
        return {
            "start": "/",
            "thread": f"/?conversation={thread}",
            "rows": f"/?conversation={counted}",
            "refusal": f"/?conversation={refused}",
            "search": f"/search?{urlencode({'q': 'replace the lamp changer bulb'})}",
            "find": f"/find?{urlencode({'q': 'Which documents mention the lamp changer?'})}",
            "sources": "/sources",
            "library": "/library",
            "sheets": "/library/tables",
            "work": "/work",
            "document": f"/document/{number['travel-policy-2025.md']}",
            "pdf": f"/document/{number['lamp-changer-lc-12.pdf']}",
            "sheet": f"/document/{number['orders-2025.xlsx']}",
            "questions": f"/questions/{asked}",
            "tables": "/tables",
            "table": f"/tables/{table}",
            "brief": f"/brief?{urlencode({'document': 'cooperative.md'})}",
            "diff": f"/diff?{versions}",
            "people": "/people",
            "person": "/people/new",
            "history": "/history",
            "inspect": f"/inspect?{urlencode({'q': ASKED})}",
            "health": "/health",
        }


def as_form(**fields: str) -> bytes:
    """Return the body of a form."""
    return urlencode(fields).encode()


@contextmanager
def serving(place: Path, profile: str) -> Iterator[Served]:
    """Index the documents of the pictures, and serve them to their owner and two other people."""
    documents = place / "cooperative"
    for name in FOLDERS:
        shutil.copytree(CHECKOUT / "corpus" / name, documents / name)
    write_orders(documents / "orders" / "orders-2025.xlsx")
    library, token = place / "lib", "the-token-of-these-pictures"
    run, environment = [sys.executable, "-P", "-c", MAIN], os.environ | {"LOCAL_RAG_TOKEN": token}
    chosen = ["--library", str(library), "--profile", profile]
    subprocess.run([*run, "index", str(documents), *chosen, "--context", "headings"], check=True, env=environment)
    add_person(library, "Anna Berg", "reader", within=["benefits/**", "policies/**"])
    add_person(library, "Tomas Lind", "editor")
    command = [*run, "serve", "--port", "0", *chosen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
            wait_until_loaded(f"{address.rstrip('/')}/")
            yield Served(address.rstrip("/"), token)
        finally:
            server.terminate()


def write_orders(path: Path) -> None:
    """Write a spreadsheet: corpus/ has none."""
    book = openpyxl.Workbook()
    book.active.title = "Orders"
    book.active.append(["Order", "Date", "Customer", "Station", "Article", "Quantity", "Amount (EUR)"])
    customers, articles = (
        ("Hallgrim Stores", "Norrland Chandlery", "Saltmarsh Supply"),
        ("Lamp bulb", "Rope 40 m", "Filter"),
    )
    for number in range(24):
        day, quantity = f"2025-{number // 2 + 1:02}-{3 + number:02}", number % 7 + 1
        row = [f"O-{2501 + number}", day, customers[number % 3], ("Inishvarra", "Hraunvik")[number % 2]]
        book.active.append([*row, articles[number % 3], quantity, quantity * (18.5 + number)])
    path.parent.mkdir(parents=True)
    book.save(path)


def take_all(camera: Camera, server: Served, pages: dict[str, str]) -> None:
    """Take every page, and the dialogs."""
    driver = camera.driver
    for name, address in pages.items():
        driver.get(server.address + address)
        settle(driver)
        camera.save(f"{name}-{camera.form.name}")
    driver.get(server.address)
    open_dialog(driver, "sources", "#choose[open] .tree")
    camera.save(f"sources-dialog-{camera.form.name}")
    driver.get(server.address)
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.CONTROL, "k")
    wait_until(lambda: bool(driver.find_elements(By.CSS_SELECTOR, "#open-anything[open] .named a")))
    camera.save(f"open-{camera.form.name}")


def take_those_of_docs(camera: Camera, server: Served, pages: dict[str, str]) -> None:
    """Take the pictures of README and docs."""
    driver = camera.driver
    for name, page in (("start", "start"), ("conversation", "thread"), ("refusal", "refusal"), ("document", "pdf"),
                       ("library", "library")):  # fmt: skip
        driver.get(server.address + pages[page])
        settle(driver)
        camera.save(name)
    driver.get(server.address)
    driver.find_element(By.ID, "question").send_keys(ASKED, Keys.ENTER)
    wait_until(lambda: any(end in driver.find_element(By.ID, "status").text for end in ENDS))
    driver.find_element(By.CSS_SELECTOR, ".turn a.cite").click()
    time.sleep(0.5)  # what scrolls smoothly
    camera.save("answer-light")
    driver.get(server.address)
    open_dialog(driver, "sources", "#choose[open] .tree")
    driver.find_element(By.CSS_SELECTOR, "#choose input[value='cooperative/benefits']").click()
    camera.save("sources")


def open_dialog(driver: Chrome, button: str, shown: str) -> None:
    """Open a dialog, and wait for what it shows."""
    driver.find_element(By.ID, button).send_keys(Keys.ENTER)
    wait_until(lambda: bool(driver.find_elements(By.CSS_SELECTOR, shown)))


def settle(driver: Chrome) -> None:
    """Wait for the drawn pages of a PDF."""
    drawn = "return [...document.querySelectorAll('.page img')].slice(0, 1).every((one) => one.complete)"
    wait_until(lambda: bool(driver.execute_script(drawn)))


def printed(driver: Chrome, path: Path) -> None:
    """Save the first sheet of a page as it is printed."""
    page = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    document = pypdfium2.PdfDocument(base64.b64decode(page["data"]))
    keep(document[0].render(scale=1.2).to_pil(), path)


def keep(picture: Image.Image, path: Path) -> None:
    """Save a picture with few colours, in which text stays sharp, in a fourth of the bytes."""
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit("It took too long; run the script again on an idle machine.")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
