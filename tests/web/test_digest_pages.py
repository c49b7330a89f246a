"""The pages of changes and briefs: quotations beside each other, which lead to their documents, and never markup."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.digests.texts import OLD, newer
from tests.support import served
from tests.web.test_pages import HOSTILE, assert_tame


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "agreement-2023.md").write_text(OLD)
    (documents / "agreement-2024.md").write_text(newer())
    (documents / "odd.md").write_text(f"# Odd\n\nIt must be {HOSTILE} by 3 May 2025, for EUR 50.\n")
    served.index(documents, tmp_path / "lib")
    return tmp_path / "lib"


def test_changes_stand_side_by_side_with_their_places(contracts: Path) -> None:
    with served.client(contracts) as client:
        assert "Compare" in client.get("/diff").text
        asked = {"before": "agreement-2023.md", "after": "agreement-2024.md"}
        page = client.get("/diff", params=asked).text
        assert "notice period: three months -&gt; six months" in page
        assert 'The notice period is <mark class="best">three</mark> months.' in page
        assert page.count('href="/document/') > 10
        told = client.get("/diff", params=asked, headers={"accept": "application/json"}).json()
        assert told["counts"]["moved"] == 1
        assert told["before"] == "documents/agreement-2023.md"
        saved = client.get("/diff", params={**asked, "format": "markdown"})
        assert saved.headers["content-disposition"] == 'attachment; filename="changes.md"'
        assert "**notice period: three months -> six months**" in saved.text
        newest = client.get("/diff", params={"before": "agreement-2024.md"}).text
        assert "notice period" in newest
        missing = client.get("/diff", params={"before": "/etc/passwd", "after": "agreement-2024.md"})
        assert (missing.status_code, "is no document" in missing.text) == (404, True)


def test_what_was_struck_out_looks_so_and_differs(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    for name, fee in (("old", "EUR 900"), ("new", "~~EUR 900~~ EUR 1,200")):
        text = f"# Fees of the harbour\n\nThe fee of a berth is {fee} a year.\n"
        (tmp_path / "documents" / f"{name}.md").write_text(text)
    served.index(tmp_path / "documents", tmp_path / "lib")
    with served.client(tmp_path / "lib") as client:
        page = client.get("/diff", params={"before": "old.md", "after": "new.md"}).text
    assert 'is EUR <mark class="best">900</mark> a year.' in page
    assert '<mark class="best"><s>EUR 900</s></mark>' in page
    assert 'EUR <mark class="best">1,200</mark> a year.' in page
    assert "~~" not in page.partition("<tbody>")[2]


def test_a_brief_shows_quotations_that_lead_to_their_documents(contracts: Path) -> None:
    with served.client(contracts) as client:
        assert "Sum up" in client.get("/brief").text
        page = client.get("/brief", params={"document": "agreement-2023.md", "lines": "5"}).text
        assert "<q>The monthly fee is EUR 4,500.</q>" in page
        assert "<h2>Obligations and deadlines</h2>" in page
        told = client.get("/brief", params={"in": "**", "format": "json"}).json()
        assert len(told["documents"]) == 3
        assert client.get("/brief", params={"document": "x", "lines": "9999"}).status_code == 400
        assert client.get("/brief", params={"document": "nothing"}).status_code == 404
        saved = client.get("/brief", params={"document": "agreement-2023.md", "format": "markdown"}).text
        assert saved.startswith("# Brief")


def test_documents_are_chosen_from_a_tree_and_not_typed(contracts: Path) -> None:
    with served.client(contracts) as client:
        for address in ("/diff", "/brief", "/tables", "/questions"):
            page = client.get(address).text
            assert f'href="/sources?{urlencode({"conversation": "", "back": address})}"'.replace("&", "&amp;") in page
            assert "<datalist" not in page
        tree = client.get("/sources?back=/diff").text
        assert 'action="/diff" id="choice"' in tree
        places = re.findall(r'name="source" value="([^"]*agreement[^"]*)"', tree)
        page = client.get("/diff", params=[("source", one) for one in reversed(places)]).text
        assert "notice period: three months -&gt; six months" in page, (
            "the first one by name is compared with the other"
        )
        assert "Swap" in page
        assert "More than two" in client.get("/diff?source=a&source=b&source=c").text
        assert "The monthly fee is EUR 4,500." in client.get("/brief", params={"source": places[0]}).text
        assert 'action="/" id="choice"' in client.get("/sources?back=https://example.org/").text


def test_nothing_of_a_document_or_a_name_is_markup(contracts: Path) -> None:
    with served.client(contracts) as client:
        for address, asked in (
            ("/brief", {"document": "odd.md"}),
            ("/brief", {"document": HOSTILE, "in": HOSTILE}),
            ("/diff", {"before": "odd.md", "after": "agreement-2023.md"}),
            ("/diff", {"before": HOSTILE, "after": HOSTILE}),
        ):
            assert_tame(client.get(address, params=asked).text)
