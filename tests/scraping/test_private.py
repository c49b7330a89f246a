"""Private addresses are reached only where the user said so."""

from pathlib import Path

import pytest

from local_rag.scraping.checked_connection import is_private, resolve
from tests.scraping.pages import article, linked_pages, reason, run
from tests.support.web_server import Reply, WebServer, redirect, web_server

PUBLIC = "93.184.215.14"


def test_another_private_host_is_refused(site: WebServer, tmp_path: Path) -> None:
    linked_pages(site)
    pages = run(site.url("/a"), output=tmp_path, depth=1, same_site=False)
    refused = f"it leads to the private address localhost:{site.port}; allow that with --allow-private"
    assert pages[-1].reason == refused
    site.pages["/"] = redirect(site.url("/other", host="localhost"))
    assert "private address localhost" in reason(site.url(), tmp_path / "redirected")
    assert run(site.url(), output=tmp_path, allow_private=True)[0].status == "written"


def test_a_host_with_a_public_and_a_private_address_does_not_count_as_private(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(article())
    for addresses in ([PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC]):
        why = reason(site.url(host="localhost"), tmp_path, resolve=lambda _host, found=addresses: found)
        assert f"private address localhost:{site.port}" in why
    assert site.requests == [], "nothing was sent"


def test_another_port_of_the_private_host_is_refused(site: WebServer, tmp_path: Path) -> None:
    with web_server() as other:
        other.pages["/secrets"] = Reply(article("Secrets"))
        site.pages |= {"/": Reply(article(links=(other.url("/secrets"),))), "/away": redirect(other.url("/secrets"))}
        pages = run(site.url(), site.url("/away"), output=tmp_path, depth=1)
        assert [page.status for page in pages] == ["written", "skipped", "skipped"]
        assert {f"private address 127.0.0.1:{other.port}" in page.reason for page in pages[1:]} == {True}
        assert other.requests == [], "nothing was sent"
        named = run(site.url(), other.url("/secrets"), output=tmp_path)
        assert [page.status for page in named] == ["unchanged", "written"]


def test_a_name_that_resolves_differently_when_connecting_is_refused(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(article())
    why = reason(site.url(), tmp_path, resolve=lambda _host: [PUBLIC])
    assert "leads to the private address 127.0.0.1" in why
    assert site.requests == [], "nothing was sent"
    assert run(site.url(), output=tmp_path, allow_private=True)[0].status == "written"


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("169.254.169.254", True),
        ("100.64.0.1", True),
        ("0.0.0.0", True),
        ("2130706433", True),
        ("::1", True),
        ("::ffff:192.168.0.1", True),
        ("fd00::1", True),
        ("224.0.0.1", True),
        ("64:ff9b::10.0.0.1", True),
        ("64:ff9b::8.8.8.8", False),
        ("2002:7f00:1::", True),
        ("fec0::1", True),
        ("::127.0.0.1", True),
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
        ("a" * 70, False),
    ],
)
def test_private_addresses(host: str, private: bool) -> None:
    assert any(map(is_private, resolve(host))) is private
