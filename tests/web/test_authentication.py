"""Who comes in: tokens however they arrive, links that count once, links of other sites, and what strangers see."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.testclient import TestClient

from local_rag.asking import HOST, Filters, Person
from local_rag.errors import LibraryError
from local_rag.keys import token_hash
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import FEWEST, Access, require_good
from local_rag.web.gate.guard import Limits
from local_rag.web.listening import PublicUrl
from tests.support import served
from tests.support.served import ADDRESS, PORT, client

SECRET = "a-token-of-the-owner"
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
HTML = {"accept": "text/html"}
JSON = "application/json"

WAYS: dict[str, Any] = {
    "form": lambda opened, token: opened.post("/login", data={"token": token}),
    "bearer": lambda opened, token: opened.get("/library", headers={"authorization": f"Bearer {token}"}),
    "bearer for programs": lambda opened, token: opened.get("/v1/models", headers={"authorization": f"Bearer {token}"}),
    "cookie": lambda opened, token: opened.get("/library", headers={"cookie": f"local_rag_session={token}"}),
    "link": lambda opened, token: opened.get(f"/login?once={token}"),
}


@pytest.mark.parametrize("way", [name for name in WAYS if name != "link"])
def test_guessing_ends_after_a_few_tries_whatever_way_it_takes(folder: Path, way: str) -> None:
    with client(folder, token=SECRET) as opened:
        statuses = [WAYS[way](opened, f"guess-{number}").status_code for number in range(8)]
        assert statuses == [401] * 5 + [429] * 3
        for other in ("form", "bearer"):
            assert WAYS[other](opened, SECRET).status_code == 429, "else the right one would be told apart"


def test_guessing_through_the_link_ends_too(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        assert {WAYS["link"](opened, f"guess-{number}").status_code for number in range(8)} == {401}
        assert WAYS["bearer"](opened, SECRET).status_code == 429


@pytest.mark.parametrize("way", ["form", "bearer", "cookie"])
def test_the_same_wrong_token_again_keeps_nobody_out(folder: Path, way: str) -> None:
    """A program that is set up wrongly tells nothing with its second try."""
    with client(folder, token=SECRET) as opened:
        assert {WAYS[way](opened, "wrong").status_code for _ in range(20)} == {401}
        assert WAYS["form"](opened, SECRET).status_code == 303


def test_cookies_of_before_a_restart_are_no_guesses(folder: Path) -> None:
    cookies = []
    with client(folder, token=SECRET) as opened:
        for _ in range(8):
            cookies.append(opened.post("/login", data={"token": SECRET}).headers["set-cookie"].partition(";")[0])
            opened.cookies.clear()
    with client(folder, token=SECRET) as opened:
        for cookie in cookies:
            assert opened.get("/library", headers={"cookie": cookie}).status_code == 401
        assert opened.post("/login", data={"token": SECRET}).status_code == 303


def test_who_has_logged_in_stays_in_while_others_guess(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        opened.post("/login", data={"token": SECRET})
        for number in range(8):
            WAYS["bearer"](opened, str(number))
        assert opened.get("/library").status_code == 200


@pytest.mark.parametrize("token", ["", "x" * 5000, "\ud800", "päss", "\x00", "a" * 1000])
def test_odd_tokens_are_wrong_and_nothing_else(folder: Path, token: str) -> None:
    with client(folder, token=SECRET) as opened:
        for body in (json.dumps({"token": token}), json.dumps({"token": [token]})):
            # Half a surrogate pair is no text, whatever it stands for.
            wanted = 400 if token == "\ud800" else 401
            assert opened.post("/login", content=body, headers=HTML | {"content-type": JSON}).status_code == wanted
        header = token.encode("utf-8", "surrogatepass")
        assert opened.get("/library", headers={b"authorization": b"Bearer " + header}).status_code == 401


def test_an_invitation_counts_once() -> None:
    access = Access(SECRET, invitation="i" * 32)
    first, second = Response(), Response()
    assert access.log_in_once("1", "i" * 32, first) == 200
    cookie = first.headers["set-cookie"].partition(";")[0]
    assert access.entry("1", Headers({"cookie": cookie}), {}) == HOST
    assert access.log_in_once("2", "i" * 32, second) == 401
    assert "set-cookie" not in second.headers
    assert access.entry("1", Headers({"cookie": cookie}), {}) == 401, "one of the two was a stranger"


def test_the_link_of_open_leads_to_the_page(folder: Path) -> None:
    app = make_app(served.worker(folder), hosts=[f"127.0.0.1:{PORT}"], access=Access(SECRET, invitation="i" * 32))
    with TestClient(app, base_url=ADDRESS, follow_redirects=False) as opened:
        entered = opened.get(f"/login?once={'i' * 32}")
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert opened.get("/library").status_code == 200
        again = opened.get(f"/login?once={'i' * 32}", headers=HTML)
        assert again.status_code == 401
        assert "counts once" in again.text


def test_what_was_wanted_comes_after_logging_in(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        form = opened.get("/document/1?chunk=1&from=0", headers=HTML)
        assert form.status_code == 401
        wanted = re.search(r'name="next" value="([^"]*)"', form.text)
        assert wanted
        assert wanted[1] == "/document/1?chunk=1&amp;from=0"
        data = {"token": SECRET, "next": "/document/1?chunk=1&from=0"}
        assert opened.post("/login", data=data).headers["location"] == "/document/1?chunk=1&from=0"
        for elsewhere in ("//attacker.example", "https://attacker.example", "/\\attacker.example", "/\r\nx: y"):
            entered = opened.post("/login", data={"token": SECRET, "next": elsewhere})
            assert entered.headers["location"] == "/"


def test_other_sites_may_link_to_what_only_shows(folder: Path) -> None:
    with client(folder) as opened:
        for path in ("/", "/document/1", "/document/1?chunk=1"):
            assert opened.get(path, headers=LINK).status_code == 200
        for path in ("/search?q=boat", "/history", "/library", "/document/1/file", "/inspect?q=x", "/healthz"):
            assert opened.get(path, headers=LINK).status_code == 403
        embedded: list[Mapping[str, str]] = [
            LINK | {"sec-fetch-dest": "iframe"},
            LINK | {"sec-fetch-mode": "no-cors"},
            LINK | {"origin": "http://attacker.example"},
        ]
        for headers in embedded:
            assert opened.get("/document/1", headers=headers).status_code == 403
        assert opened.post("/ask", data={"question": "boat"}, headers=LINK).status_code == 403


def test_a_link_of_another_site_leads_on_with_the_cookie(folder: Path) -> None:
    """The cookie is strict: browsers send it only with what a page of this server asks for."""
    with client(folder, token=SECRET) as opened:
        page = opened.get("/document/1?chunk=1", headers=LINK | HTML)
        assert page.status_code == 200
        assert "boat" not in page.text
        assert 'url=/document/1?chunk=1&amp;linked=1"' in page.text
        assert opened.get("/document/1?chunk=1&linked=1", headers=LINK | HTML).status_code == 401, "it ends here"
        opened.post("/login", data={"token": SECRET})
        assert opened.get("/document/1?chunk=1&linked=1").status_code == 200


def test_strangers_learn_nothing_of_the_library(documents: Path) -> None:
    (documents.parent / "lib").mkdir()
    app = make_app(served.worker(documents.parent / "lib"), hosts=[f"127.0.0.1:{PORT}"], access=Access(SECRET))
    with TestClient(app, base_url=ADDRESS) as opened:
        known = {"authorization": f"Bearer {SECRET}"}
        served.wait_until(lambda: "local-rag index" in opened.get("/", headers=known).text)
        page = opened.get("/login", headers=HTML).text
        assert "local-rag index" not in page
        assert str(documents.parent) not in page
        assert "Cannot be closed here" not in page


def proxied(folder: Path, url: str, token: str = SECRET) -> TestClient:
    """Return a client of a server behind a proxy on this machine."""
    public = PublicUrl.parse(url)
    app = make_app(
        served.worker(folder),
        hosts={"127.0.0.1:8000", *public.hosts},
        origins={ADDRESS, public.origin},
        access=Access(token, secure=public.scheme == "https"),
        behind_proxy=True,
        limits=Limits(rate=0.001, burst=20),
    )
    return TestClient(app, base_url=ADDRESS, client=("127.0.0.1", 5), follow_redirects=False)


def test_behind_a_proxy_its_address_is_the_servers(folder: Path) -> None:
    with proxied(folder, "https://Notes.example") as opened:
        through = {"host": "notes.example", "origin": "https://notes.example"}
        entered = opened.post("/login", data={"token": SECRET}, headers=through)
        assert entered.status_code == 303
        assert "Secure" in entered.headers["set-cookie"]
        assert entered.headers["set-cookie"].startswith("__Host-")
        assert opened.get("/library", headers=through | {"authorization": f"Bearer {SECRET}"}).status_code == 200
        assert opened.get("/library", headers={"host": "notes.example"}).status_code == 401
        assert opened.get("/library", headers={"host": "other.example"}).status_code == 400
        assert opened.get("/", headers={"host": "notes.example", "origin": "http://notes.example"}).status_code == 403


def test_behind_a_proxy_each_client_is_counted_alone(folder: Path) -> None:
    with proxied(folder, "https://notes.example") as opened:

        def guess(number: int, forwarded: str) -> int:
            headers = {"authorization": f"Bearer wrong-{number}", "x-forwarded-for": forwarded}
            return opened.get("/library", headers=headers).status_code

        assert [guess(number, f"10.0.0.{number}, 192.0.2.1") for number in range(7)] == [401] * 5 + [429] * 2
        assert guess(8, "192.0.2.2") == 401
        for number in range(30):
            opened.get("/healthz", headers={"x-forwarded-for": f"2001:db8::{number}"})
        assert opened.get("/healthz", headers={"x-forwarded-for": "2001:db8::99"}).status_code == 429
        assert opened.get("/healthz", headers={"x-forwarded-for": "192.0.2.3"}).status_code == 200


def test_without_a_proxy_nobody_says_who_is_asking(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        for number in range(8):
            headers = {"authorization": f"Bearer {number}", "x-forwarded-for": f"192.0.2.{number}"}
            status = opened.get("/library", headers=headers).status_code
        assert status == 429


@pytest.mark.parametrize(
    "url", ["notes.example", "ftp://x", "https://", "https://x/path", "https://x?q", "https://a@x"]
)
def test_addresses_that_no_proxy_can_have(url: str) -> None:
    with pytest.raises(ValueError, match="give an address"):
        PublicUrl.parse(url)


def test_addresses_with_a_port() -> None:
    assert PublicUrl.parse("http://notes.example:8080/").hosts == {"notes.example:8080"}
    assert PublicUrl.parse("https://notes.example:443").origin == "https://notes.example"
    assert PublicUrl.parse("https://[2001:DB8::1]").origin == "https://[2001:db8::1]"


@pytest.mark.parametrize(
    "token", ["short", "x" * (FEWEST - 1), "x" * 1001, "with spaces in it all over", "ünïcödé" * 5]
)
def test_tokens_that_can_be_guessed_or_not_be_sent_are_refused(token: str) -> None:
    with pytest.raises(LibraryError, match="make one with"):
        require_good(token, "LOCAL_RAG_TOKEN")


def test_programs_get_refusals_in_the_protocol_of_openai(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        refused = opened.get("/v1/models")
        assert (refused.status_code, set(refused.json()["error"])) == (401, {"message", "type", "param", "code"})


def test_cookies_of_two_servers_do_not_meet() -> None:
    names = {Access(SECRET, cookie=f"local_rag_session_{port}").cookie for port in (8000, 8001)}
    assert len(names) == 2


def test_a_cookie_is_cut_out_and_never_unquoted(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        opened.post("/login", data={"token": SECRET})
        (name, value), *_ = opened.cookies.items()
        opened.cookies.clear()
        for cookie, status in (
            (f"{name}={value}", 200),
            (f'other="a; b"; {name}={value}; x=y', 200),
            (f'{name}="{value}"', 401),
            (f"x={value}", 401),
            (f'{name}="' + "\\\\" * 1000, 401),
            (f"{name}={value}; x=" + "y" * 4096, 431),
        ):
            assert opened.get("/library", headers={"cookie": cookie}).status_code == status, cookie[:60]


def test_sessions_of_one_person_end_only_that_persons_own() -> None:
    access, anna = Access(SECRET), Person("anna", "Anna", "reader", Filters())
    people = {token_hash("the-token-of-anna-herself"): anna}

    def log_in(token: str) -> Headers:
        response = Response()
        assert access.log_in("client", token, response, people) == 200
        return Headers({"cookie": response.headers["set-cookie"].partition(";")[0]})

    owner, first = log_in(SECRET), log_in("the-token-of-anna-herself")
    for _ in range(1001):
        last = log_in("the-token-of-anna-herself")
    assert access.entry("client", owner, people) == HOST
    assert access.entry("client", last, people) == anna
    assert access.entry("client", first, people) == 401
