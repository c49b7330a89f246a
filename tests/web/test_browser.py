"""A real headless Chromium drives the page: with and without JavaScript, by keyboard, never to another host."""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from local_rag.model_records import PLAIN_FORM
from local_rag.serving.worker import LibraryWorker
from local_rag.store.database import library_lock
from local_rag.web.app import make_app
from tests.fakes import QUICK, generating
from tests.support import served
from tests.support.browser import AXE, axe_findings, chromium, complaints, missing, requests_made, wait_until
from tests.support.served import DOUBTED, ENDLESS, QUESTION, Talker, index, server, worker

pytestmark = [pytest.mark.rest, pytest.mark.skipif(bool(missing()), reason=f"no browser: {missing()}")]

CORPUS = Path(__file__).parents[2] / "corpus"


class Site:
    """A server on a port, with the generator behind it."""

    def __init__(self, address: str, talker: Talker, folder: Path) -> None:
        self.address, self.talker, self.folder = address, talker, folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    documents = folder / "documents"
    documents.mkdir()
    (documents / "boat.txt").write_text("The boat leaves the harbour at seven. It carries twelve people.\n")
    (documents / "leave.md").write_text(
        "# Leave\n\n## Norway\n\nParents get 49 weeks.\n\n## Ireland\n\n26 weeks.\n\n- שבועות 26.\n"
    )
    (documents / "evil.md").write_text(
        "# <script>document.title='taken'</script>\n\nThe boat <img src=http://192.0.2.1/x>.\n"
    )
    shutil.copy(CORPUS / "manuals" / "lamp-changer-lc-12.pdf", documents)
    index(documents, folder / "lib")
    talker = Talker()
    held = worker(folder / "lib", replace(QUICK, open_engine=generating(talker)))
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}  # the port is not known before it is taken
    addable = folder / "addable"
    addable.mkdir()
    (addable / "minutes.md").write_text("# Minutes\n\nThe boat was late.\n")
    with server(make_app(held, hosts=allowed, may_add=[addable])) as address:
        wait_until(lambda: held.ready)
        yield Site(address, talker, folder / "lib")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def requested() -> list[str]:
    """Every address that any page of a test has asked for."""
    return []


@pytest.fixture(autouse=True)
def nothing_leaves(request: pytest.FixtureRequest, requested: list[str]) -> Iterator[None]:
    """List every request of the browser after each test: none goes to another host, and nothing was refused."""
    yield
    if "browser" in request.fixturenames:
        driver = request.getfixturevalue("browser")
        requested += (made := requests_made(driver))
        assert hosts(made) <= {"127.0.0.1"}
        assert [one for one in complaints(driver) if "favicon" not in one] == []


def hosts(addresses: Iterable[str]) -> set[str | None]:
    return {urlsplit(address).hostname for address in addresses}


def status(driver: Chrome) -> str:
    return driver.find_element(By.ID, "status").text


def ask(driver: Chrome, site: Site, question: str) -> None:
    driver.get(site.address)
    driver.find_element(By.ID, "question").send_keys(question, Keys.ENTER)


def asked(driver: Chrome) -> list[str]:
    return [one.text for one in driver.find_elements(By.CSS_SELECTOR, "#thread .asked")]


def test_an_answer_is_streamed_and_its_citation_leads_to_the_evidence(browser: Chrome, site: Site) -> None:
    ask(browser, site, QUESTION)
    wait_until(lambda: "Reading" in status(browser))
    assert browser.find_elements(By.CSS_SELECTOR, ".turn .card"), "passages are there before the answer is"
    wait_until(lambda: "complete" in status(browser))
    cite = browser.find_element(By.CSS_SELECTOR, ".turn .answer a.cite")
    number = cite.text.strip("[]")
    cite.click()
    focused = browser.switch_to.active_element
    assert focused.get_attribute("id") == f"turn-1-source-{number}"
    marked = "".join(mark.text for mark in browser.find_elements(By.CSS_SELECTOR, ".turn mark.best"))
    assert "The boat leaves the harbour at seven." in marked
    assert focused.find_element(By.CSS_SELECTOR, ".tag").text == "cited"
    assert browser.title != "taken"


