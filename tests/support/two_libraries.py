"""Two libraries, one of which holds hidden documents besides: a person with limits must get the same from both.

Random documents in an open and a hidden part name the same people, have versions and copies of each other, and are
alike. Of both libraries an owner, who sees all of one, makes tables, corrects, marks and asks. Random requests of every
route and tool are sent to both, and every byte of the replies is compared, but for what is random or a time.
"""

import json
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.routing import Match, Route
from starlette.testclient import TestClient

from local_rag.asking import EVERYTHING, PersonRole
from local_rag.extraction.cells import person_cell
from local_rag.extraction.columns import parse_columns
from local_rag.library import Library
from local_rag.mcp.server import http_interface
from local_rag.openai.endpoint import chat_interface
from local_rag.store.people_file import add_person
from tests.support import served
from tests.support.library_doors import ASKED, COLUMNS, FILES, RARE, ROWS, STATEMENTS, WORDS, doors

SIMILAR = "The contractor makes {} planned visits every year and tells the client of each of them five days before it."
SAID = served.reply("")
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
# What differs between any two runs: random ids, times of day, durations, and the names of the two places.
_RANDOM = re.compile(
    r"(?<![.\w])[0-9a-f]{16,}\b|chatcmpl-\w+|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?|\"created\": ?\d+|created\\?\":\d+"
    r"|[\"'](?:embed|dense|keyword|fuse|rerank|seconds)[\"']: ?[\d.e-]+|[\d.,]+ (?:ms|s)\b|\b(?:one|two)/lib"
    r"|(?<=/tables/)[\w-]{16}|(?<=,)\d+\.\d+(?=,)"  # in files of answers, the seconds stand between commas
)
# Whether a file has changed is looked up in a time that a busy machine exceeds, perhaps for one of two libraries.
_UNKNOWN = re.compile(r" ?<span class=\"tag warn\">whether it has changed is not known yet</span>")


def write_documents(place: Path, count: int, chance: random.Random) -> None:
    """Write documents, about half of them in the hidden part."""
    for number in range(count):
        part = chance.choice(("docs/open", "docs/open/staff", "docs/hidden", "vault"))
        year = chance.choice(("", " 2021", " 2022", " v2"))
        name = f"{chance.choice(WORDS[:6])}{number % 7}{year}.{chance.choice(('md', 'txt'))}"
        path = place / part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        tag = "---\ntags: [staff]\ndate: 2022-03-01\n---\n" if chance.random() < 0.3 and name.endswith("md") else ""
        said = [SIMILAR.format(chance.choice(("four", "six", "two"))) for _ in range(chance.randrange(3))]
        said += [
            " ".join(chance.choices(WORDS, k=chance.randrange(6, 18))) + "." for _ in range(chance.randrange(2, 9))
        ]
        said += [f"The {chance.choice(RARE)} is kept by {chance.choice(WORDS)} at {chance.randrange(24)}:00."]
        said += [f"## Care of the {chance.choice(WORDS[:10])}\n\n{chance.choice((SAID, SAID.upper()))}"]
        text = "\n\n".join(chance.sample(said, len(said)))
        path.write_text(f"{tag}# {chance.choice(WORDS).title()} {number % 5}\n\n{text}\n")
    # A document that is longer than what is read at once, so that its passages are chosen.
    told = [f"{' '.join(chance.choices(WORDS + tuple(RARE), k=12))}." for _ in range(300)]
    (place / "docs/open/log.md").write_text("# Log\n\n" + "\n\n".join(told))
    # Versions, of which the newest is hidden.
    rules = [f"Rule {number}: the {WORDS[number % 9]} of part {number} is counted." for number in range(30)]
    for valid, part in ((2021, "docs/open"), (2022, "docs/open"), (2023, "docs/hidden")):
        text = "\n\n".join([f"Valid from {valid}-01-01.", *rules, f"The boat leaves at {valid - 2014}:00."])
        (place / part).mkdir(parents=True, exist_ok=True)
        (place / part / f"rules {valid}.md").write_text(f"# Rules of the harbour\n\n{text}\n")
    # Rows of the same columns in both parts, which a question about rows must not add up, and some of hidden columns.
    for part, customers in (("docs/open", ("Quist", "Harrow")), ("docs/hidden", ("Quist", "Lindum"))):
        lines = [f"{100 + row},{chance.choice(customers)},{chance.randrange(900)}" for row in range(12)]
        (place / part).mkdir(parents=True, exist_ok=True)
        (place / part / "orders.csv").write_text("\n".join(["Order,Customer,Amount", *lines]) + "\n")
    (place / "docs/hidden/wages.csv").write_text("Name,Wage\nQuist,91000\nHarrow,45000\nLindum,39000\n")
    copies = sorted((place / "docs/open").rglob("*.*"))[:2]
    for copy in copies:
        (place / "vault").mkdir(exist_ok=True)
        shutil.copy(copy, place / "vault" / f"copy of {copy.name}")
    (place / "vault/broken.pdf").write_bytes(b"%PDF-1.4 this is none")


