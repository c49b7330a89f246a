"""The browser in a conversation: questions that wait, keys, the choice of sources, the list of conversations."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from fpdf import FPDF
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from local_rag.web.app import make_app
from tests.fakes import QUICK, generating
from tests.support.browser import AXE, axe_findings, chromium, complaints, missing, requests_made, wait_until
from tests.support.served import ENDLESS, QUESTION, Talker, index, server, worker

pytestmark = [pytest.mark.rest, pytest.mark.skipif(bool(missing()), reason=f"no browser: {missing()}")]

FIRST, SECOND, THIRD, FOURTH = (f"{QUESTION} {one}" for one in ("First", "Second", "Third", "Fourth"))


@pytest.fixture(scope="module")
def talker() -> Talker:
    return Talker()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, talker: Talker) -> Iterator[str]:
    place = tmp_path_factory.mktemp("thread")
    for name in ("ferry/boat.txt", "ferry/old/boat.txt", "leave/norway.md"):
        path = place / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The boat of {name} leaves the harbour at seven. It carries twelve people.\n")
    page = FPDF()
    page.add_page()
    page.set_font("helvetica")
    page.cell(text="The mast of the boat is of spruce.")
    page.output(str(place / "docs" / "leave" / "mast.pdf"))
    index(place / "docs", place / "lib")
    held = worker(place / "lib", replace(QUICK, open_engine=generating(talker)))
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}  # the port is not known before it is taken
    with server(make_app(held, hosts=allowed)) as found:
        wait_until(lambda: held.ready)
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(autouse=True)
def nothing_leaves(browser: Chrome, talker: Talker) -> Iterator[None]:
    """Look at every request and complaint of the browser after each test, and let no answer wait any more."""
    yield
    talker.may_end.set()
    assert {urlsplit(one).hostname for one in requests_made(browser)} <= {"127.0.0.1"}
    assert [one for one in complaints(browser) if "favicon" not in one and "DISCONNECTED" not in one] == []


def send(driver: Chrome, question: str) -> None:
    driver.find_element(By.ID, "question").send_keys(question, Keys.ENTER)


def ask(driver: Chrome, address: str, question: str, end: str = "complete") -> None:
    driver.get(address)
    send(driver, question)
    wait_until(lambda: end in text(driver, "#status"))


def text(driver: Chrome, selector: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, selector).text


def texts(driver: Chrome, selector: str) -> list[str]:
    return [one.text for one in driver.find_elements(By.CSS_SELECTOR, selector)]


def press(element: WebElement) -> None:
    element.send_keys(Keys.SPACE)


def focused(driver: Chrome) -> WebElement:
    return driver.switch_to.active_element


def test_a_question_sent_meanwhile_waits_and_can_be_taken_back(browser: Chrome, address: str, talker: Talker) -> None:
    talker.may_end.clear()
    ask(browser, address, FIRST, "Reading")
    for question in (SECOND, THIRD):
        send(browser, question)
    assert texts(browser, "#waiting li span") == [SECOND, THIRD]
    assert texts(browser, "#thread .asked") == [FIRST]
    if AXE.exists():
        assert axe_findings(browser) == []
    press(browser.find_elements(By.CSS_SELECTOR, "#waiting button")[1])
    field = browser.find_element(By.ID, "question")
    assert (focused(browser), field.get_attribute("value")) == (field, THIRD)
    talker.may_end.set()
    wait_until(lambda: bool(browser.find_elements(By.ID, "turn-2")))
    assert texts(browser, "#thread .asked") == [FIRST, SECOND]
    assert texts(browser, "#thread .outcome") == ["Answered", "Answered"]
    assert not browser.find_element(By.ID, "waiting").is_displayed()
    assert field.get_attribute("value") == THIRD, "what is typed stays"


def test_what_waits_goes_on_after_a_stop_and_comes_back_after_a_failure(
    browser: Chrome, address: str, talker: Talker
) -> None:
    ask(browser, address, ENDLESS, "Reading")
    send(browser, FIRST)
    focused(browser).send_keys(Keys.ESCAPE)
    wait_until(lambda: texts(browser, "#thread .outcome") == ["Not finished", "Answered"])
    talker.may_end.clear()
    ask(browser, address, SECOND, "Reading")
    for question in (THIRD, FOURTH):
        send(browser, question)
    # As where the server has gone: what is written already ends, and nothing more can be asked.
    browser.execute_cdp_cmd("Network.enable", {})
    gone = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", gone)
    try:
        talker.may_end.set()
        wait_until(lambda: "has gone" in text(browser, "#status"))
        assert browser.find_element(By.ID, "question").get_attribute("value") == f"{THIRD}\n{FOURTH}"
    finally:
        back = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", back)


SEEN = """
return [...document.querySelectorAll(arguments[0])].map((one) => one.checkVisibility());
"""


def test_every_turn_is_printed_with_what_it_cites_and_without_buttons(browser: Chrome, address: str) -> None:
    ask(browser, address, FIRST)
    send(browser, SECOND)
    wait_until(lambda: len(texts(browser, ".turn[data-kept] .answer .prose")) == 2)
    cited = ".card.cited .place"
    assert browser.execute_script(SEEN, cited) == [False, True], "the evidence of an earlier turn is folded"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.execute_script(SEEN, cited) == [True, True]
        assert not any(browser.execute_script(SEEN, "button, .button, .compose, .top, .side"))
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_field_covers_no_answer_in_a_low_window(browser: Chrome, address: str) -> None:
    size = {"width": 640, "height": 400, "deviceScaleFactor": 2, "mobile": False}  # of 1280 by 800, at 200 %
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(address)
        assert browser.find_element(By.ID, "question").rect["y"] < size["height"]
        ask(browser, address, FIRST)
        turn, field = (browser.find_element(By.CSS_SELECTOR, one).rect for one in (".turn", ".compose"))
        assert turn["y"] + turn["height"] <= field["y"]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_two_tabs_ask_in_one_conversation(browser: Chrome, address: str, talker: Talker) -> None:
    here_asked, there_asked = (f"{QUESTION} {one}" for one in ("Here", "There"))  # no answer is kept of these
    ask(browser, address, FIRST)
    here, first = browser.current_url, browser.current_window_handle
    talker.may_end.clear()
    send(browser, here_asked)
    wait_until(lambda: "Reading" in text(browser, "#status"))
    browser.switch_to.new_window("tab")
    try:
        browser.get(here)
        send(browser, there_asked)
        wait_until(lambda: "1 before you" in text(browser, "#queue"))
        talker.may_end.set()
        wait_until(lambda: bool(browser.find_elements(By.ID, "turn-3")))
        assert texts(browser, "#thread .asked") == [FIRST, here_asked, there_asked]
        assert len(browser.find_elements(By.ID, "turn-2")) == 1
    finally:
        browser.close()
        browser.switch_to.window(first)


def test_ctrl_k_opens_documents_and_conversations_by_their_names(browser: Chrome, address: str) -> None:
    ask(browser, address, f"{QUESTION} Zanzibar")
    for page in ("/library", "/"):
        browser.get(address + page)
        ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
        wait_until(lambda: bool(browser.find_elements(By.CSS_SELECTOR, "#open-anything[open] .named a")))
        focused(browser).send_keys("zanzibar")
        wait_until(lambda: texts(browser, "#open-anything .named a") == [f"{QUESTION} Zanzibar"])
        focused(browser).send_keys(Keys.ESCAPE)
        assert not browser.find_element(By.ID, "open-anything").is_displayed()
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    focused(browser).send_keys(Keys.CONTROL, "a")
    focused(browser).send_keys("norway")
    wait_until(lambda: texts(browser, "#open-anything .named a") == ["docs/leave/norway.md"])
    focused(browser).send_keys(Keys.ARROW_DOWN)
    assert focused(browser).text == "docs/leave/norway.md"
    focused(browser).send_keys(Keys.ENTER)
    wait_until(lambda: "/document/" in browser.current_url)
    assert "norway" in text(browser, "h1") or "norway" in text(browser, ".title")


def test_keys_walk_passages_stop_an_answer_and_lead_to_the_field(browser: Chrome, address: str) -> None:
    ask(browser, address, QUESTION)
    browser.execute_script("document.activeElement.blur()")
    cards = browser.find_elements(By.CSS_SELECTOR, ".turn .card")
    for key, place in ((Keys.ARROW_RIGHT, 0), (Keys.ARROW_DOWN, 1), (Keys.ARROW_LEFT, 0)):
        focused(browser).send_keys(key)
        assert focused(browser) == cards[place]
    focused(browser).send_keys("/")
    field = browser.find_element(By.ID, "question")
    assert (focused(browser), field.get_attribute("value")) == (field, "")
    send(browser, ENDLESS)
    wait_until(lambda: "Reading" in text(browser, "#status"))
    focused(browser).send_keys(Keys.ESCAPE)
    wait_until(lambda: "Stopped" in text(browser, "#status"))
    assert field.get_attribute("value") == ENDLESS


def test_sources_are_chosen_in_a_dialog_and_stay_with_the_conversation(browser: Chrome, address: str) -> None:
    browser.get(address)
    browser.find_element(By.ID, "sources").send_keys(Keys.ENTER)
    wait_until(lambda: browser.find_element(By.ID, "choose").is_displayed())
    assert "all 4 documents" in text(browser, "#chosen")
    boxes = {
        str(one.get_attribute("value")): one for one in browser.find_elements(By.CSS_SELECTOR, "#choose .tree input")
    }
    press(boxes["docs/ferry"])
    assert "2 of 4 documents" in text(browser, "#chosen")
    assert boxes["docs/ferry/old"].is_selected(), "what is in it"
    browser.find_element(By.ID, "find").send_keys("norway", Keys.ENTER)
    wait_until(lambda: "1 chosen before" in text(browser, "#chosen"))
    if AXE.exists():
        assert axe_findings(browser) == []
    press(browser.find_element(By.CSS_SELECTOR, "#choice button.primary"))
    wait_until(lambda: "docs/ferry" in text(browser, "#scope"))
    send(browser, QUESTION)
    wait_until(lambda: "complete" in text(browser, "#status"))
    assert text(browser, ".turn .scope") == "Asked of: docs/ferry"
    assert all("ferry" in place for place in texts(browser, ".turn .card .place a"))
    browser.refresh()
    assert "docs/ferry" in text(browser, "#scope")
    browser.find_element(By.CSS_SELECTOR, "#scope a.all").send_keys(Keys.ENTER)
    wait_until(lambda: "docs/ferry" not in text(browser, "#scope"))


def listed(driver: Chrome) -> list[str]:
    return texts(driver, "#conversations .conversation > a:first-child")


def menu_of(driver: Chrome, title: str) -> WebElement:
    """Open what can be done with a conversation, and return it."""
    item = next(one for one in driver.find_elements(By.CSS_SELECTOR, ".conversation") if title in one.text)
    item.find_element(By.CSS_SELECTOR, "a.more-of").send_keys(Keys.ENTER)
    wait_until(lambda: bool(item.find_elements(By.CSS_SELECTOR, ".menu form")))
    return item.find_element(By.CSS_SELECTOR, ".menu")


def test_conversations_are_renamed_pinned_searched_and_deleted_beside_the_thread(browser: Chrome, address: str) -> None:
    for question in ("When does the boat leave Oslo?", "When does the boat leave Bergen?"):
        ask(browser, address, question)
    here = browser.current_url.partition("#")[0]
    both = ["When does the boat leave Bergen?", "When does the boat leave Oslo?"]
    wait_until(lambda: listed(browser)[:2] == both)
    menu = menu_of(browser, "Oslo")
    if AXE.exists():
        assert axe_findings(browser) == []
    title = focused(browser)
    assert title.get_attribute("name") == "title"
    title.clear()
    title.send_keys("Oslo ferry", Keys.ENTER)
    wait_until(lambda: "Oslo ferry" in listed(browser))
    assert browser.current_url == here, "the open conversation stays"
    press(next(one for one in menu_of(browser, "Oslo ferry").find_elements(By.TAG_NAME, "button") if one.text == "Pin"))
    wait_until(lambda: [one.endswith("Oslo ferry") for one in listed(browser)][:1] == [True])
    browser.find_element(By.ID, "wanted").send_keys("bergen", Keys.ENTER)
    wait_until(lambda: "/history?q=bergen" in browser.current_url)
    assert texts(browser, ".conversation > div > a") == ["When does the boat leave Bergen?"]
    browser.get(here)
    menu = menu_of(browser, "Oslo ferry")
    press(menu.find_element(By.CSS_SELECTOR, "button.danger"))
    wait_until(lambda: bool(listed(browser)) and not any("Oslo" in one for one in listed(browser)))
    press(menu_of(browser, "Bergen").find_element(By.CSS_SELECTOR, "button.danger"))
    wait_until(lambda: urlsplit(browser.current_url).query == "")


def test_without_a_script_the_menu_of_a_conversation_is_a_page(browser: Chrome, address: str) -> None:
    ask(browser, address, "When does the boat leave Narvik?")
    with chromium(javascript=False) as driver:
        driver.get(address)
        item = next(one for one in driver.find_elements(By.CSS_SELECTOR, ".conversation") if "Narvik" in one.text)
        item.find_element(By.CSS_SELECTOR, "a.more-of").send_keys(Keys.ENTER)
        wait_until(lambda: text(driver, "h1") == "When does the boat leave Narvik?")
        press(driver.find_element(By.CSS_SELECTOR, "main button.danger"))
        wait_until(lambda: not any("Narvik" in one for one in listed(driver)))


def test_evidence_stands_beside_the_answer_with_the_page_of_a_pdf(browser: Chrome, address: str) -> None:
    ask(browser, address, "What is the mast of the boat made of?")
    answer, evidence = (browser.find_element(By.CSS_SELECTOR, one).rect for one in (".turn .answer", ".turn .evidence"))
    assert answer["x"] + answer["width"] <= evidence["x"]
    card = next(one for one in browser.find_elements(By.CSS_SELECTOR, ".turn .card") if "mast.pdf" in one.text)
    assert card.find_elements(By.CSS_SELECTOR, "mark.best")
    card.find_element(By.CSS_SELECTOR, ".page-of summary").send_keys(Keys.ENTER)
    drawn = "const image = arguments[0].querySelector('.page-of img'); return image.complete && image.naturalWidth"
    wait_until(lambda: browser.execute_script(drawn, card) > 100)
    assert "dense" not in text(browser, ".turn"), "ranks and scores stand in Inspect only"