def test_struck_words_go_and_what_was_not_read_is_folded_away(browser: Chrome, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nBoat {number} leaves the harbour at seven.\n")
    index(tmp_path, tmp_path / "lib")
    library = served.Streaming(tmp_path / "lib", parts=served.parts(holds=lambda prompt: DOUBTED not in prompt))
    library.may_strike.clear()
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    with server(make_app(LibraryWorker(lambda: library), hosts=allowed)) as address:
        browser.get(address)
        browser.find_element(By.ID, "question").send_keys(QUESTION, Keys.ENTER)
        wait_until(lambda: browser.find_element(By.CSS_SELECTOR, ".growing").text.endswith(library.STRUCK))
        library.may_strike.set()
        wait_until(lambda: "complete" in status(browser))
        assert "99" not in browser.find_element(By.CSS_SELECTOR, ".turn .prose").text
        folded = browser.find_element(By.CSS_SELECTOR, ".turn details.more")
        assert re.fullmatch(r"\d+ other passages?", folded.text)
        assert len(browser.find_elements(By.CSS_SELECTOR, ".cards > .card")) == 3
        browser.find_element(By.ID, "question").send_keys(DOUBTED, Keys.ENTER)
        wait_until(lambda: "quoted" in status(browser))
        quote, button = (browser.find_element(By.CSS_SELECTOR, one).rect for one in (".quote", ".anyway"))
        assert 0 <= button["y"] - (quote["y"] + quote["height"]) < 30


def test_three_messages_are_read_out_and_what_grows_is_not(browser: Chrome, site: Site) -> None:
    browser.get(site.address)
    browser.execute_script(
        "window.said = [];"
        "new MutationObserver(() => said.push(document.getElementById('status').textContent))"
        ".observe(document.getElementById('status'), {childList: true, characterData: true, subtree: true})"
    )
    browser.find_element(By.ID, "question").send_keys(f"{QUESTION} slowly", Keys.ENTER)
    wait_until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".growing")) == 1)
    live = "[aria-live] .growing, [role=status] .growing, [role=alert] .growing, [role=log] .growing"
    assert not browser.find_elements(By.CSS_SELECTOR, live)
    wait_until(lambda: "complete" in status(browser))
    said = [one.partition(":")[0] for one in browser.execute_script("return said")]
    assert said == ["Searching.", "Reading", "The answer is complete."]


def test_a_conversation_goes_on_until_a_new_subject(browser: Chrome, site: Site) -> None:
    ask(browser, site, f"{QUESTION} First")
    wait_until(lambda: "complete" in status(browser))
    assert "conversation=" in browser.current_url
    box = browser.find_element(By.ID, "question")
    assert box.get_attribute("value") == "", "it is emptied"
    box.send_keys(f"{QUESTION} Second", Keys.ENTER)
    wait_until(lambda: bool(browser.find_elements(By.ID, "turn-2")))
    assert asked(browser) == [f"{QUESTION} First", f"{QUESTION} Second"]
    assert [one.is_displayed() for one in browser.find_elements(By.CSS_SELECTOR, ".turn .prose")] == [True, True]
    bottom = "return document.getElementById('ask').getBoundingClientRect().bottom <= innerHeight"
    for place in (0, 10_000):
        browser.execute_script(f"scrollTo(0, {place})")
        assert browser.execute_script(bottom), "the field stays in the window"
    browser.execute_script("document.querySelector('#turn-1 a.cite').click()")
    assert browser.switch_to.active_element.get_attribute("id") == "turn-1-source-1"
    assert browser.current_url.endswith("#turn-1-source-1")
    browser.find_element(By.ID, "new_subject").click()
    box.send_keys(f"{QUESTION} Third", Keys.ENTER)
    wait_until(lambda: bool(browser.find_elements(By.ID, "turn-3")))
    assert not browser.find_element(By.ID, "new_subject").is_selected()
    browser.refresh()
    assert asked(browser) == [f"{QUESTION} {one}" for one in ("First", "Second", "Third")]
    assert [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".subject")] == ["New subject"]
    prompts = [prompt for prompt in site.talker.prompts if PLAIN_FORM.request in prompt]
    assert [prompt.count("Question:") for prompt in prompts[-6::2]] == [2, 4, 2], "each twice"


