"""The browser on the library, on documents, on the answers of a file and on people, with and without JavaScript."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import openpyxl  # type: ignore[import-untyped]
import pytest
from fpdf import FPDF
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from local_rag.library import Library
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from tests.fakes import QUICK, generating
from tests.support.browser import AXE, axe_findings, chromium, complaints, missing, requests_made, wait_until
from tests.support.served import DOUBTED, QUESTION, Talker, index, server, worker

pytestmark = [pytest.mark.rest, pytest.mark.skipif(bool(missing()), reason=f"no browser: {missing()}")]

TOKEN = "a-token-of-the-owner"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages")
    for number in range(6):
        note = place / "docs" / f"20{24 + number % 2}" / f"note {number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# Note {number}\n\nThe boat leaves the harbour at seven. It carries twelve people.\n")
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for row in (["Article", "Price"], ["BW-101", 12.5], ["BW-102", None]):
        book.active.append(row)
    book.create_sheet("Discounts").append(["From 10", "5 %"])
    book.save(place / "docs" / "prices.xlsx")
    page = FPDF(orientation="landscape", format=(150, 210))
    page.add_page()
    page.set_font("helvetica")
    page.cell(text="The mast stands on a page that is wider than it is high.")
    page.output(str(place / "docs" / "wide.pdf"))
    (place / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 this is none")
    index(place / "docs", place / "lib")
    return place / "lib"


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    held = worker(folder, replace(QUICK, open_engine=generating(Talker())))
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}  # the port is not known before it is taken
    with server(make_app(held, hosts=allowed, access=Access(TOKEN))) as found:
        wait_until(lambda: held.ready)
        yield found


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Chrome]:
    with chromium() as driver:
        log_in(driver, address)
        yield driver


@pytest.fixture(autouse=True)
def nothing_leaves(browser: Chrome) -> Iterator[None]:
    """Look at every request and complaint of the browser after each test."""
    yield
    assert {urlsplit(one).hostname for one in requests_made(browser)} <= {"127.0.0.1"}
    assert [one for one in complaints(browser) if "favicon" not in one and "Password forms" not in one] == []


def log_in(driver: Chrome, address: str, token: str = TOKEN) -> None:
    driver.get(f"{address}/login")
    driver.find_element(By.ID, "token").send_keys(token, Keys.ENTER)
    wait_until(lambda: bool(driver.find_elements(By.CSS_SELECTOR, "form[action='/logout']")))


def press(element: WebElement) -> None:
    """Press a button or box by keyboard: where one clicks may still be moving, because pages scroll smoothly."""
    element.send_keys(Keys.SPACE)


def document(folder: Path, name: str) -> int:
    with Library(folder) as library:
        return next(number for path, number in library.documents.contents().documents.items() if path.endswith(name))


def text(driver: Chrome, selector: str = "main") -> str:
    return driver.find_element(By.CSS_SELECTOR, selector).text


def test_documents_are_looked_through_and_chosen(browser: Chrome, address: str) -> None:
    browser.get(f"{address}/library")
    top, table = (browser.find_element(By.CSS_SELECTOR, one).rect["y"] for one in (".attention", ".documents"))
    assert top < table
    browser.find_element(By.ID, "look").send_keys("note", Keys.ENTER)
    wait_until(lambda: "6 documents with" in text(browser))
    browser.find_element(By.PARTIAL_LINK_TEXT, "2024").send_keys(Keys.ENTER)
    wait_until(lambda: "3 documents with" in text(browser))
    (button,) = browser.find_elements(By.CSS_SELECTOR, ".bulk-actions button")
    assert not button.is_enabled()
    press(browser.find_element(By.ID, "all-of-page"))
    assert text(browser, "#chosen-count") == "3 chosen"
    press(browser.find_elements(By.CSS_SELECTOR, "input[name=document]")[0])
    assert text(browser, "#chosen-count") == "2 chosen"
    press(button)
    wait_until(lambda: text(browser, "h1") == "Remove 2 documents from the library?")
    browser.find_element(By.LINK_TEXT, "Keep them").send_keys(Keys.ENTER)
    wait_until(lambda: text(browser, "h1") == "Library")


SHIFTS = """
window.moved = [];
new PerformanceObserver((list) => list.getEntries().forEach((one) => window.moved.push(
  `${one.value} ${one.sources.map(({ node }) => node && node.nodeName)}`)))
  .observe({ type: "layout-shift", buffered: true });
