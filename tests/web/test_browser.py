"""A real headless Chromium drives the page: with and without JavaScript, by keyboard, never to another host."""

import re
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from local_rag.errors import StoppedError
from local_rag.llama.generator import Request, Token
from local_rag.web.app import make_app
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support.browser import AXE, axe_findings, chromium, complaints, hosts_asked, missing
from tests.support.served import QUESTION, index, owner, reply, server, wait_until

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"no browser: {missing()}")

ENDLESS = "Tell me of the boat without end"


class Talker(FakeGenerator):
    """A generator that writes slowly, and to one question never ends."""

    def __init__(self) -> None:
        super().__init__(reply, context_tokens=100_000)
        self.stopped = threading.Event()

    def stream(self, requests: Iterable[Request]) -> Iterator[Token]:
        for request in requests:
            endless = ENDLESS in self._text(request)
            while endless:
                yield Token(request.key, ord("x"))
                time.sleep(0.02)
                if self.stop():
                    self.stopped.set()
                    raise StoppedError("The answer was stopped.")
            for token in super().stream([request]):
                time.sleep(0.002)
                yield token


class Site:
    """A server on a port, with the generator behind it."""

    def __init__(self, address: str, talker: Talker) -> None:
        self.address, self.talker = address, talker


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    documents = folder / "documents"
    documents.mkdir()
    (documents / "boat.txt").write_text("The boat leaves the harbour at seven. It carries twelve people.\n")
    (documents / "leave.md").write_text("# Leave\n\n## Norway\n\nParents get 49 weeks.\n\n## Ireland\n\n26 weeks.\n")
    (documents / "evil.md").write_text(
        "# <script>document.title='taken'</script>\n\nThe boat <img src=http://192.0.2.1/x>.\n"
    )
    index(documents, folder / "lib")
    talker = Talker()
    held = owner(folder / "lib", replace(QUICK, open_engine=generating(talker)))
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}  # the port is not known before it is taken
    with server(make_app(held, hosts=allowed)) as address:
        wait_until(lambda: held.ready)
        yield Site(address, talker)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(autouse=True)
def nothing_leaves(request: pytest.FixtureRequest) -> Iterator[None]:
    """List every request of the browser after each test: none goes to another host, and nothing was refused."""
    yield
    if "browser" in request.fixturenames:
        driver = request.getfixturevalue("browser")
        assert hosts_asked(driver) <= {"127.0.0.1"}
        assert [one for one in complaints(driver) if "favicon" not in one] == []


def status(driver: Chrome) -> str:
    return driver.find_element(By.ID, "status").text


def ask(driver: Chrome, site: Site, question: str) -> None:
    driver.get(site.address)
    driver.find_element(By.ID, "question").send_keys(question, Keys.ENTER)


def test_an_answer_is_streamed_and_its_citation_leads_to_the_evidence(browser: Chrome, site: Site) -> None:
    ask(browser, site, QUESTION)
    wait_until(lambda: "Writing" in status(browser))
    assert browser.find_elements(By.CSS_SELECTOR, "#cards .card"), "passages are there before the answer is"
    wait_until(lambda: "complete" in status(browser))
    browser.find_element(By.CSS_SELECTOR, "#answer-body a.cite").click()
    focused = browser.switch_to.active_element
    assert focused.get_attribute("id") == "source-1"
    marked = "".join(mark.text for mark in focused.find_elements(By.CSS_SELECTOR, "mark.best"))
    assert "boat" in marked
    assert browser.title != "taken"


def test_what_grows_is_in_no_live_region(browser: Chrome, site: Site) -> None:
    ask(browser, site, ENDLESS)
    wait_until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".growing")) == 1)
    growing = browser.find_element(By.CSS_SELECTOR, ".growing")
    assert growing.get_attribute("aria-busy") == "true"
    assert not browser.find_elements(
        By.CSS_SELECTOR, "[aria-live] .growing, [role=status] .growing, .growing[aria-live]"
    )
    browser.find_element(By.ID, "question").send_keys(Keys.ESCAPE)
    wait_until(lambda: "Stopped" in status(browser))


