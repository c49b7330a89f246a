"""Filters: which documents pass, and that what is found is what an exhaustive search would find among them."""

import os
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.asking import Filters
from local_rag.document_records import Chunk, Document, Provenance
from local_rag.index.generations import Generations
from local_rag.index.protocol import AllowedDocuments
from local_rag.model_records import InstalledModel
from local_rag.passage_records import DocumentFacts
from local_rag.retrieval.filters import DocumentsByPath, Filtering, document_filter
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import Searcher, reciprocal_rank_fusion
from local_rag.settings import resolve_settings
from local_rag.store.database import Store
from tests.fakes import FakeEmbedder, contents_of

EMBEDDER = FakeEmbedder(InstalledModel(name="e", role="embed", path=Path("e"), identity="e", context_length=256))
WORDS = ("tide", "wind", "boat", "harbour", "mail", "island")
ROOTS = (Path("/docs"), Path("/docs/policies/old"), Path("/notes/alone.md"))
PATHS = (
    "/docs/a.md",
    "/docs/policies/leave.pdf",
    "/docs/policies/deep/travel.md",
    "/docs/policies/old/leave.PDF",
    "/docs/policies/!odd [1].txt",
    "/notes/alone.md",
)


def places(*within: str) -> list[str]:
    passes = document_filter(Filters(within=within), ROOTS)
    return [path for path in PATHS if passes(DocumentFacts(1, path, 0, "", ()))]


@pytest.mark.parametrize(
    ("within", "found"),
    [
        ("policies/**", PATHS[1:5]),
        ("policies", PATHS[1:5]),
        ("policies/", PATHS[1:5]),
        ("./policies", PATHS[1:5]),
        ("policies/*", (PATHS[1], PATHS[4])),
        ("policies/deep/tr*.md", (PATHS[2],)),
        ("policies/deep/travel.md ", (PATHS[2],)),
        ("**/deep/*", (PATHS[2],)),
        ("leave.*", (PATHS[1], PATHS[3])),
        ("*.md", (PATHS[0], PATHS[2], PATHS[5])),
        ("/docs/policies/deep", (PATHS[2],)),
        ("/docs/*.md", (PATHS[0],)),
        ("/docs/**/*.md", (PATHS[0], PATHS[2])),
        ("/docs/policies/!odd [1].txt", (PATHS[4],)),
        ("!odd*", (PATHS[4],)),
        ("alone.md", (PATHS[5],)),
        ("docs/policies", PATHS[1:5]),
        ("docs/policies/*", (PATHS[1], PATHS[4])),
        ("docs", PATHS[:5]),
        ("policies/old/leave.PDF", (PATHS[3],)),
        ("policies/leave.pdf page 3", (PATHS[1],)),
        ("policies/leave.pdf page iv (4 in the file)", (PATHS[1],)),
        ("policies/leave.pdf page 3, read by OCR, 97 % sure", (PATHS[1],)),
        ("/docs/a.md:12", (PATHS[0],)),
        ("!odd [1].txt", (PATHS[4],)),
        ("policies/!odd [1].txt", (PATHS[4],)),
        ("policies/!odd [[]1].txt", (PATHS[4],)),
        ("nowhere", ()),
        ("", ()),
    ],
)
def test_places(within: str, found: tuple[str, ...]) -> None:
    assert places(within) == list(found)
    assert places(within, "/docs/a.md") == [path for path in PATHS if path in {*found, "/docs/a.md"}], "any of them"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "within", ["[2024] Übergrößen", "docs/[2024] Übergrößen", "/docs/[2024] Übergrößen", "**/*größen*/*"]
)
def test_a_folder_is_named_as_it_is_in_any_form_of_its_letters(form: Literal["NFC", "NFD"], within: str) -> None:
    path, wanted = unicodedata.normalize(form, "/docs/[2024] Übergrößen/a.md"), unicodedata.normalize("NFC", within)
    facts = [DocumentFacts(1, path, 0, "", ()), DocumentFacts(2, "/docs/2/a.md", 0, "", ())]
    for pattern in (wanted, unicodedata.normalize("NFD", wanted)):
        assert DocumentsByPath(facts).passing(Filters(within=(pattern,)), ROOTS) == facts[:1]


