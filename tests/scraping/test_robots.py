"""robots.txt by RFC 9309, and the delay it asks for."""

from pathlib import Path

import pytest

from tests.scraping.pages import article, reason, run
from tests.support.web_server import Handler, Reply, WebServer, redirect


def test_robots_txt_is_obeyed(site: WebServer, tmp_path: Path) -> None:
    rules = "User-agent: local-rag\nDisallow: /secret\n\nUser-agent: *\nDisallow: /\n"
    site.pages["/robots.txt"] = Reply("\ufeff" + rules, "text/plain")
    site.pages |= {"/open": Reply(article()), "/way-in": redirect("/secret/plan"), "/secret/plan": Reply(article())}
    pages = run(site.url("/open"), site.url("/secret/plan"), site.url("/way-in"), output=tmp_path)
    assert [page.status for page in pages] == ["written", "skipped", "skipped"]
    assert {page.reason for page in pages[1:]} == {"the site's robots.txt forbids it"}
    assert site.paths() == ["/open", "/way-in"]
    assert len(site.requests) == 3


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply("", status=500), "robots.txt cannot be fetched"),
        (redirect("ftp://127.0.0.1/robots.txt"), "robots.txt cannot be fetched"),
        (Reply("", status=429), "robots.txt cannot be fetched"),
        (Reply("User-agent: *\nCrawl-delay: 86400\n", "text/plain"), "over 60 seconds"),
        (Reply("User-agent: *\nCrawl-delay: 60.5\n", "text/plain"), "over 60 seconds"),
    ],
)
def test_a_site_without_a_readable_robots_txt_is_skipped(
    site: WebServer, tmp_path: Path, reply: Handler, expected: str
) -> None:
    site.pages |= {"/robots.txt": reply, "/": Reply(article())}
    assert expected in reason(site.url(), tmp_path)
    assert site.paths() == []


def test_crawl_delay_is_kept(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/robots.txt": Reply("User-agent: *\nCrawl-delay: 1\n", "text/plain"), "/": Reply(article())}
    run(site.url(), output=tmp_path)
    assert site.requests[1].time - site.requests[0].time >= 1.0


EVERYBODY = "User-agent: *\n"


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Disallow: /*.pdf$", "/a/chart.pdf", False),
        ("Disallow: /*.pdf$", "/a/chart.pdf?page=2", True),
        ("Disallow: /*/private/", "/a/private/b", False),
        ("Disallow: /*?session=", "/a?session=3", False),
        ("Disallow: /a*c*e", "/abcd", True),
        ("Allow: /\nDisallow: /private/", "/private/a", False),
        ("Disallow: /private/\nAllow: /private/open", "/private/open/a", True),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Disallow: /Private", "/private", True),
        ("Disallow:", "/a", True),
        ("Disallow: /user-agent: x", "/user-agent:%20x/y", False),
        ("Disallow: /%7Etide", "/~tide", False),
        ("Disallow: /~tide", "/%7etide", False),
        ("Disallow: /marée", "/mar%C3%A9e", False),
        ("Disallow: /mar%c3%a9e", "/marée", False),
        ("Disallow: /a%2fb", "/a/b", True),
        ("Disallow: /a # why\n", "/a", False),
        ("disALLOW : /a", "/a", False),
        ("Disallow: //[", "/a", True),
        ("\nCrawl-delay: 0\n\nSitemap: /map.xml\n\nDisallow: /a", "/a", False),
        ("Disallow: /b\n\nUser-agent: other\nAllow: /\n\nUser-agent: *\nDisallow: /a", "/a", False),
        ("Disallow: /a\nUser-agent: Local-RAG\nDisallow: /b", "/a", True),
        ("Allow: /a\nUser-agent: Local-RAG\nDisallow: /a", "/a", False),
        ("Allow: /a\nUser-agent: local-rag/2.0 (all versions)\nDisallow: /a", "/a", False),
        ("Allow: /a\nUser-agent: local-rag\nAllow: /b\nUser-agent: LOCAL-RAG\nDisallow: /a", "/a", False),
        ("Allow: /a\nUser-agent: other\nUser-agent: local-rag\nDisallow: /a", "/a", False),
        ("Disallow: /a\nUser-agent: local\nAllow: /a", "/a", False),
        ("Disallow: /a\nUser-agent: rag\nAllow: /a", "/a", False),
        ("Disallow: /a\nUser-agent: local-rag-images\nAllow: /a", "/a", False),
        ("Disallow: /a\nUser-agent:\nAllow: /a", "/a", False),
    ],
)
def test_rules_are_read_as_rfc_9309_says(site: WebServer, tmp_path: Path, rules: str, path: str, allowed: bool) -> None:
    site.pages["/robots.txt"] = Reply(EVERYBODY + rules, "text/plain; charset=utf-8")
    (page,) = run(site.url(path), output=tmp_path)
    assert page.reason == ("the server answered 404 Not Found" if allowed else "the site's robots.txt forbids it")
    assert len(site.paths()) == allowed


