"""Two libraries, one of which holds hidden documents besides: a person with limits must get the same from both.

Random documents in an open and a hidden part name the same people, have versions and copies of each other, and are
alike. Random requests of every route and tool are sent to both, and every byte of the replies is compared, but for
what is random or a time.
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
from urllib.parse import quote

from starlette.testclient import TestClient

from local_rag.library import Library
from local_rag.mcp.server import http_interface
from local_rag.openai.endpoint import chat_interface
from local_rag.store.people_file import add_person
from tests.fakes import QUICK
from tests.support import served

WORDS = tuple(
    """harbour boat tide crew lantern rope anchor keeper window ladder barrel signal winter summer Ansty Lindum Harrow
    Quist Zanzibar Oslo payment parcel invoice refund meadow orchard railway station ticket luggage engine
    whistle""".split()  # noqa: SIM905
)
RARE = ["quixotic", "zephyr", "obsidian", "marzipan", "dodecahedron", "xylophone"]
SIMILAR = "The contractor makes {} planned visits every year and tells the client of each of them five days before it."
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
# What differs between any two runs: random ids, times of day, durations, and the names of the two places.
_RANDOM = re.compile(
    r"(?<![.\w])[0-9a-f]{16,}\b|chatcmpl-\w+|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?|\"created\": ?\d+|created\\?\":\d+"
    # Whether a file has changed is looked up in a time that a busy machine exceeds.
    r"| ?<span class=\"tag warn\">whether it has changed is not known yet</span>"
    r"|\"(?:embed|dense|keyword|fuse|rerank|seconds)\": ?[\d.e-]+|[\d.,]+ (?:ms|s)\b|\b(?:one|two)/lib"
    r"|(?<=/tables/)[\w-]{16}|(?<=,)\d+\.\d+(?=,)"  # in files of answers, the seconds stand between commas
)


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
        text = "\n\n".join(chance.sample(said, len(said)))
        path.write_text(f"{tag}# {chance.choice(WORDS).title()} {number % 5}\n\n{text}\n")
    # Rows of the same columns in both parts, which a question about rows must not add up.
    for part, customers in (("docs/open", ("Quist", "Harrow")), ("docs/hidden", ("Quist", "Lindum"))):
        lines = [f"{100 + row},{chance.choice(customers)},{chance.randrange(900)}" for row in range(12)]
        (place / part).mkdir(parents=True, exist_ok=True)
        (place / part / "orders.csv").write_text("\n".join(["Order,Customer,Amount", *lines]) + "\n")
    copies = sorted((place / "docs/open").rglob("*.*"))[:2]
    for copy in copies:
        (place / "vault").mkdir(exist_ok=True)
        shutil.copy(copy, place / "vault" / f"copy of {copy.name}")
    (place / "vault/broken.pdf").write_bytes(b"%PDF-1.4 this is none")


def make_libraries(place: Path, count: int, seed: int, context: str) -> list[tuple[Path, str]]:
    """Index documents with the hidden ones and without; return each library with the token of a person with limits."""
    write_documents(place, count, random.Random(seed))
    made = []
    for name in ("one", "two"):
        folder = place / name / "lib"
        with Library(folder, parts=QUICK, profile="tiny", context=context, chunk_tokens=40) as library:
            library.index([one for one in (place / "docs", place / "vault") if one.exists()])
            made.append((folder, add_person(folder, "Anna", "reader", within=["open/**"])))
            library.index()
        shutil.rmtree(place / "docs/hidden", ignore_errors=True)
        shutil.rmtree(place / "vault", ignore_errors=True)
    return made


def requests(chance: random.Random, numbers: list[int]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield random requests as method, address and what is sent; `numbers` are those of documents."""
    html, as_json = {"accept": "text/html"}, {"accept": "application/json"}

    def words() -> str:
        found = chance.choices([*WORDS, *RARE], k=chance.randrange(1, 5))
        if chance.random() < 0.3:  # a mistake
            place = chance.randrange(len(found[-1]) - 1)
            found[-1] = found[-1][:place] + found[-1][place + 1 :]
        return " ".join(found)

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
            tool("extract", columns=["Keeper: Who keeps the lantern? (name)"]),
        ]
        yield chance.choice(requests)


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
FILES = ("orders.csv", "harbour", "boat", "tide", "vault", "hidden", "copy of")
PLAIN = (
    "/", "/library", "/library?format=json", "/library?from=3", "/library/progress", "/library/task", "/health",
    "/metrics", "/history?format=json", "/questions", "/gaps", "/gaps?format=json",
    "/people", "/people?format=json", "/people/new", "/join/x",
    "/library?show=part", "/v1/models", "/library/add", "/healthz", "/inspect", "/nothing",
    "/search?q=", "/search?q=x&top=y", "/history/0123456789abcdef.md",
)  # fmt: skip


