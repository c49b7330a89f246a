"""--selector: what is kept of a page is what the user names."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from local_rag.cli.main import cli
from local_rag.errors import LocalRagError
from local_rag.scraping.scraper import scrape
from tests.scraping.pages import article, read, run
from tests.support.web_server import Reply, WebServer

PAGE = """<!DOCTYPE html><html><head><title>Tide tables</title></head><body>
<nav><a href="/next">next page</a></nav>
<main><h1>Tides</h1><p>What the extractor would keep, since it is the long text of this page.</p></main>
<aside class="box"><h2>Depths</h2><p>Keep <code>snake_case</code> and 2 * 3.</p><script>alert(1)</script>
<div class="box"><table><tr><th>Hour</th><th>Depth</th></tr><tr><td>6</td><td>2 m</td></tr></table></div></aside>
<footer><span class="box">One</span><span class="box">Two <a href="/else">of all</a><img src="x" alt=""></span></footer>
</body></html>"""
KEPT = """
## Depths

Keep `snake_case` and 2 * 3.

| Hour | Depth |
| --- | --- |
| 6 | 2 m |

One

Two of all
"""


@pytest.mark.parametrize("content_type", ["text/html", "application/xhtml+xml"])
def test_all_matches_are_kept_in_order_and_nested_ones_once(site: WebServer, tmp_path: Path, content_type: str) -> None:
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n' if "xml" in content_type else ""
    site.pages["/tides"] = Reply(declaration + PAGE, content_type)
    fields, text = read(run(site.url("/tides"), output=tmp_path, selector=".box")[0])
    assert fields == {"url": site.url("/tides"), "title": "Tides"}
    assert text == KEPT


def test_body_and_head_can_be_selected(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(PAGE)
    _, text = read(run(site.url(), output=tmp_path, selector="title, body")[0])
    assert text.split()[:7] == ["Tide", "tables", "next", "page", "#", "Tides", "What"]


def test_a_page_without_a_match_is_skipped_and_its_links_are_followed(site: WebServer, tmp_path: Path) -> None:
    site.pages |= {"/": Reply(PAGE.replace("box", "bag")), "/next": Reply(PAGE), "/else": Reply("<p class=box></p>")}
    pages = run(site.url(), output=tmp_path, selector=".box", depth=1)
    assert [page.status for page in pages] == ["skipped", "written", "skipped"]
    assert pages[0].reason == pages[2].reason == "no text in it matches the selector .box"


def test_other_formats_than_html_are_kept_whole(site: WebServer, tmp_path: Path) -> None:
    site.pages["/notes"] = Reply("Two metres.\n", "text/plain")
    assert read(run(site.url("/notes"), output=tmp_path, selector=".box")[0])[1] == "\nTwo metres.\n"


def test_another_selector_fetches_an_unchanged_page_again(site: WebServer, tmp_path: Path) -> None:
    versioned = Reply(PAGE, headers={"ETag": '"v1"'})
    unchanged = Reply(status=304)
    site.pages["/"] = lambda request: (unchanged if request.headers.get("If-None-Match") else versioned)(request)
    statuses = [
        run(site.url(), output=tmp_path, selector=selector)[0].status for selector in (None, ".box", ".box", "h1", None)
    ]
    assert statuses == ["written", "written", "unchanged", "written", "written"]


@pytest.mark.parametrize("selector", ["", "p[", ":no-such-thing", "a >", "!"])
def test_an_invalid_selector_is_wrong_usage(site: WebServer, tmp_path: Path, selector: str) -> None:
    site.pages["/"] = Reply(article())
    result = CliRunner().invoke(cli, ["scrape", site.url(), "--selector", selector, "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert f"{selector!r} is not a valid CSS selector" in " ".join(result.stderr.split())
    with pytest.raises(LocalRagError, match="is not a valid CSS selector") as error:
        next(scrape([site.url()], output=tmp_path, selector=selector))
    assert "\n" not in str(error.value)
    assert site.requests == []


def test_the_command_keeps_the_selected_elements(site: WebServer, tmp_path: Path) -> None:
    site.pages["/"] = Reply(PAGE)
    arguments = ["scrape", site.url(), "--selector", "h2", "--delay", "0", "--output", str(tmp_path)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert Path(result.stdout.strip()).read_text().endswith("---\n\n## Depths\n")
