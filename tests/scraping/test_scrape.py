import gzip
import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from local_rag.cli.main import cli
from local_rag.errors import LocalRagError, NetworkError
from local_rag.scraping.fetch import normalize_url
from local_rag.scraping.scraper import ScrapedPage, file_name, scrape
from tests.scraping.pages import TEXT, article, linked_pages, read, reason, run
from tests.support.web_server import Handler, Reply, WebServer, in_turn, redirect, web_server


def test_a_page_becomes_markdown_with_front_matter(site: WebServer, tmp_path: Path) -> None:
    head = '<meta property="article:published_time" content="2024-03-02T10:00:00Z">'
    site.pages["/guide/tide"] = Reply(article('The "tide": a guide', head=head, links=("/a",)))
    (page,) = run(site.url("/guide/tide"), output=tmp_path)
    assert page == ScrapedPage(page.url, tmp_path / f"127.0.0.1_{site.port}" / "guide_tide.md", "written")
    fields, text = read(page)
    assert fields == {"url": site.url("/guide/tide"), "title": 'The "tide": a guide', "date": "2024-03-02"}
    assert TEXT in text
    assert "## Depths" in text
    assert "menu entry" not in text
    assert "All rights" not in text
    assert re.match(r"local-rag/\d+\.\d+\.\d+ ", site.last("/guide/tide").headers["User-Agent"])
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("content_type", "body", "title"),
    [
        ("text/markdown", "# Tides\n\nHigh *and* low.\n", "Tides"),
        ("text/plain; charset=iso-8859-1", "Marée haute\n  indented\n".encode("latin-1"), "notes.txt"),
    ],
)
def test_text_is_kept_as_it_is(
    site: WebServer, tmp_path: Path, content_type: str, body: bytes | str, title: str
) -> None:
    site.pages["/notes.txt"] = Reply(body, content_type)
    fields, text = read(run(site.url("/notes.txt"), output=tmp_path)[0])
    assert fields == {"url": site.url("/notes.txt"), "title": title}
    assert text == "\n" + (body if isinstance(body, str) else body.decode("latin-1"))


def test_a_pdf_is_kept_byte_for_byte(site: WebServer, tmp_path: Path) -> None:
    body = b"%PDF-1.7\n\x00\xff\r\n%%EOF"
    site.pages["/chart.pdf"] = Reply(body, "application/pdf")
    (page,) = run(site.url("/chart.pdf"), output=tmp_path)
    assert page.path is not None
    assert page.path.name == "chart.pdf"
    assert page.path.read_bytes() == body


HEBREW = "הגאות בנמל עולה פעמיים ביום, וכל סירה ששוקעת יותר משני מטרים ממתינה לה בסבלנות עד שיגיעו המים הגבוהים."
FRENCH = "La marée monte deux fois par jour : à l'été, même les bateaux légers attendent près de la jetée."


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (article(text=FRENCH).encode(), "text/html", FRENCH),
        (article(text=FRENCH).encode("latin-1"), "text/html; charset=ISO-8859-1", FRENCH),
        (article(text=FRENCH).encode(), "text/html; charset=ISO-8859-1", FRENCH),
        (article(text=FRENCH).encode("latin-1"), "text/html; charset=no-such-thing", FRENCH),
        (article(text=HEBREW, head='<meta charset="windows-1255">').encode("cp1255"), "text/html", HEBREW),
        (article(text=HEBREW).encode("utf-16"), "text/html", HEBREW),
        (article(text=HEBREW).encode().replace("פעמיים".encode(), b"\xd7"), "text/html; charset=utf-8", "ביום, וכל"),
        ('<?xml version="1.0" encoding="utf-8"?>' + article(text=HEBREW), "application/xhtml+xml", HEBREW),
    ],
    ids=["undeclared", "latin-1", "lies", "unknown", "meta", "byte order mark", "broken", "xhtml"],
)
def test_character_sets(site: WebServer, tmp_path: Path, body: bytes | str, content_type: str, expected: str) -> None:
    site.pages["/"] = Reply(body, content_type)
    _, text = read(run(site.url(), output=tmp_path)[0])
    assert expected in text