def differences(place: Path, *, documents: int, count: int, seed: int, context: str = "auto") -> list[str]:
    """Return each request whose replies differ, with where they do."""
    made = make_libraries(place, documents, seed, context)
    interfaces: list[Any] = [partial(http_interface, with_ask=True), chat_interface]
    chance, found = random.Random(seed), list[str]()
    with ExitStack() as stack:
        clients = list[tuple[TestClient, dict[str, str]]]()
        for folder, token in made:
            opened = served.client(folder, token="a-token-of-the-host", interfaces=interfaces, profile="tiny")
            clients.append((stack.enter_context(opened), {"authorization": f"Bearer {token}"}))
        first, who = clients[0]
        listed = first.get("/library?format=json", headers=who).json()["documents"]
        assert listed, "a person who sees nothing proves nothing"
        asked = islice(requests(chance, [one["id"] for one in listed]), count)
        for method, address, sent in asked:
            replies = [ask(client, method, address, sent, who) for client, who in clients]
            if replies[0] != replies[1]:
                found.append(f"{method} {address} {sent}: {first_difference(*replies)}")
        one, other = (visits(client, who) for client, who in clients)
        found += [f"{name}: {first_difference(one[name], other[name])}" for name in one if one[name] != other.get(name)]
    return found


def visits(client: TestClient, who: dict[str, str]) -> dict[str, str]:
    """Return the replies to what a person does over several pages, whose addresses hold what was made before."""
    as_json = who | {"accept": "application/json"}

    def get(address: str) -> str:
        return ask(client, "GET", address, {"headers": {"accept": "text/html"}}, who)

    def until_done(address: str) -> None:
        served.wait_until(lambda: client.get(address, headers=who).headers["x-local-rag-running"] == "no")

    asked = {"question": "Where is the harbour boat?", "in": "open/**"}
    first = client.post("/ask", data=asked, headers=as_json).json()
    conversation = first["conversation"]
    more = {"question": "What is the sum of the amounts of Quist?", "conversation": conversation}
    stream = {"data": more, "headers": {"accept": "text/event-stream"}}
    found = {"a follow-up, as it is written": ask(client, "POST", "/ask", stream, who)}
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
    columns = "Keeper: Who keeps the lantern? (name)\nDay: When is it kept? (date)"
    table = f"/tables/{client.post('/tables', data={'columns': columns}, headers=as_json).json()['id']}"
    until_done(f"{table}/progress")
    found |= {f"a table: {page}": get(f"{table}{page}") for page in ("", "?format=json", "/progress", "/table.jsonl")}
    file = {"file": ("asked.txt", "Where is the boat?\nWho keeps the zephyr?\n")}
    questions = f"/questions/{client.post('/questions', files=file, headers=as_json).json()['id']}"
    until_done(f"{questions}/progress")
    found |= {
        f"questions: {page}": get(f"{questions}{page}") for page in ("", "/rows", "/answers.csv", "/answers.jsonl")
    }
    return found | {f"then {page}": get(page) for page in ("/", "/tables", "/questions", "/history", "/open?q=boat")}


def ask(client: TestClient, method: str, address: str, sent: dict[str, Any], who: dict[str, str]) -> str:
    """Return status and text of a reply, without what is random in it."""
    reply = client.request(method, address, **{**sent, "headers": {**sent.get("headers", {}), **who}})
    return f"{reply.status_code} {reply.headers.get('location', '')} {_RANDOM.sub('*', reply.text)}"


def first_difference(one: str, other: str) -> str:
    """Return both texts around the place where they begin to differ."""
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(0, place - 80) : place + 80]!r} is not {other[max(0, place - 80) : place + 80]!r}"