def test_what_a_person_may_see_is_not_widened_by_the_name_of_a_root() -> None:
    passes = document_filter(Filters(within=("docs/policies", "notes", "a.md:12")), ROOTS, are_limits=True)
    assert not any(passes(DocumentFacts(number, path, 0, "", ())) for number, path in enumerate(PATHS))


def test_types_dates_and_tags() -> None:
    time_of_file = 1_714_521_600_000_000_000 + 43_200_000_000_000  # noon of 1 May 2024, in any zone's day or so

    def passes(filters: Filters, *, day: str = "2023-03-04", tags: tuple[str, ...] = ("Policy", "Leave")) -> bool:
        return document_filter(filters, ROOTS)(DocumentFacts(1, "/docs/a.PDF", time_of_file, day, tags))

    assert passes(Filters(types=("pdf",)))
    assert passes(Filters(types=("md", ".pdf")))
    assert not passes(Filters(types=("md", "df")))
    assert passes(Filters(tags=("policy", "leave")))
    assert not passes(Filters(tags=("policy", "travel"))), "all of them"
    assert passes(Filters(since=date(2023, 3, 4), before=date(2023, 3, 5)))
    assert not passes(Filters(before=date(2023, 3, 4)))
    assert not passes(Filters(since=date(2023, 3, 5)))
    assert passes(Filters(since=date(2024, 4, 1), before=date(2024, 6, 1)), day=""), "the file's, where it has none"


NAMES = st.sampled_from(["a", "b", "a.md", "b.PDF", "a b", "!a", "[a]", "é"])
BELOW = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PATTERNS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "/", "./", "/docs/", "/docs/a/", "**/", "!"]),
        BELOW | st.sampled_from(["*", "a*", "a/*", "**/b", "a/**", "?", "\\a", "[ab]/a"]),
        st.sampled_from(["", "", "/", " "]),
    ),
)
DAYS = st.none() | st.dates(date(2024, 3, 1), date(2024, 4, 30))


@given(
    st.lists(st.tuples(BELOW, st.sampled_from(["", "2024-03-31"]), st.integers(0, 60)), max_size=12),
    st.lists(PATTERNS, max_size=3).map(tuple),
    DAYS,
    DAYS,
)
def test_documents_by_path_pass_as_one_by_one(
    documents: list[tuple[str, str, int]],
    within: tuple[str, ...],
    since: date | None,
    before: date | None,
) -> None:
    roots = (Path("/docs"), Path("/docs/a/a.md"), Path("/notes"), Path("/"))
    facts = [
        DocumentFacts(number, f"/docs/{path}", (1_709_251_200 + days * 86_400) * 10**9, day, ())
        for number, (path, day, days) in enumerate(documents)
    ]
    filters = Filters(within=within, since=since, before=before)
    for some in (roots[:3], roots[1:2], roots):
        passes = document_filter(filters, some)
        found = DocumentsByPath(facts).passing(filters, some)
        assert sorted(one.id for one in found) == [one.id for one in facts if passes(one)]


def test_filters_that_ask_for_nothing_are_none() -> None:
    assert not Filters()
    assert all((Filters(within=("a",)), Filters(types=("a",)), Filters(tags=("a",)), Filters(since=date(2024, 1, 1))))


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    """Thirty documents of one to four chunks, in three folders, with dates and tags, published."""
    folder = tmp_path_factory.mktemp("library")
    random = np.random.default_rng(3)
    with closing(Store(folder, create=True)) as store:
        store.add_roots([Path("/docs")])
        for number in range(30):
            said = Provenance(date=f"2024-{number % 12 + 1:02}-01", tags=("even",) if number % 2 == 0 else ())
            texts = [" ".join(random.choice(WORDS, 4)) for _ in range(number % 4 + 1)]
            chunks = [Chunk(place, 0, len(text), text) for place, text in enumerate(texts)]
            path = Path(f"/docs/{'abc'[number % 3]}/{number}.{'md' if number % 5 else 'txt'}")
            document = Document(path, "", texts[0], "text", provenance=said)
            store.put_document(document, chunks, size=1, modified_ns=0, sha256="s", split_key="k")
        stored = list(store.chunks())
        vectors = EMBEDDER.embed_passages([one.chunk.text for one in stored])
        rows = contents_of(
            [s.id for s in stored], [s.document_id for s in stored], vectors, [s.chunk.text for s in stored]
        )
        generations = Generations(folder)
        generations.publish(rows, {})
        live = generations.live()
        assert live is not None
        live.open()
        yield Searcher(live, store, resolve_settings(folder, pool=7), EMBEDDER, None)