@pytest.mark.parametrize("how", ["button", "closed tab"])
def test_stop_and_a_closed_tab_end_the_generation(browser: Chrome, site: Site, how: str) -> None:
    site.talker.stopped.clear()
    ask(browser, site, ENDLESS)
    wait_until(lambda: "Writing" in status(browser))
    if how == "button":
        browser.find_element(By.ID, "stop").click()
        wait_until(lambda: "Stopped" in status(browser))
    else:
        browser.get("about:blank")
    assert site.talker.stopped.wait(10)
    ask(browser, site, f"{QUESTION} {how}")
    wait_until(lambda: "complete" in status(browser))


def test_by_keyboard_alone(browser: Chrome, site: Site) -> None:
    browser.get(site.address)
    names = []
    for _ in range(30):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        names.append(browser.switch_to.active_element.text)
        if browser.switch_to.active_element.get_attribute("id") == "question":
            break
    assert names[0] == "Skip to content"
    browser.switch_to.active_element.send_keys("boat", Keys.TAB, Keys.TAB)
    assert browser.switch_to.active_element.text == "Search only"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait_until(lambda: "/search?q=boat" in browser.current_url)
    browser.find_element(By.CSS_SELECTOR, ".card .place a").send_keys(Keys.ENTER)
    wait_until(lambda: "/document/" in browser.current_url)
    assert browser.find_element(By.ID, "passage").is_displayed()


def test_all_pages_are_read_without_javascript(site: Site) -> None:
    with chromium(javascript=False) as driver:
        driver.get(site.address)
        driver.find_element(By.ID, "question").send_keys(f"{QUESTION} plainly")
        driver.find_element(By.CSS_SELECTOR, "button.primary").click()
        wait_until(lambda: driver.current_url.endswith("/ask"))
        assert "seven" in driver.find_element(By.ID, "answer-body").text
        assert not driver.find_element(By.ID, "stop").is_displayed()
        driver.find_element(By.CSS_SELECTOR, "#answer-body a.cite").click()
        assert driver.current_url.endswith("#source-1")
        assert hosts_asked(driver) <= {"127.0.0.1"}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: run scripts/fetch_axe.sh")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Chrome, site: Site, theme: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    paths = [
        "/",
        "/search?q=boat",
        "/document/1?chunk=1",
        "/inspect?q=boat&path=leave",
        "/library",
        "/history",
        "/login",
        "/no",
    ]
    found = {}
    for path in paths:
        browser.get(site.address + path)
        found[path] = axe_findings(browser)
    ask(browser, site, QUESTION)
    wait_until(lambda: "complete" in status(browser))
    found["answer"] = axe_findings(browser)
    complaints(browser)  # of the page that there is not
    assert {path: findings for path, findings in found.items() if findings} == {}


def test_a_narrow_window_needs_no_scrolling_sideways(browser: Chrome, site: Site) -> None:
    size = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("/", "/search?q=boat", "/document/1", "/inspect?q=boat", "/library", "/history"):
            browser.get(site.address + path)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 320, path
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_library_is_watched_while_it_is_indexed(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/library")
    before = browser.execute_script("return performance.getEntriesByType('resource').length")
    wait_until(lambda: browser.execute_script("return performance.getEntriesByType('resource').length") > before)
    assert re.search(r"Documents\s+3", browser.find_element(By.TAG_NAME, "main").text)


def test_the_theme_is_kept(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/library")
    browser.find_element(By.CSS_SELECTOR, "button[value=dark]").send_keys(Keys.ENTER)
    wait_until(lambda: browser.execute_script("return document.documentElement.dataset.theme") == "dark")
    assert browser.current_url.endswith("/library")
    assert Path(browser.current_url).name == "library"
    browser.find_element(By.CSS_SELECTOR, "button[value=auto]").send_keys(Keys.ENTER)