"""


def test_a_page_of_a_pdf_has_its_place_before_it_is_drawn(browser: Chrome, address: str, folder: Path) -> None:
    page = f"{address}/document/{document(folder, 'wide.pdf')}"
    drawn = "const image = document.querySelector('.page img'); return image.complete && image.naturalWidth"
    # On a busy machine the page waits in vain for its first drawing; from then on the size of the file is known.
    browser.get(page)
    wait_until(lambda: browser.execute_script(drawn) > 100)
    browser.get(page)
    browser.execute_script(SHIFTS)
    wait_until(lambda: browser.execute_script(drawn) > 100)
    time.sleep(0.3)
    image = browser.find_element(By.CSS_SELECTOR, ".page img")
    shape = "return [arguments[0].naturalWidth, arguments[0].naturalHeight].map(String)"
    assert browser.execute_script(shape, image) == [image.get_dom_attribute("width"), image.get_dom_attribute("height")]
    assert image.rect["width"] > image.rect["height"]
    assert browser.execute_script("return moved") == []


def test_a_sheet_is_a_table_below_its_headings(browser: Chrome, address: str, folder: Path) -> None:
    browser.get(f"{address}/document/{document(folder, 'prices.xlsx')}")
    rows = browser.find_elements(By.CSS_SELECTOR, ".rendered .rows tr")
    assert [row.text.split() for row in rows[:3]] == [["Article", "Price"], ["2", "BW-101", "12.5"], ["3", "BW-102"]]
    assert "#" not in text(browser)
    browser.find_element(By.CSS_SELECTOR, ".outline").find_element(By.LINK_TEXT, "Discounts").send_keys(Keys.ENTER)
    assert browser.find_element(By.ID, urlsplit(browser.current_url).fragment).text == "Discounts"


def test_answers_of_a_file_are_read_sorted_and_corrected(browser: Chrome, address: str, folder: Path) -> None:
    asked = folder.parent / "asked.txt"
    asked.write_text(f"{QUESTION}\n{DOUBTED}\n")
    browser.get(f"{address}/questions")
    browser.find_element(By.ID, "files").send_keys(str(asked))
    browser.find_element(By.CSS_SELECTOR, "button.primary").send_keys(Keys.ENTER)
    # Without another look by the reader: the rows come as they are written.
    wait_until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".answers-table tbody > tr")) == 2)
    assert "The boat leaves the harbour at seven." in text(browser, "#row-2 blockquote")
    browser.find_element(By.CSS_SELECTOR, "#row-1 .correct summary").send_keys(Keys.ENTER)
    box = browser.find_element(By.ID, "answer-1")
    box.clear()
    box.send_keys("At eight.")
    press(browser.find_element(By.CSS_SELECTOR, "#row-1 .correct button.primary"))
    wait_until(lambda: "Written by" in text(browser, "#row-1"))
    assert "At eight." in text(browser, "#row-1 .corrected")
    browser.find_element(By.PARTIAL_LINK_TEXT, "Corrected by hand").send_keys(Keys.ENTER)
    wait_until(lambda: "show=corrected" in browser.current_url)
    assert [row.get_attribute("id") for row in browser.find_elements(By.CSS_SELECTOR, "tr[id]")] == ["row-1"]
    if AXE.exists():
        assert axe_findings(browser) == []


def test_a_person_is_added_by_ticking_a_tree_and_comes_in_by_a_link(browser: Chrome, address: str) -> None:
    browser.get(f"{address}/people/new")
    browser.find_element(By.ID, "name").send_keys("Anna")
    boxes = {str(one.get_attribute("value")).rpartition("docs")[2]: one
             for one in browser.find_elements(By.CSS_SELECTOR, ".tree input")}  # fmt: skip
    press(boxes["/2024/**"])
    wait_until(lambda: "3 of 8 documents" in text(browser, "#seen"))
    assert browser.find_element(By.CSS_SELECTOR, "[name=sees][value=chosen]").is_selected()
    assert browser.execute_script("return arguments[0].indeterminate", boxes["/**"])
    press(boxes["/**"])
    wait_until(lambda: "8 of 8 documents" in text(browser, "#seen"))
    press(boxes["/2025/**"])
    wait_until(lambda: "5 of 8 documents" in text(browser, "#seen"))
    if AXE.exists():
        assert axe_findings(browser) == []
    press(browser.find_element(By.CSS_SELECTOR, ".person button.primary"))
    wait_until(lambda: text(browser, "h1") == "A link for Anna")
    link = str(browser.find_element(By.CSS_SELECTOR, ".secret a").get_attribute("href"))
    with chromium(javascript=False) as other:
        other.get(link)
        press(other.find_element(By.CSS_SELECTOR, "main button"))
        wait_until(lambda: bool(other.find_elements(By.ID, "token")))
        other.get(f"{address}/library")
        assert "5 documents" in text(other)
        assert not other.find_elements(By.CSS_SELECTOR, "progress, form[action='/library/remove']")
        other.get(link)
        assert "was used, has expired" in text(other)
    browser.get(f"{address}/people")
    assert "5 of 8" in text(browser, "tbody tr")


def test_without_javascript_people_and_documents_are_managed_too(address: str) -> None:
    with chromium(javascript=False) as driver:
        log_in(driver, address)
        driver.get(f"{address}/people/new")
        driver.find_element(By.ID, "name").send_keys("Ben")
        press(driver.find_element(By.CSS_SELECTOR, "[name=sees][value=chosen]"))
        press(driver.find_element(By.CSS_SELECTOR, ".tree li li input"))
        press(driver.find_element(By.CSS_SELECTOR, "[formaction='/people/preview']"))
        wait_until(lambda: "3 of 8 documents" in text(driver, "#seen"))
        assert driver.find_element(By.CSS_SELECTOR, ".tree li li input").is_selected()
        driver.get(f"{address}/library?q=note")
        press(driver.find_element(By.CSS_SELECTOR, "input[name=document]"))
        press(driver.find_element(By.CSS_SELECTOR, ".bulk-actions button"))
        wait_until(lambda: text(driver, "h1") == "Remove from the library?")
        assert {urlsplit(one).hostname for one in requests_made(driver)} == {"127.0.0.1"}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: run scripts/fetch_axe.sh")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_and_a_narrow_window_needs_no_scrolling(
    browser: Chrome, address: str, folder: Path, theme: str
) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    pages = ["/library", "/library?q=note&sort=title", "/people", "/people/new", "/questions"]
    pages += [f"/document/{document(folder, name)}" for name in ("prices.xlsx", "wide.pdf", "note 1.md")]
    found = {}
    for width in (1200, 320):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for page in pages:
            browser.get(address + page)
            found[f"{page} at {width}"] = axe_findings(browser)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {page: findings for page, findings in found.items() if findings} == {}
