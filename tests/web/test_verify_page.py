"""The page that checks a text marks what differs on both sides, and nothing of a text or document is markup."""

from pathlib import Path

import pytest

from tests.support import served
from tests.web.test_pages import HOSTILE, assert_tame


@pytest.fixture
def fees(tmp_path: Path) -> Path:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "fees.md").write_text(f"# Fees\n\nThe harbour fee {HOSTILE} is EUR 1,200 a year.\n")
    served.index(documents, tmp_path / "lib")
    return tmp_path / "lib"


def test_a_text_is_checked_and_saved(fees: Path) -> None:
    text = "Who pays?\r\n\r\nThe harbour fee is EUR 1,300 a year."
    with served.client(fees) as client:
        assert "Check a text" in client.get("/verify").text
        page = client.post("/verify", data={"text": text}).text
        assert 'The harbour fee is <mark class="best">EUR 1,300</mark> a year.' in page
        assert '<mark class="best">EUR 1,200</mark>' in page
        assert 'href="/document/1?from=' in page
        assert "2 statements: 1 contradicted, 1 no claim." in page
        told = client.post("/verify", json={"text": text}, headers={"accept": "application/json"}).json()
        assert [one["verdict"] for one in told["statements"]] == ["no claim", "contradicted"]
        assert told["statements"][1]["quotes"][0]["path"] == "documents/fees.md"
        word = client.post("/verify", data={"text": text, "format": "word"})
        assert word.content.startswith(b"PK")
        assert word.headers["content-disposition"] == 'attachment; filename="checked.docx"'
        assert "[^check-1]" in client.post("/verify", data={"text": text, "format": "markdown"}).text
        assert client.post("/verify", data={"text": " "}).status_code == 400


def test_nothing_of_a_text_or_document_is_markup(fees: Path) -> None:
    with served.client(fees) as client:
        assert_tame(client.post("/verify", data={"text": f"The harbour fee {HOSTILE} is EUR 1,300 a year."}).text)


def test_what_is_struck_out_looks_so_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "fees.md").write_text("# Fees\n\nThe harbour fee is ~~EUR 900~~ EUR 1,200 a year.\n")
    served.index(tmp_path / "documents", tmp_path / "lib")
    with served.client(tmp_path / "lib") as client:
        page = client.post("/verify", data={"text": "The ~~old~~ harbour fee is EUR 1,300 a year."}).text
    statements = page.partition('<ol class="verdicts">')[2]
    assert "The <s>old</s> harbour fee" in statements
    assert "The harbour fee is <s>EUR 900</s> " in statements
    assert "~~" not in statements
