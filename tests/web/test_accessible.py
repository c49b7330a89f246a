"""Every page can be used by keyboard and by screen reader, and printed: its HTML and style are read, without a browser.

What only a browser can tell, as contrasts and the order of focus, stands in `test_browser.py`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag
from fpdf import FPDF
from starlette.testclient import TestClient

from local_rag.store.people_file import add_person, list_people
from local_rag.web import app
from tests.support import served
from tests.support.served import QUESTION

TOKEN = "a-token-of-the-owner"
OWNER = {"authorization": f"Bearer {TOKEN}"}
JSON = {"accept": "application/json"} | OWNER
PAGE = {"accept": "text/html"} | OWNER
STATIC = Path(app.__file__).parent / "static"
STYLE, SCRIPT = (STATIC / f"page.{suffix}" for suffix in ("css", "js"))
MOST_BYTES = 66_000  # of style and script together
ASKED = {
    "/": ["", "?q=boat"],
    "/search": ["?q=boat"],
    "/find": ["?q=Which+documents+mention+the+boat%3F"],
    "/inspect": ["", "?q=boat&path=leave"],
    "/open": ["", "?q=boat"],
    "/diff": ["", "?before=leave.md&after=ireland.md", "?before=no.md"],
    "/brief": ["", "?document=leave.md"],
    "/library": ["", "?q=boat", "?q=nothing"],
    "/library/add": [""],
    "/sources": ["", "?back=/diff"],
}
CONTROLS = "a, button, input:not([type=hidden]), select, textarea, summary"


def kept_of(opened: TestClient, folder: Path) -> dict[str, str]:
    """Keep one of each thing; return their ids by the names that addresses call them by."""
    asked = opened.post("/ask", data={"question": QUESTION}, headers=JSON).json()
    table = opened.post("/tables", data={"columns": "Leaves: When does it leave?"}, headers=JSON).json()
    sent = {"file": ("tender.txt", f"{QUESTION}\nWho is Quist?".encode())}
    questions = opened.post("/questions", files=sent, headers=JSON).json()
    kept = {"conversation": asked["conversation"], "table": table["id"], "list": questions["id"]}
    for name in ("list", "table"):
        address = f"/{'questions' if name == 'list' else 'tables'}/{kept[name]}"
        served.wait_until(lambda address=address: not opened.get(address, headers=JSON).json()["running"])  # type: ignore[misc]
    return kept | {"person": next(iter(list_people(folder))).id, "code": "none"}


def all_pages(folder: Path) -> dict[str, str]:
    """Return the HTML of every page that the server has, by its address; of several states of some."""
    add_person(folder, "Anna", "reader")
    with served.client(folder, token=TOKEN) as opened:
        kept = kept_of(opened, folder)
        documents = [str(number) for number in range(1, 6)]
        routes = [route for page in app._PAGES for route in page.ROUTES if "GET" in (route.methods or ())]
        paths = [
            route.path.replace(":identifier", "").format(**kept, document=number, form="csv", page=1, name="page.css")
            for route in routes
            for number in (documents if "{document" in route.path else documents[:1])
        ]
        addresses = [f"{path}{query}" for path in dict.fromkeys(paths) for query in ASKED.get(path, [""])]
        addresses += [f"/?conversation={kept['conversation']}", f"/history/menu?id={kept['conversation']}", "/no"]
        addresses += [f"/document/{number}?view=lines" for number in documents]
        found = {address: opened.get(address, headers=PAGE) for address in addresses}
        found["a checked text"] = opened.post("/verify", data={"text": "The boat leaves at nine."}, headers=PAGE)
        found["a removal"] = opened.post("/library/remove", data={"document": "1"}, headers=PAGE)
        found["forget everything"] = opened.post("/history/forget", data={"id": "all"}, headers=PAGE)
        found["a link"] = opened.post("/people", data={"name": "Ben"}, headers=PAGE)
        found["a removed person"] = opened.post(f"/people/{kept['person']}/remove", headers=PAGE)
        found["log in"] = opened.get("/library", headers={"accept": "text/html"})
    return {name: one.text for name, one in found.items() if one.text.startswith("<!doctype html>")}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BeautifulSoup]:
    documents = tmp_path_factory.mktemp("accessible") / "documents"
    documents.mkdir()
    leave = "# Leave in {}\n\n## Parental leave\n\nParents get {} weeks.\n\n#### Notes\n\n![A chart](a.png) [x](b.md)\n"
    (documents / "leave.md").write_text(leave.format("Norway", 49))
    (documents / "ireland.md").write_text(leave.format("Ireland", 26))
    (documents / "boat.txt").write_text("The boat leaves the harbour at seven. It carries twelve people.\n")
    (documents / "fares.csv").write_text("Boat,Fare\nSkiff,40\nYawl,~~55~~ 60\n")
    (documents / "broken.pdf").write_bytes(b"%PDF-1.4 this is none")
    page = FPDF()
    page.add_page()
    page.set_font("helvetica")
    page.cell(text="The mast of the boat is 12 metres high.")
    page.output(str(documents / "mast.pdf"))
    served.index(documents, documents.parent / "lib")
    read = all_pages(documents.parent / "lib")
    found = {address: BeautifulSoup(text, "lxml") for address, text in read.items()}
    for one in found.values():
        for template in one.find_all("template"):
            template.decompose()
    return found


def name_of(element: Tag) -> str:
    """Return how a control is called: by its own words, a label, or what it is told to be."""
    page = element.find_parent("html")
    assert page is not None
    if told := str(element.get("aria-label") or ""):
        return told
    named = [page.find(id=name) for name in str(element.get("aria-labelledby") or "").split()]
    if element.name in {"input", "select", "textarea", "progress"}:
        named += [*page.select(f"label[for='{element['id']}']")] if element.get("id") else []
        named += [element.find_parent("label")]
    else:
        named += [element]
    said = " ".join(one.get_text(" ", strip=True) for one in named if one)
    return said or " ".join(str(one.get("alt")) for one in element.find_all("img"))


def findings(page: BeautifulSoup) -> Iterator[str]:
    """Yield what keeps somebody from using a page."""
    root = page.find("html")
    assert isinstance(root, Tag)
    if not root.get("lang"):
        yield "no language"
    if not page.title or not page.title.get_text(strip=True):
        yield "no title"
    levels = [int(one.name[1]) for one in page.find_all(re.compile("^h[1-6]$"))]
    if levels.count(1) != 1 or levels[:1] != [1]:
        yield f"headings of the first level: {levels}"
    yield from (f"h{after} below h{before}" for before, after in pairwise(levels) if after > before + 1)
    yield from (f"nameless {one}" for one in page.select(f"{CONTROLS}, progress") if not name_of(one))
    yield from (f"no alternative text: {one}" for one in page.find_all("img") if not one.get("alt"))
    yield from (f"leads nowhere: {one}" for one in page.find_all("a") if not one.get("href"))
    ids = Counter(str(one["id"]) for one in page.select("[id]"))
    yield from (f"{count} of #{name}" for name, count in ids.items() if count > 1)
    for attribute in ("for", "aria-labelledby", "aria-describedby"):
        told = (
            name
            for one in page.select(f"[{attribute}]")
            for name in " ".join(one.get_attribute_list(attribute)).split()
        )
        yield from (f"{attribute} names no #{name}" for name in told if name not in ids)
    links = (str(one["href"]) for one in page.select("a[href^='#']"))
    yield from (f"{link} is not there" for link in links if link[1:] not in ids)
    for one in page.select("[tabindex]"):
        if one["tabindex"] not in {"0", "-1"} or (
            one["tabindex"] == "0" and not (one.get("role") and one.get("aria-label"))
        ):
            yield f"reached by keyboard and nameless: {one.name} {one.attrs}"
    yield from (f"a control within another: {one}" for one in page.select(CONTROLS) if one.find_parent(["a", "button"]))
    yield from (f"a head of nothing: {one}" for one in page.select("th:not([scope])"))
    landmarks = Counter(str(one.get("aria-label")) for one in page.select("nav"))
    yield from (f"{count} navigations called {name}" for name, count in landmarks.items() if count > 1)
    # What changes by itself is read out, except for a whole table; what grows by words is told in a line of its own.
    yield from (f"not read out: {one['class']}" for one in page.select("[data-running]:not(.answers, [aria-live])"))
    if page.select("#thread") and not page.select("#status[role=status], #status[aria-live]"):
        yield "the state of an answer is not read out"
    yield from (f"read out twice: {one}" for one in page.select("[aria-live] :is([role=status], [aria-live])"))


def test_no_page_keeps_anybody_from_using_it(pages: Mapping[str, BeautifulSoup]) -> None:
    assert len(pages) > 50
    found = {address: [*findings(page)] for address, page in pages.items()}
    assert {address: some for address, some in found.items() if some} == {}


def rules(style: str) -> list[tuple[str, str]]:
    """Return the selectors of a style sheet, each with its declarations; those within conditions too."""
    plain = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    return [(one[0].strip(), one[1].strip()) for one in re.findall(r"([^{}]+)\{([^{}]*)\}", plain)]


def test_focus_is_seen() -> None:
    style = STYLE.read_text()
    declared = dict(rules(style))
    assert "outline: 2px solid" in declared[":focus-visible"]
    hidden = {selector for selector, said in rules(style) if "outline: none" in said}
    # Those that are led to, and no stop of the keyboard; and the field whose box shows it.
    assert hidden == {
        "main:focus", ".card:focus", "mark:focus", ".line:focus, .page:focus", ".compose textarea:focus-visible",
    }  # fmt: skip
    assert "outline: 2px solid" in declared[".card:focus-visible"]
    assert "box-shadow" in declared[".compose #ask:focus-within"]


def test_style_and_script_stay_small() -> None:
    assert STYLE.stat().st_size + SCRIPT.stat().st_size < MOST_BYTES


def test_library_and_work_print_what_they_say_and_no_control(pages: Mapping[str, BeautifulSoup]) -> None:
    style = STYLE.read_text()
    assert "attr(href" not in style, "the targets of links are not printed"
    printed = rules(style.partition("@media print {")[2])
    assert ("a", "color: inherit; text-decoration: none;") in printed
    unseen = ", ".join(selector for selector, said in printed if "display: none" in said)
    found = {}
    for address, page in pages.items():
        place = page.select(".places [aria-current]")
        if not place or place[0].get_text() not in {"Library", "Work"}:
            continue
        paper = BeautifulSoup(str(page), "lxml")
        for one in paper.select(f"{unseen}, [hidden]"):
            if not one.decomposed:
                one.decompose()
        left = [
            str(one)
            for one in paper.select(
                "nav, header.top, button, input:not([type=hidden]), select, textarea, progress, dialog"
            )
        ]
        found[address] = left + (["no heading"] if not paper.select("h1") else [])
        if address == "a checked text":
            assert "1 statement: 1 contradicted." in paper.get_text()
    assert len(found) > 20
    assert {address: some for address, some in found.items() if some} == {}