def make_libraries(place: Path, count: int, seed: int, context: str, role: PersonRole) -> list[tuple[Path, str]]:
    """Index documents with the hidden ones and without; return each library with the token of a person with limits."""
    write_documents(place, count, random.Random(seed))
    made = []
    for name in ("one", "two"):
        folder = place / name / "lib"
        with Library(folder, parts=served.parts(), profile="tiny", context=context, chunk_tokens=40) as library:
            library.index([one for one in (place / "docs", place / "vault") if one.exists()])
            made.append((folder, add_person(folder, "Anna", role, within=["open/**"])))
            if (place / "vault").exists():
                add_person(folder, "Otto", "reader", within=["hidden/**"])
            library.index()
            act_as_owner(library)
        shutil.rmtree(place / "docs/hidden", ignore_errors=True)
        shutil.rmtree(place / "vault", ignore_errors=True)
    return made


def act_as_owner(library: Library) -> None:
    """Ask, mark, record, correct and save what somebody can who sees the whole library."""
    columns = parse_columns(COLUMNS)
    library.tables.saved().add("of the owner", columns, EVERYTHING, newest=False)
    for row in library.extract(columns).rows:
        cell = person_cell(columns[0], f"Zanzibar {len(row.path) % 9}", row.cells[0])
        library.tables.correct_cell(row.document, columns[0], cell)
    for number, question in enumerate(ASKED):
        library.ask(question)
        found = library.search(question)
        library.feedback.mark(question, "right" if number else "wrong", chunk_id=found[-1].chunk_id)
        library.feedback.record_question(f"{question} And why?", found[0].chunk_id)