FILTERS = st.builds(
    Filters,
    within=st.lists(st.sampled_from(["a/**", "b", "c/1*.md", "/docs/a", "nowhere"]), max_size=2).map(tuple),
    types=st.sampled_from([(), ("md",), ("txt", "md"), ("pdf",)]),
    since=st.none() | st.sampled_from([date(2024, 3, 1), date(2024, 3, 2), date(2024, 9, 1)]),
    before=st.none() | st.sampled_from([date(2024, 6, 1), date(2024, 12, 31)]),
    tags=st.sampled_from([(), ("even",), ("even", "odd")]),
)


@settings(deadline=None, max_examples=150)
@given(FILTERS, st.lists(st.sampled_from([*WORDS, "zebra"]), min_size=1, max_size=4), st.integers(1, 12))
@pytest.mark.slow
def test_what_is_found_is_an_exhaustive_ranking_filtered(
    searcher: Searcher, filters: Filters, words: list[str], top: int
) -> None:
    question, pool = " ".join(words), max(7, top)
    store, all_chunks = cast(Store, searcher._store), len(searcher.index.chunk_ids())
    passes = document_filter(filters, store.roots())
    passing = {
        one.id
        for one in store.chunks()
        if passes(DocumentFacts(0, one.path, 0, one.provenance.date, one.provenance.tags))
    }
    exhaustive = searcher.trace(Question(question), top=all_chunks).rankings
    wanted = {name: [chunk for chunk in exhaustive[name] if chunk in passing][:pool] for name in ("dense", "keyword")}
    found = searcher.trace(Question(question), top=top, filters=filters)
    assert {name: found.rankings[name] for name in wanted} == wanted
    fused = reciprocal_rank_fusion(wanted, k=10, weights={"dense": 0.7})
    assert [passage.chunk_id for passage in found.passages] == [chunk for chunk, _ in fused[:top]]
    assert {passage.chunk_id for passage in found.passages} <= passing


def test_what_passes_is_found_out_again_once_somebody_writes(tmp_path: Path) -> None:
    def put(store: Store, name: str) -> None:
        document = Document(Path("/docs") / name, "", "text", "text")
        store.put_document(document, [Chunk(0, 0, 4, "text")], size=1, modified_ns=0, sha256="s", split_key="k")

    with closing(Store(tmp_path, create=True)) as writer, closing(Store(tmp_path)) as reader:
        put(writer, "a.md")
        filtering, markdown = Filtering(reader), Filters(types=("md",))
        assert filtering.allowed(Filters()) is None
        first = filtering.allowed(markdown)
        assert isinstance(first, AllowedDocuments)
        assert list(first) == [1]
        assert filtering.allowed(markdown) is first, "remembered"
        put(writer, "b.md")
        assert filtering.allowed(markdown) is first, "no published index holds the new document"
        assert filtering.allowed(Filters(types=("txt",))) is not first
        assert filtering.allowed(markdown) is first, "remembered, too"
        writer.move_paths(Path("/docs/a.md"), Path("/docs/a.txt"))
        again = filtering.allowed(markdown)
        assert isinstance(again, AllowedDocuments)
        assert list(again) == [2]


def test_the_zone_of_the_machine_decides_the_day_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    os.utime(path, (0, 0))
    day = date.fromtimestamp(path.stat().st_mtime)
    facts = DocumentFacts(1, "/docs/a", path.stat().st_mtime_ns, "", ())
    assert document_filter(Filters(since=day), ROOTS)(facts)
    assert not document_filter(Filters(before=day), ROOTS)(facts)


def test_a_tag_is_also_that_of_the_tags_within_it() -> None:
    def passes(tag: str) -> bool:
        return document_filter(Filters(tags=(tag,)), ())(DocumentFacts(1, "/a.md", 0, "", ("Harbour/Crane", "of=a/b")))

    assert [passes(tag) for tag in ("harbour", "harbour/crane", "crane", "of=a", "of=a/b")] == [
        True,
        True,
        False,
        False,
        True,
    ]
