"""Private addresses are reached only where the user said so."""

from pathlib import Path

import pytest

from local_rag.scraping.connection import is_private, resolve
from tests.scraping.pages import article, linked_pages, reason, run
from tests.support.web_server import Reply, WebServer, redirect

PUBLIC = "93.184.215.14"


def test_another_private_host_is_refused(site: WebServer, tmp_path: Path) -> None:
    linked_pages(site)
    pages = run(site.url("/a"), output=tmp_path, depth=1, same_site=False)
    assert pages[-1].reason == "it leads to the private address localhost: allow that with --allow-private"
    site.pages["/"] = redirect(site.url("/other", host="localhost"))
    assert "private address localhost" in reason(site.url(), tmp_path / "redirected")
    assert run(site.url(), output=tmp_path, allow_private=True)[0].status == "written"


def test_a_name_that_resolves_otherwise_when_connecting_is_refused(site: WebServer, tmp_path: Path) -> None:
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
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
        ("a" * 70, False),
    ],
)
def test_private_addresses(host: str, private: bool) -> None:
    assert any(map(is_private, resolve(host))) is private
