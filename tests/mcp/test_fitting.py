"""What a tool gives has an end."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel
from tokenizers import Tokenizer

from local_rag.mcp.token_budget import MAX_SEARCH, cost, count_tokens, cut, fit_list, fit_passages, fit_text
from local_rag.mcp.tool_results import FindResults, FoundDocument, FoundPassage
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.models.registry import resolve

CORPUS = Path(__file__).parents[2] / "corpus"


class Page(BaseModel):
    text: str


def test_no_fewer_tokens_are_counted_than_a_model_reads() -> None:
    tokenizer = Tokenizer.from_file(str(resolve("all-minilm-l6-v2", "embed").path / TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = [path.read_text() for path in sorted(CORPUS.rglob("*.md"))[:20]]
    assert len(texts) > 3
    for text in texts:
        assert count_tokens(text) >= len(tokenizer.encode(text, add_special_tokens=False).ids)


@given(some.text(max_size=400), some.integers(0, 200))
def test_what_is_cut_is_a_beginning_of_at_most_so_many_tokens(text: str, tokens: int) -> None:
    part = cut(text, tokens)
    assert text.startswith(part)
    assert count_tokens(part) <= tokens


@given(some.text(some.characters(exclude_categories=["Cs"]), min_size=1, max_size=600), some.integers(20, 100))
def test_pages_make_up_the_text(text: str, most: int) -> None:
    pages, rest = [], text
    while rest:
        page = fit_text(rest, lambda part: Page(text=part), most)
        assert page
        assert len(page) == 1 or cost(Page(text=page)) <= most
        assert rest.startswith(page)
        pages.append(page)
        rest = rest[len(page) :]
    assert "".join(pages) == text


def passage(text: str, title: str = "Title") -> FoundPassage:
    return FoundPassage(
        id="passage-1", document="document-1", title=title, headings=[], location="/a:1", text=text, ranks={}
    )


@given(some.lists(some.integers(1, 3000), max_size=12))
def test_passages_stay_within_the_tokens_best_first(lengths: list[int]) -> None:
    found = [passage("word " * length) for length in lengths]
    results = fit_passages(found, "ready", None)
    assert cost(results) <= MAX_SEARCH
    assert len(results.results) + results.left_out == len(found)
    assert bool(results.results) == bool(found)
    for given_one, kept in zip(found, results.results, strict=False):
        assert kept.text == given_one.text or (kept.cut and given_one.text.startswith(kept.text))


def test_of_many_documents_as_many_are_listed_as_fit() -> None:
    one = FoundDocument(path="/documents/a.md", line=1, text="word " * 50, occurrences=1)
    whole = FindResults(kind="count", rule="contain it", count=500, documents=[one] * 500, complete=True)
    fitted = fit_list(whole, "documents")
    assert cost(fitted) <= MAX_SEARCH
    assert 5 < len(fitted.documents) == 500 - fitted.left_out
    assert fitted.count == 500