def test_redirects_are_followed_and_the_file_is_named_after_their_end(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/old": redirect("/new%20place"), "/new%20place": redirect("tide"), "/tide": Reply(article())}
    (first,) = run(site.url("/old"), output=tmp_path)
    (second,) = run(site.url("/tide"), output=tmp_path / "other")
    assert first.path is not None
    assert second.path is not None
    assert first.path.name == second.path.name == "tide.md"
    assert read(first)[0]["url"] == site.url("/tide")


def test_a_page_reached_twice_is_fetched_once(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/old": redirect("/tide"), "/older": redirect("/old"), "/tide": Reply(article())}
    pages = run(site.url("/old"), site.url("/tide"), site.url("/tide#part"), site.url("/older"), output=tmp_path)
    assert [page.status for page in pages] == ["written", "skipped"]
    assert "already fetched" in pages[1].reason


def test_a_redirect_loop_ends(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/a": redirect("/b"), "/b": redirect("/a")}
    assert "redirects more than 10 times" in reason(site.url("/a"), tmp_path)
    assert len(site.paths()) == 11


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "ftp://127.0.0.1/x", "javascript:alert(1)", "http://[bad/", "http://u:p@localhost/"],
)
def test_redirects_that_leave_http_are_refused(site: WebServer, tmp_path: Path, target: str) -> None:
    site.pages["/"] = redirect(target)
    assert f"redirects to {target}" in reason(site.url(), tmp_path)


def test_a_missing_page_is_skipped_at_once(site: WebServer, tmp_path: Path) -> None:
    assert reason(site.url("/gone"), tmp_path) == "the server answered 404 Not Found"
    assert site.paths() == ["/gone"]


def test_a_temporary_failure_is_tried_again(site: WebServer, tmp_path: Path) -> None:
    half = Reply("<p>half", headers={"Content-Length": "5000"})
    site.pages["/"] = in_turn(Reply("", status=500), half, Reply(article()))
    (page,) = run(site.url(), output=tmp_path)
    assert page.status == "written"
    assert site.paths() == ["/", "/", "/"]


@pytest.mark.parametrize(
    ("reply", "expected", "attempts"),
    [
        (Reply("", status=500), "500 Internal Server Error", 3),
        (Reply("", status=503, headers={"Retry-After": "3600"}), "503 Service Unavailable", 1),
        (Reply("", status=503, headers={"Retry-After": "soon"}), "503 Service Unavailable", 3),
        (Reply("x", headers={"Content-Length": "9"}), "was interrupted", 3),
        (Reply("", status=418), "418", 1),
        (Reply("", status=304), "304", 1),
        (Reply("not gzip", headers={"Content-Encoding": "gzip"}), "failed", 1),
    ],
)
def test_a_lasting_failure_is_given_up(
    site: WebServer, tmp_path: Path, reply: Handler, expected: str, attempts: int
) -> None:
    site.pages["/"] = reply
    assert expected in reason(site.url(), tmp_path)
    assert len(site.paths()) == attempts


def test_a_short_retry_after_is_waited_for(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = in_turn(Reply("", status=429, headers={"Retry-After": "1"}), Reply(article()))
    assert run(site.url(), output=tmp_path)[0].status == "written"
    assert site.requests[-1].time - site.requests[-2].time >= 1.0


def test_a_server_that_asks_to_be_left_alone_is_not_asked_for_other_pages(site: WebServer, tmp_path: Path) -> None:
    busy = Reply("", status=429, headers={"Retry-After": "3600"})
    links = tuple(f"/p{number}" for number in range(9))
    site.pages |= {"/": Reply(article(links=links)), **dict.fromkeys(links, busy)}
    pages = run(site.url(), output=tmp_path, depth=1)
    assert site.paths() == ["/", "/p0"]
    assert [page.status for page in pages] == ["written"] + ["skipped"] * 9
    assert pages[-1].reason == "the server asked to be left alone for 60 minutes"


def test_other_pages_of_a_host_wait_as_long_as_it_asked_for_one(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/a": Reply("", status=418), "/b": Reply(article())}
    site.pages["/busy"] = in_turn(Reply("", status=503, headers={"Retry-After": "1"}), Reply("", status=418))
    run(site.url("/busy"), site.url("/b"), output=tmp_path)
    assert site.paths() == ["/busy", "/busy", "/b"]
    assert site.last("/b").time - site.requests[1].time >= 1.0


def test_a_silent_server_is_given_up(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = site.hang
    assert "did not answer within 0.2 seconds" in reason(site.url(), tmp_path, timeout=0.2)


@pytest.mark.parametrize("kind", ["drip", "drip_headers", "drip_interim_answers", "drip_chunk_size"])
def test_a_dripping_server_is_given_up(site: WebServer, tmp_path: Path, kind: str) -> None:
    site.pages["/"] = getattr(site, kind)
    assert "not complete after 0.8 seconds" in reason(site.url(), tmp_path, timeout=0.2)
    assert site.paths() == ["/"]


def test_a_proxy_is_used_and_may_not_drip_either(
    site: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", site.url())
    monkeypatch.delenv("no_proxy", raising=False)
    page, dripping = "http://tide.invalid/", "http://tide.invalid/dripping"
    site.pages |= {page: Reply(article()), dripping: site.drip_headers}
    pages = run(page, dripping, output=tmp_path, timeout=0.2)
    assert [page.reason for page in pages] == ["", "it was not complete after 0.8 seconds"]


def test_a_closed_port_is_skipped(tmp_path: Path) -> None:
    with web_server() as gone:
        url = gone.url()
    assert "connection failed" in reason(url, tmp_path)


@pytest.mark.parametrize("kind", ["declared", "streamed", "gzip bomb"])
def test_too_large_a_page_is_refused(site: WebServer, tmp_path: Path, kind: str) -> None:
    replies: dict[str, Handler] = {
        "declared": Reply(b"x", "text/plain", headers={"Content-Length": "100001"}),
        "streamed": site.pour,
        "gzip bomb": Reply(gzip.compress(bytes(30_000_000)), "text/plain", headers={"Content-Encoding": "gzip"}),
    }
    site.pages["/"] = replies[kind]
    assert "larger than 100,000 bytes" in reason(site.url(), tmp_path, max_bytes=100_000)


@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream", "application/json", None])
def test_other_content_types_are_refused(site: WebServer, tmp_path: Path, content_type: str | None) -> None:
    site.pages["/"] = Reply(article(), content_type)
    assert (content_type or "no content type") in reason(site.url(), tmp_path)


def test_requests_to_a_host_are_spaced(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/a": Reply(article()), "/b": redirect("/a")}
    run(site.url("/a"), site.url("/b"), output=tmp_path, delay=0.15)
    times = [request.time for request in site.requests]
    assert len(times) == 4
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.15


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["/a"]),
        ({"depth": 1}, ["/a", "/b", "/c?page=2"]),
        ({"depth": 2}, ["/a", "/b", "/c?page=2", "/d"]),
        ({"depth": 9, "max_pages": 2}, ["/a", "/b"]),
        ({"depth": 1, "same_site": False}, ["/a", "/b", "/c?page=2"]),
        ({"depth": 1, "same_site": False, "allow_private": True}, ["/a", "/b", "/c?page=2", "/other"]),
    ],
)
def test_links_are_followed(site: WebServer, tmp_path: Path, options: dict[str, Any], expected: list[str]) -> None:
    linked_pages(site)
    pages = run(site.url("/a"), output=tmp_path, **options)
    assert site.paths() == expected
    assert [page.status for page in pages].count("written") == len(expected)


def test_a_link_may_not_redirect_to_another_site(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {
        "/": Reply(article(links=("/away",))),
        "/away": redirect(site.url("/other", host="localhost")),
        "/other": Reply(article("Other")),
    }
    pages = run(site.url(), output=tmp_path, depth=1, allow_private=True)
    assert "redirects to another site" in pages[1].reason
    assert run(site.url(), output=tmp_path, depth=1, allow_private=True, same_site=False)[1].status == "written"


def test_links_of_a_page_without_text_are_followed(site: WebServer, tmp_path: Path) -> None:
    base = f'<base href="{site.url("/deep/")}">'
    site.pages |= {
        "/": Reply(f"<html><head>{base}</head><body><div><a href=' x '></a></div></body></html>"),
        "/deep/x": Reply(article()),
    }
    pages = run(site.url(), output=tmp_path, depth=1)
    assert [page.status for page in pages] == ["skipped", "written"]
    assert pages[0].reason == "it contains no text"


def test_html_that_trips_the_parsers_only_costs_its_page(site: WebServer, tmp_path: Path) -> None:
    hostile = "<html><head><base href='http://[bad/'></head><body><p>words</p><script></script>&#27; more</body></html>"
    site.pages |= {"/a": Reply(hostile), "/b": Reply(article())}
    pages = run(site.url("/a"), site.url("/b"), output=tmp_path, depth=1)
    assert [page.status for page in pages] == ["skipped", "written"]
    assert pages[0].reason.startswith("its HTML cannot be parsed")


class Versioned:
    """Answer conditional requests as a good server does."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers
        self.body = article()

    def __call__(self, request: Any) -> None:
        asked = (request.headers.get("If-None-Match"), request.headers.get("If-Modified-Since"))
        known = (self.headers.get("ETag"), self.headers.get("Last-Modified"))
        reply = Reply(status=304) if any(asked) and asked == known else Reply(self.body, headers=self.headers)
        reply(request)


@pytest.mark.parametrize(
    "headers", [{"ETag": '"v1"'}, {"Last-Modified": "Sat, 02 Mar 2024 10:00:00 GMT"}, {}], ids=["etag", "date", "hash"]
)
def test_an_unchanged_page_is_not_written_again(site: WebServer, tmp_path: Path, headers: dict[str, str]) -> None:
    page = site.pages["/tide"] = Versioned(headers)
    site.pages["/old"] = redirect("/tide")
    (first,) = run(site.url("/old"), output=tmp_path)
    assert first.path is not None
    os.utime(first.path, (1, 1))
    (second,) = run(site.url("/old"), output=tmp_path)
    assert (second.status, second.path) == ("unchanged", first.path)
    assert first.path.stat().st_mtime == 1
    page.body, page.headers = (
        article(text="The harbour is closed until the spring tide of next year."),
        {"ETag": '"v2"'},
    )
    (third,) = run(site.url("/old"), output=tmp_path)
    assert (third.status, third.path) == ("written", first.path)
    assert "harbour is closed" in read(third)[1]


def test_a_deleted_file_is_written_again(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Versioned({"ETag": '"v1"'})
    (first,) = run(site.url(), output=tmp_path)
    assert first.path is not None
    first.path.unlink()
    assert run(site.url(), output=tmp_path) == [first]
    assert first.path.is_file()


def test_links_of_an_unchanged_page_are_followed(site: WebServer, tmp_path: Path) -> None:
    start = site.pages["/"] = Versioned({"ETag": '"v1"'})
    start.body = article(links=("/b",))
    site.pages["/b"] = Versioned({"ETag": '"v1"'})
    run(site.url(), output=tmp_path, depth=1)
    pages = run(site.url(), output=tmp_path, depth=1)
    assert [page.status for page in pages] == ["unchanged", "unchanged"]
    assert site.last("/b").headers["If-None-Match"] == '"v1"'


def test_a_stopped_run_keeps_what_is_done(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/a": Versioned({"ETag": '"v1"'}), "/b": Versioned({"ETag": '"v1"'})}
    pages = scrape([site.url("/a"), site.url("/b")], output=tmp_path, delay=0)
    assert next(pages).status == "written"
    pages.close()  # type: ignore[attr-defined]
    assert [page.status for page in run(site.url("/a"), site.url("/b"), output=tmp_path)] == ["unchanged", "written"]


DAMAGED = '{"%s": {"file": %s, "sha256": "", "etag": %s, "last_modified": null}}'


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        '{"http://x/": 3}',
        '{"http://x/": {"file": "y"}}',
        "\udcff",
        "[" * 100_000,
        DAMAGED % ("URL", 3, "null"),
        DAMAGED % ("URL", '"FILE"', 3),
    ],
)
def test_a_damaged_state_only_costs_a_fetch(site: WebServer, tmp_path: Path, damage: str) -> None:
    site.pages["/"] = Versioned({"ETag": '"v1"'})
    run(site.url(), output=tmp_path)
    damage = damage.replace("URL", site.url()).replace("FILE", f"127.0.0.1_{site.port}/index.md")
    (tmp_path / ".scrape.json").write_bytes(damage.encode(errors="surrogateescape"))
    assert run(site.url(), output=tmp_path)[0].status == "written"


def test_a_file_that_the_user_edited_is_not_overwritten(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(article())
    (first,) = run(site.url(), output=tmp_path)
    assert first.path is not None
    first.path.write_text("my own notes")
    assert run(site.url(), output=tmp_path)[0].status == "unchanged", "as long as the page is"
    site.pages["/"] = Reply(article("The new tide", links=("/b",)))
    site.pages["/b"] = Reply(article())
    pages = run(site.url(), output=tmp_path, depth=1)
    assert pages[0].reason == f"{first.path} was edited; move or delete it to fetch the page again"
    assert [page.status for page in pages] == ["skipped", "written"]
    assert first.path.read_text() == "my own notes"
    first.path.unlink()
    assert run(site.url(), output=tmp_path)[0].status == "written"
    site.pages["/"] = Reply(article())
    assert run(site.url(), output=tmp_path)[0].status == "written", "its own file is replaced"


def test_a_file_that_scrape_never_wrote_is_not_overwritten(site: WebServer, tmp_path: Path) -> None:
    site.pages["/tide"] = Reply(article())
    path = tmp_path / f"127.0.0.1_{site.port}" / "tide.md"
    path.parent.mkdir()
    path.write_text("my own notes")
    assert "was edited" in run(site.url("/tide"), output=tmp_path)[0].reason
    assert path.read_text() == "my own notes"


def test_a_page_that_moved_to_https_replaces_its_file(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(article())
    (first,) = run(site.url(), output=tmp_path)
    state = tmp_path / ".scrape.json"
    state.write_text(state.read_text().replace("http://", "https://"))
    site.pages["/"] = Reply(article("The new tide"))
    assert run(site.url(), output=tmp_path) == [first]


def test_two_concurrent_runs_keep_each_others_state(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {path: Versioned({"ETag": '"v1"'}) for path in ("/a", "/b", "/c")}
    slow = scrape([site.url("/a"), site.url("/b")], output=tmp_path, delay=0)
    assert next(slow).status == "written"
    run(site.url("/c"), output=tmp_path)
    assert [page.status for page in slow] == ["written"]
    run(site.url("/a"), site.url("/b"), site.url("/c"), output=tmp_path)
    assert {site.last(path).headers.get("If-None-Match") for path in ("/a", "/b", "/c")} == {'"v1"'}


def test_an_unwritable_folder_is_one_sentence(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(article())
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LocalRagError, match=r"Cannot write .* \(Not a directory\); choose another folder"):
        run(site.url(), output=tmp_path / "file")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org", "example.org/index.md"),
        ("https://example.org/guide/tide", "example.org/guide_tide.md"),
        ("http://example.org:8080/tide.html", "example.org_8080/tide.html.md"),
        ("https://example.org/Tide", "example.org/tide-{hash}.md"),
        ("https://example.org/tide/", "example.org/tide-{hash}.md"),
        ("https://example.org/guide_tide", "example.org/guide_tide-{hash}.md"),
        ("https://example.org/tide?page=2", "example.org/tide-{hash}.md"),
        ("https://example.org/tide.md", "example.org/tide-{hash}.md"),
        ("https://example.org/index", "example.org/index-{hash}.md"),
        ("https://example.org/..%2f..%2fetc/passwd", "example.org/etc_passwd-{hash}.md"),
        ("https://example.org/%00%1b", "example.org/index-{hash}.md"),
        ("https://example.org/con", "example.org/page-con-{hash}.md"),
        ("https://example.org/" + "x" * 3000, f"example.org/{'x' * 80}-{{hash}}.md"),
    ],
)
def test_file_names(url: str, expected: str) -> None:
    name = file_name(normalize_url(url), ".md")
    assert re.fullmatch(re.escape(expected).replace(re.escape("{hash}"), "[0-9a-f]{10}"), name), name
    assert file_name(normalize_url(url), ".md") == name


def test_long_and_odd_hosts_have_folders_of_their_own() -> None:
    urls = [f"https://{'x' * 60}.{'y' * 60}.{end}/" for end in ("example.org", "example.com")]
    urls += ["http://[::1]/", "http://[1::]/", "https://example.org/", "https://aux/", "https://page-aux/"]
    folders = [file_name(normalize_url(url), ".md").partition("/")[0] for url in urls]
    assert len(set(folders)) == len(urls)
    assert folders[-3] == "example.org"


@given(
    st.lists(st.text(alphabet="aA._-/%?é\\:\x1b", max_size=12), min_size=2, max_size=2),
    st.sampled_from([".md", ".pdf"]),
)
def test_file_names_are_safe_and_distinct(paths: list[str], suffix: str) -> None:
    urls = {normalize_url(f"https://example.org/{path}") for path in paths}
    names = {file_name(url, suffix) for url in urls}
    assert len(names) == len(urls)
    for name in names:
        assert re.fullmatch(r"example\.org/[a-z0-9][a-z0-9._-]{0,100}\.(md|pdf)", name)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (" HTTP://Example.ORG:80/a?q=é#part ", "http://example.org/a?q=%C3%A9"),
        ("https://example.org:443", "https://example.org/"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("http://127.0.0.1\\@example.org/", "http://127.0.0.1/%5C@example.org/"),
    ],
)
def test_addresses_have_one_form(url: str, expected: str) -> None:
    assert normalize_url(url) == expected


WRONG = [
    "example.org/page",
    "example.org:80",
    "ftp://example.org/x",
    "file:///etc/passwd",
    "http://",
    "http://a b/",
    "",
]


@pytest.mark.parametrize("url", WRONG)
def test_an_invalid_address_is_wrong_usage(url: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["scrape", url, "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert "write it with http:// or https://" in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(NetworkError, match="put these in") as error:
        normalize_url("https://me:hunter2@example.org/")
    assert "hunter2" not in str(error.value)


def test_the_command_prints_paths_and_reasons_apart(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/a": Reply(article()), "/b": redirect("ftp://x/\x1b[31m\u202e".encode().decode("latin-1"))}
    urls = [site.url("/a"), site.url("/b")]
    result = CliRunner().invoke(cli, ["scrape", *urls, "--delay", "0", "--output", str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [str(tmp_path / f"127.0.0.1_{site.port}" / "a.md")]
    assert result.stderr.splitlines() == [
        f"skipped: {urls[1]}: it redirects to ftp://x/\ufffd[31m\ufffd, which is not a web address",
        f"1 written, 0 unchanged, 1 skipped in {tmp_path}.",
    ]
    result = CliRunner().invoke(cli, ["scrape", *urls, "--delay", "0", "--output", str(tmp_path), "--json"])
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["url"], line["status"]) for line in lines] == [(urls[0], "unchanged"), (urls[1], "skipped")]
    assert lines[0]["path"].endswith("a.md")
    assert lines[1]["path"] is None
    assert "\x1b" not in result.output


def test_the_command_fails_if_no_page_can_be_fetched(site: WebServer, tmp_path: Path) -> None:
    arguments = ["scrape", site.url("/gone"), "--delay", "0", "--output", str(tmp_path)]
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "404 Not Found" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: No page could be fetched")


def test_the_command_says_when_it_stops_at_max_pages(site: WebServer, tmp_path: Path) -> None:
    linked_pages(site)
    arguments = [site.url("/a"), "--depth", "3", "--max-pages", "2", "--delay", "0", "--output", str(tmp_path)]
    result = CliRunner().invoke(cli, ["scrape", *arguments])
    assert len(result.stdout.splitlines()) == 2
    assert "Stopped at --max-pages 2." in result.stderr