def test_500_kibibytes_of_rules_are_read(site: WebServer, tmp_path: Path) -> None:
    filling = "".join(f"Disallow: /filling/{number:06}/*/x$\n" for number in range(17_000))
    assert len(filling) > 500 * 1024
    site.pages |= {"/robots.txt": Reply(EVERYBODY + filling + "Disallow: /a", "text/plain"), "/b": Reply(article())}
    pages = run(site.url("/a"), site.url("/b"), output=tmp_path, max_bytes=100_000)
    assert [page.reason for page in pages] == ["the site's robots.txt forbids it", ""]


def test_a_robots_txt_that_names_thousands_of_robots_costs_no_more_than_another(
    site: WebServer, tmp_path: Path
) -> None:
    robots = "".join(f"User-agent: robot{number:05}\n" for number in range(20_000))
    rules = "".join(f"Disallow: /{number:05}\n" for number in range(20_000))  # a copy for each robot fills 25 GB
    site.pages |= {"/robots.txt": Reply(robots + EVERYBODY + rules, "text/plain"), "/b": Reply(article())}
    pages = run(site.url("/19999"), site.url("/b"), output=tmp_path)
    assert [page.reason for page in pages] == ["the site's robots.txt forbids it", ""]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_missing_robots_txt_forbids_nothing(site: WebServer, tmp_path: Path, status: int) -> None:
    site.pages |= {"/robots.txt": Reply("Disallow: /", status=status), "/": Reply(article())}
    assert run(site.url(), output=tmp_path)[0].status == "written"


def test_the_beginning_of_a_large_robots_txt_is_obeyed(site: WebServer, tmp_path: Path) -> None:
    rules = "User-agent: *\nDisallow: /secret\n" + "# comment\n" * 200_000 + "Disallow: /open\n"
    site.pages |= {"/robots.txt": Reply(rules, "text/plain"), "/open": Reply(article()), "/secret": Reply(article())}
    pages = run(site.url("/open"), site.url("/secret"), output=tmp_path)
    assert [page.status for page in pages] == ["written", "skipped"]
    site.pages["/robots.txt"] = site.pour
    assert run(site.url("/open"), output=tmp_path / "endless")[0].status == "written"


@pytest.mark.parametrize("path", ["/meta", "/header", "/links"])
def test_links_that_robots_may_not_follow_are_not_followed(site: WebServer, tmp_path: Path, path: str) -> None:
    site.pages |= {
        "/meta": Reply(article(links=("/away",), head="<meta name='ROBOTS' content='index, NoFollow'>")),
        "/header": Reply(article(links=("/away",)), headers={"X-Robots-Tag": "nofollow"}),
        "/links": Reply(article(links=("/on",)) + "<a rel='noopener NOFOLLOW' href='/away'>x</a>"),
        "/away": Reply(article("Away")),
        "/on": Reply(article("On")),
    }
    run(site.url(path), output=tmp_path, depth=1)
    assert site.paths() == ([path, "/on"] if path == "/links" else [path])