def requests(chance: random.Random, numbers: list[int]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield random requests as method, address and what is sent; `numbers` are those of documents."""
    html, as_json = {"accept": "text/html"}, {"accept": "application/json"}

    def words() -> str:
        found = chance.choices([*WORDS, *RARE], k=chance.randrange(1, 5))
        if chance.random() < 0.3:  # a mistake
            place = chance.randrange(len(found[-1]) - 1)
            found[-1] = found[-1][:place] + found[-1][place + 1 :]
        return " ".join(found)

    def draft() -> str:
        return f"The {chance.choice(RARE)} is kept by {chance.choice(WORDS)} at {chance.randrange(24)}:00. {words()}."

    def number() -> int:
        return chance.choice([*numbers, chance.randrange(1, 60)])

    def tool(name: str, **arguments: Any) -> tuple[str, str, dict[str, Any]]:
        order = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return "POST", "/mcp", {"content": json.dumps(order), "headers": MCP}

    while True:
        asked, filters = f"Where is the {words()}?", chance.choice(FILTERS)
        counted = f"{chance.choice(('How many', 'Which'))} documents mention {chance.choice([*WORDS, *RARE])}?"
        requests: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", f"/search?q={quote(asked)}&format=json&{filters}", {"headers": as_json}),
            ("GET", f"/search?q={quote(words())}&{filters}", {"headers": html}),
            ("GET", f"/inspect?q={quote(words())}&format=json&path=e", {"headers": html}),
            ("GET", f"/inspect?q={quote(words())}&show=keyword&path=.md", {"headers": html}),
            ("GET", f"/find?q={quote(counted)}&format={chance.choice(('json', 'csv'))}&{filters}", {}),
            ("POST", "/ask", {"data": {"question": asked}, "headers": as_json}),
            ("POST", "/ask", {"data": {"question": counted}, "headers": chance.choice((as_json, html))}),
            ("POST", "/ask", {"data": {"question": asked, "anyway": "1"}, "headers": html}),
            ("GET", chance.choice(PLAIN), {"headers": chance.choice((html, as_json))}),
            ("GET", f"/sources?find={words()[:3]}&{filters}", {"headers": html}),
            ("GET", f"/scope?{filters}", {}),
            ("GET", f"/rows?query={quote(chance.choice(STATEMENTS))}", {"headers": chance.choice((html, as_json))}),
            ("POST", "/ask", {"data": {"question": chance.choice(ROWS)}, "headers": as_json}),
            ("POST", "/verify", {"data": {"text": draft(), **dict(parse_qsl(filters))}, "headers": as_json}),
            ("POST", "/verify", {"data": {"text": draft(), "format": "markdown"}, "headers": html}),
            ("POST", "/v1/verify", {"json": {"text": draft()}}),
            ("POST", "/inspect/question", {"data": {"question": asked, "chunk": str(number() * 2**20 + 1)}}),
            ("POST", "/rate", {"data": {"question": chance.choice(ASKED), "chunk": str(number() * 2**20 + 1)}}),
            ("GET", f"/open?q={words()[:3]}&format={chance.choice(('json', 'page'))}", {}),
            ("GET", f"/brief?{chance.choice(('in=**', 'in=open/**', 'document=e'))}&format=json", {}),
            ("GET", f"/diff?before={chance.choice(FILES)}&after={chance.choice(FILES)}", {"headers": html}),
            ("GET", f"/document/{number()}?chunk={number()}", {"headers": html}),
            ("GET", f"/document/{number()}", {"headers": html}),
            ("GET", f"/document/{number()}/{chance.choice(('file', 'page/1.png'))}", {}),
            ("GET", f"/library?q={quote(words()[:6])}&sort={chance.choice(('title', 'size', 'changed'))}", {}),
            ("GET", f"/library?q={chance.choice(('md', 'hidden', 'v', 'copy'))}&format=json", {}),
            ("POST", "/library/remove", {"data": {"document": str(number())}}),
            ("POST", "/rate", {"data": {"question": asked, "wrong": str(number() * 2**20 + chance.randrange(3))}}),
            ("POST", "/rate", {"data": {"question": asked, "undo": "1"}}),
            ("POST", f"/people{chance.choice(('', '/preview'))}", {"data": {"name": "x", "in": "**"}}),
            ("POST", "/v1/chat/completions", {"json": {"messages": [{"role": "user", "content": asked}]}}),
            tool("search", query=words(), limit=chance.randrange(1, 20)),
            tool("find", question=counted),
            tool("fetch", id=f"document-{number()}"),
            tool("fetch", id=f"passage-{number() * 2**20 + chance.randrange(3)}"),
            tool("list_documents"),
            tool("status"),
            tool("gaps"),
            tool("marks"),
            tool("ask", question=asked),
            tool("brief", documents=[]),
            tool("diff", before=chance.choice(FILES)),
            tool("verify", text=draft()),
            tool("extract", columns=COLUMNS),
        ]
        yield from chance.sample(requests, len(requests))


FILTERS = (
    "",
    "",
    "in=**",
    "in=hidden/**",
    "in=open/staff",
    "type=md",
    "tag=staff",
    "as_of=2021-06-01",
    "since=2022",
    "top=50",
)
PLAIN = (
    "/", "/work", "/library", "/library/tables", "/library/tables?format=json", "/library?format=json",
    "/library?from=3", "/library/progress", "/library/task", "/health", "/document/", "/static/page.css",
    "/metrics", "/history?format=json", "/questions", "/gaps", "/gaps?format=json",
    "/people", "/people?format=json", "/people/new", "/people/0123456789abcdef", "/join/x", "/library?show=part",
    "/library/doctor", "/tables", "/tables?format=json", "/verify", "/v1/models", "/v1/models/lib", "/library/add",
    "/healthz", "/inspect", "/nothing",
    "/search?q=", "/search?q=x&top=y", "/history/0123456789abcdef.md",
)  # fmt: skip


def differences(
    place: Path, *, documents: int, count: int, seed: int, context: str = "auto", role: PersonRole = "reader"
) -> list[str]:
    """Return each request whose replies to a person differ, with where they do, and then each method of the library.

    A route that no request has reached is returned too.
    """
    made = make_libraries(place, documents, seed, context, role)
    chance, found, reached = random.Random(seed), list[str](), set[tuple[str, str]]()
    with ExitStack() as stack:
        clients = [
            (stack.enter_context(client_of(folder)), {"authorization": f"Bearer {token}"}) for folder, token in made
        ]
        for client, _ in clients:
            client.event_hooks["request"] = [lambda sent: reached.add((sent.method, sent.url.path))]
        first, who = clients[0]
        listed = first.get("/library?format=json", headers=who).json()["documents"]
        assert listed, "a person who sees nothing proves nothing"
        asked = islice(requests(chance, [one["id"] for one in listed]), count)
        for method, address, sent in asked:
            replies = [ask(client, method, address, sent, who) for client, who in clients]
            if replies[0] != replies[1]:
                found.append(f"{method} {address} {sent}: {first_difference(*replies)}")
        found += compared(*(visits(client, who) for client, who in clients))
        found += [f"{route} was not asked" for route in _routes(first) - _reached(first, reached)]
    return found + compared(*(doors(folder, "Anna") for folder, _ in made))


def compared(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Return where the replies of two libraries differ, or a reply is missing."""
    told = [{name: _without_chance(reply) for name, reply in replies.items()} for replies in (one, other)]
    names = [name for name in one | other if told[0].get(name) != told[1].get(name)]
    return [f"{name}: {first_difference(told[0].get(name, ''), told[1].get(name, ''))}" for name in names]


def _routes(client: TestClient) -> set[str]:
    """Return the routes, each with its methods, but for those by which people come and go."""
    routes: list[Route] = client.app._app.router.routes  # type: ignore[attr-defined]
    return {f"{method} {one.path}" for one in routes for method in (one.methods or ()) if _is_told(one, method)}


def _is_told(route: Route, method: str) -> bool:
    return method in ("GET", "POST") and route.path not in ("/login", "/logout", "/join/{code}", "/v1/{path:path}")


def _reached(client: TestClient, reached: set[tuple[str, str]]) -> set[str]:
    """Return the routes that were reached by requests of these methods and paths."""
    routes: list[Route] = client.app._app.router.routes  # type: ignore[attr-defined]
    found = set()
    for method, path in reached:
        scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
        found |= {f"{method} {one.path}" for one in routes if one.matches(scope)[0] is Match.FULL}
    return found


def client_of(folder: Path) -> Any:
    """Serve a library with all interfaces; nothing that a person orders changes its documents."""
    interfaces: list[Any] = [partial(http_interface, with_ask=True), chat_interface]
    return served.client(folder, token="a-token-of-the-host", interfaces=interfaces, profile="tiny", maintain=["true"])


def visits(client: TestClient, who: dict[str, str]) -> dict[str, str]:
    """Return the replies to what a person does over several pages, whose addresses hold what was made before."""
    as_json = who | {"accept": "application/json"}

    def get(address: str) -> str:
        return ask(client, "GET", address, {"headers": {"accept": "text/html"}}, who)

    def post(address: str, **data: str) -> str:
        return ask(client, "POST", address, {"data": data, "headers": {"accept": "application/json"}}, who)

    def until_done(address: str) -> None:
        served.wait_until(lambda: client.get(address, headers=who).headers["x-local-rag-running"] == "no")

    asked = {"question": "Where is the harbour boat?", "in": "open/**"}
    found = {page: get(page) for page in PLAIN}
    first = client.post("/ask", data=asked, headers=as_json).json()
    conversation = first["conversation"]
    more = {"question": "What is the sum of the amounts of Quist?", "conversation": conversation}
    stream = {"data": more, "headers": {"accept": "text/event-stream"}}
    found["a follow-up, as it is written"] = ask(client, "POST", "/ask", stream, who)
    counted = client.post("/ask", data=more, headers=as_json).json()
    found |= {
        f"a conversation: {page}": get(page.format(conversation))
        for page in (
            "/?conversation={}",
            "/history/{}.md",
            "/history/{}.html",
            "/history/menu?id={}",
            "/history/beside",
        )
    }
    assert counted["table"], "the rows that are seen can be added up"
    found["rows"] = get(f"/rows?query={quote(counted['table']['rows_sql'])}")
    table = f"/tables/{client.post('/tables', data={'columns': chr(10).join(COLUMNS)}, headers=as_json).json()['id']}"
    until_done(f"{table}/progress")
    found["more of a table"] = post(f"{table}/go")
    until_done(f"{table}/progress")
    pages = ("", "?format=json", "/progress", "/table.jsonl", "/table.csv")
    found |= {f"a table: {page}": get(f"{table}{page}") for page in pages}
    document = str(client.get("/library?format=json", headers=who).json()["documents"][0]["id"])
    for field in ("value", "take_back"):
        found[f"a correction: {field}"] = post(f"{table}/cell", document=document, column="1", **{field: "Marlow"})
        found[f"corrected: {field}"] = get(f"{table}?format=json")
    file = {"file": ("asked.txt", "Where is the boat?\nWho keeps the zephyr?\n")}
    questions = f"/questions/{client.post('/questions', files=file, headers=as_json).json()['id']}"
    until_done(f"{questions}/progress")
    found |= {
        f"questions: {page}": get(f"{questions}{page}") for page in ("", "/rows", "/answers.csv", "/answers.jsonl")
    }
    found["an answer, corrected"] = post(f"{questions}/correct", question="Where is the boat?", answer="At sea.")
    found |= {f"corrected: {page}": get(f"{questions}{page}") for page in ("/rows", "/answers.csv", "/answers.jsonl")}
    ends = [f"{table}/stop", f"{questions}/go", f"{questions}/stop", f"{questions}/forget", f"{table}/forget"]
    ends += [f"/library/{order}" for order in ("index", "watch", "stop", "doctor")]
    ends += ["/people/preview", "/people/contact", "/people/0123456789abcdef/link", "/people/0123456789abcdef/remove"]
    for order in (*ends, "/gaps/shipped", "/inspect/question", "/theme"):
        found[f"to the end: {_RANDOM.sub('*', order)}"] = post(order)
    sent = {"files": ("note.txt", b"The xylophone stands in the harbour.")}
    upload = {"files": sent, "headers": {"accept": "application/json"}}
    found["a document that is sent"] = ask(client, "POST", "/library/add", upload, who)
    for order in ("pin", "rename", "forget"):
        found[f"a conversation: {order}"] = post(f"/history/{order}", id=conversation, title="A boat", on="1")
    then = ("/", "/tables", "/questions", "/history", "/open?q=boat", "/library/task", "/library/add", "/inspect")
    return found | {f"then {page}": get(page) for page in then}


def ask(client: TestClient, method: str, address: str, sent: dict[str, Any], who: dict[str, str]) -> str:
    """Return status and text of a reply, without what is random in it."""
    reply = client.request(method, address, **{**sent, "headers": {**sent.get("headers", {}), **who}})
    return _without_chance(f"{reply.status_code} {reply.headers.get('location', '')} {reply.text}")


def _without_chance(reply: str) -> str:
    return _RANDOM.sub("*", _UNKNOWN.sub("", reply))


def first_difference(one: str, other: str) -> str:
    """Return both texts around the place where they begin to differ."""
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(0, place - 80) : place + 80]!r} is not {other[max(0, place - 80) : place + 80]!r}"