def test_a_page_of_a_pdf_is_drawn_next_to_its_text(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/search?q=lamp+changer+bulb")
    pdf = next(link for link in browser.find_elements(By.CSS_SELECTOR, ".card .place a") if ".pdf" in link.text)
    browser.get(str(pdf.get_attribute("href")))
    drawn = "const image = document.querySelector('.page img'); return image.complete && image.naturalWidth"
    wait_until(lambda: browser.execute_script(drawn) > 100)
    image, text = (browser.find_element(By.CSS_SELECTOR, one).rect for one in (".page img", ".beside-page section"))
    assert image["x"] + image["width"] <= text["x"]
    assert browser.find_element(By.CSS_SELECTOR, ".rendered mark").is_displayed()
    assert "its text stands beside it" in str(browser.find_element(By.CSS_SELECTOR, ".page img").get_attribute("alt"))


def test_a_document_is_rendered_and_a_link_opens_it_at_the_best_sentence(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/search?q=weeks+Norway+parents")
    card = next(one for one in browser.find_elements(By.CSS_SELECTOR, ".card") if "leave.md" in one.text)
    assert not card.find_elements(By.CSS_SELECTOR, ".rendered script, .rendered img, .rendered a")
    link = str(card.find_element(By.CSS_SELECTOR, ".place a").get_attribute("href"))
    browser.get(link.partition("#")[0])  # as after logging in, which drops what follows the #
    assert [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".rendered h3")] == ["Norway", "Ireland"]
    best = browser.find_element(By.CSS_SELECTOR, ".rendered mark.best")
    assert best.get_attribute("id") == "passage"
    assert "Parents get 49 weeks." in best.text
    browser.find_element(By.PARTIAL_LINK_TEXT, "line by line").click()
    wait_until(lambda: bool(browser.find_elements(By.CSS_SELECTOR, ".lines .line")))
    assert "## Norway" in browser.find_element(By.CSS_SELECTOR, ".lines").text


RUNS = """
const item = document.querySelector(".rendered li"), text = item.firstChild, range = document.createRange();
const [first, last] = [0, text.length - 1].map((at) => {
  range.setStart(text, at);
  range.setEnd(text, at + 1);
  return range.getBoundingClientRect();
});
return [getComputedStyle(item).direction, first.x > last.x, item.getBoundingClientRect().right - first.right < 1];
"""


def test_a_paragraph_runs_from_right_to_left_where_its_letters_do(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/search?q=weeks+Norway+parents")
    card = next(one for one in browser.find_elements(By.CSS_SELECTOR, ".card") if "leave.md" in one.text)
    browser.get(str(card.find_element(By.CSS_SELECTOR, ".place a").get_attribute("href")))
    assert browser.execute_script(RUNS) == ["rtl", True, True]
    heading = browser.find_element(By.CSS_SELECTOR, ".rendered h3")
    assert heading.value_of_css_property("direction") == "ltr"


def test_the_inspector_keeps_a_question(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/inspect")
    browser.find_element(By.ID, "q").send_keys("When does the boat leave?")
    browser.find_element(By.ID, "path").send_keys("leave.md", Keys.ENTER)
    wait_until(lambda: "Where it is" in browser.find_element(By.TAG_NAME, "main").text)
    tabs = [tab.text for tab in browser.find_elements(By.CSS_SELECTOR, ".tabs a")]
    assert [tab.rstrip(" 0123456789") for tab in tabs] == ["all", "only dense", "only keyword", "lost in reranking"]
    browser.find_element(By.CSS_SELECTOR, "input[name=chunk]").send_keys(Keys.SPACE)
    browser.find_element(By.CSS_SELECTOR, "form[action='/inspect/question'] button").send_keys(Keys.ENTER)
    wait_until(lambda: "Added to" in browser.find_element(By.TAG_NAME, "main").text)
    assert "When does the boat leave?" in (site.folder / "questions" / "questions.jsonl").read_text()


WATCH_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => list.getEntries().forEach((one) => {
  if (one.startTime > window.asked) window.shifts.push(
    `${one.value.toFixed(4)} ${one.sources.map(({ node }) => node && (node.id || node.className || node.nodeName))}`);
})).observe({ type: "layout-shift" });
new MutationObserver(() => { window.asked ??= performance.now() + 100; })
  .observe(document.getElementById("status"), { childList: true });
"""
PLACES = """
return ["#question", ".turn:last-child .card h3", ".turn:last-child .prose"].map((one) => {
  const { x, y } = document.querySelector(one).getBoundingClientRect();
  return [x, y];
});
"""


def assert_nothing_moves(browser: Chrome, talker: Talker) -> None:
    wait_until(lambda: "Reading" in status(browser))
    before = np.array(browser.execute_script(PLACES))
    talker.may_end.set()
    wait_until(lambda: "complete" in status(browser))
    assert np.abs(before - browser.execute_script(PLACES)).max() < 1  # pixel
    assert browser.execute_script("return shifts") == []


@pytest.mark.parametrize("width", [1200, 320])
def test_nothing_moves_while_an_answer_is_written(browser: Chrome, site: Site, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    site.talker.pause = 0.03
    try:
        browser.get(site.address)
        browser.execute_script(WATCH_SHIFTS)
        site.talker.may_end.clear()
        browser.find_element(By.ID, "question").send_keys(f"{QUESTION} At {width}?", Keys.ENTER)
        assert_nothing_moves(browser, site.talker)
        browser.execute_script("delete window.asked")
        site.talker.may_end.clear()
        browser.find_element(By.ID, "question").send_keys(
            f"How many people does the boat carry at {width}?", Keys.ENTER
        )
        assert_nothing_moves(browser, site.talker)
    finally:
        site.talker.pause = 0.002
        site.talker.may_end.set()
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("how", ["button", "closed tab"])
def test_stop_and_a_closed_tab_end_the_generation(browser: Chrome, site: Site, how: str) -> None:
    site.talker.stopped.clear()
    ask(browser, site, ENDLESS)
    wait_until(lambda: "Reading" in status(browser))
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


def test_all_is_there_without_javascript(site: Site, requested: list[str]) -> None:
    with chromium(javascript=False) as driver:
        driver.get(site.address)
        driver.find_element(By.ID, "question").send_keys(f"{QUESTION} plainly")
        driver.find_element(By.CSS_SELECTOR, "button.primary").click()
        wait_until(lambda: "seven" in driver.find_element(By.CSS_SELECTOR, ".turn .answer").text)
        assert driver.current_url.endswith("/ask")
        assert not driver.find_element(By.ID, "stop").is_displayed()
        driver.find_element(By.CSS_SELECTOR, ".turn .answer a.cite").click()
        assert driver.current_url.endswith("#turn-1-source-1")
        driver.find_element(By.ID, "question").send_keys("When does the boat leave on Sundays?")
        driver.find_element(By.CSS_SELECTOR, "button.primary").send_keys(Keys.ENTER)
        wait_until(lambda: len(driver.find_elements(By.CSS_SELECTOR, "#thread .turn")) == 2)
        assert "plainly" in driver.find_element(By.ID, "thread").text
        driver.get(f"{site.address}/history")
        driver.find_element(By.CSS_SELECTOR, ".conversation .menu summary").click()
        driver.find_element(By.CSS_SELECTOR, ".conversation .danger").click()
        wait_until(lambda: "plainly" not in driver.find_element(By.TAG_NAME, "main").text)
        requested += (made := requests_made(driver))
        assert hosts(made) == {"127.0.0.1"}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: run scripts/fetch_axe.sh")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Chrome, site: Site, theme: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    paths = [*(f"/document/{number}" for number in (1, 2, 3, 4)), "/document/1?chunk=1", "/health"]
    paths += ["/inspect?q=boat&path=leave", "/inspect", "/library", "/library/add", "/history", "/questions"]
    paths += [f"/library/add?{urlencode({'below': site.folder.parent / 'addable'})}"]
    paths += ["/find?q=Which+documents+mention+the+boat%3F"]
    if theme == "light":  # of which nothing is coloured otherwise than what is looked at in the dark
        paths += ["/", "/search?q=boat", "/login", "/no", "/open", "/sources"]
    found = {}
    for path in paths:
        browser.get(site.address + path)
        for details in browser.find_elements(By.CSS_SELECTOR, "details.whole")[:3]:
            browser.execute_script("arguments[0].open = true", details)
        found[path] = axe_findings(browser)
    for path, button in (("/library", ".bulk-actions button"), ("/history", "button[value=all]")):
        browser.get(site.address + path)
        for box in browser.find_elements(By.CSS_SELECTOR, "input[name=document]")[:1]:
            box.click()
        browser.find_element(By.CSS_SELECTOR, button).send_keys(Keys.ENTER)
        wait_until(lambda: "?" in browser.find_element(By.TAG_NAME, "h1").text)
        found[f"confirm on {path}"] = axe_findings(browser)
    browser.get(f"{site.address}/library")
    with library_lock(site.folder):  # as another process does that indexes
        wait_until(lambda: "Another program" in browser.find_element(By.TAG_NAME, "main").text)
        found["while it is indexed"] = axe_findings(browser)
    browser.find_element(By.CSS_SELECTOR, ".checkup button").send_keys(Keys.ENTER)
    wait_until(lambda: bool(browser.find_elements(By.CSS_SELECTOR, ".checkup li")))
    found["what doctor says"] = axe_findings(browser)
    several = site.folder.parent / "several.txt"
    several.write_text(f"{QUESTION}\n{DOUBTED}\n")
    browser.get(f"{site.address}/questions")
    browser.find_element(By.ID, "files").send_keys(str(several))
    browser.find_element(By.CSS_SELECTOR, "button.primary").send_keys(Keys.ENTER)
    wait_until(lambda: "2 of 2" in browser.find_element(By.TAG_NAME, "main").text)
    found["the answers of a file"] = axe_findings(browser)
    for question, end in ((QUESTION, "complete"), (DOUBTED, "quoted"), (ENDLESS, "Reading")):
        ask(browser, site, question)

        def has_come_to(wanted: str = end) -> bool:
            return wanted in status(browser)

        wait_until(has_come_to)
        found[question] = axe_findings(browser)
    browser.find_element(By.ID, "stop").click()
    complaints(browser)  # of the page that there is not
    assert {path: findings for path, findings in found.items() if findings} == {}


def test_a_narrow_window_needs_no_scrolling_sideways(browser: Chrome, site: Site) -> None:
    size = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("/", "/search?q=boat", "/document/1", "/inspect?q=boat", "/library", "/library/add", "/history",
                     "/questions", "/health", "/find?q=Which+documents+mention+the+boat%3F"):  # fmt: skip
            browser.get(site.address + path)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 320, path
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_library_is_watched_while_it_is_indexed(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/library")
    assert "4 documents" in browser.find_element(By.TAG_NAME, "main").text
    progress = (By.CSS_SELECTOR, "section.progress")
    assert browser.find_element(*progress).text == ""
    with library_lock(site.folder):  # as another process does that indexes
        wait_until(lambda: "Another program is changing the library." in browser.find_element(*progress).text)
        assert not browser.find_elements(By.TAG_NAME, "progress"), "nothing is left to do"
    wait_until(lambda: browser.find_element(*progress).text == "")


def test_the_theme_is_kept(browser: Chrome, site: Site) -> None:
    browser.get(f"{site.address}/library")
    browser.find_element(By.CSS_SELECTOR, ".badge summary").send_keys(Keys.ENTER)
    browser.find_element(By.CSS_SELECTOR, "button[value=dark]").send_keys(Keys.ENTER)
    wait_until(lambda: browser.execute_script("return document.documentElement.dataset.theme") == "dark")
    assert browser.current_url.endswith("/library")
    assert Path(browser.current_url).name == "library"
    browser.find_element(By.CSS_SELECTOR, ".badge summary").send_keys(Keys.ENTER)
    browser.find_element(By.CSS_SELECTOR, "button[value=auto]").send_keys(Keys.ENTER)
    # The page that comes back would replace the one that the next test opens.
    wait_until(lambda: browser.execute_script("return document.documentElement.dataset.theme") != "dark")


COLOURS = """
const [selector, background, text] = arguments, mark = document.querySelector(selector);
const colours = () => [getComputedStyle(mark).backgroundColor, getComputedStyle(mark).color];
const seen = colours();
mark.style.background = background;
mark.style.color = text;
return [seen, colours()];
"""


@pytest.mark.parametrize("feature", [("forced-colors", "active"), ("prefers-reduced-motion", "reduce")])
def test_marks_stay_and_nothing_moves_where_people_want_it_so(
    browser: Chrome, site: Site, feature: tuple[str, str]
) -> None:
    name, value = feature
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value}]})
    try:
        browser.get(f"{site.address}/search?q=boat+harbour")
        if name == "forced-colors":
            styles = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
            marked, around = (browser.execute_script(styles, one) for one in ("mark.best", ".card"))
            assert marked != around
            for mark, background, text in ((".best", "Mark", "MarkText"), (":not(.best)", "Canvas", "CanvasText")):
                seen, readable = browser.execute_script(COLOURS, f".rendered mark{mark}", background, text)
                assert seen == readable, mark
        else:
            assert browser.execute_script("return getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_request_of_the_browser_is_listed(
    browser: Chrome, site: Site, requested: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    browser.get(site.address)
    requested += requests_made(browser)
    counted = Counter(re.sub(r"\d+", "N", urlsplit(address).path) for address in requested)
    with capsys.disabled():
        version = browser.capabilities["browserVersion"]
        print(f"\nChromium {version} made {len(requested)} requests, all to {', '.join(map(str, hosts(requested)))}:")
        print("\n".join(f"  {count:>4}  {path}" for path, count in sorted(counted.items())))
    assert hosts(requested) == {"127.0.0.1"}
    assert {"/", "/static/page.css", "/static/page.js"} <= set(counted)
