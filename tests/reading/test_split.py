"""Chunks: in order, complete, within the limit; and cut where a reader would cut."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from local_rag.document_records import Chunk, Chunker, Document, DocumentKind
from local_rag.errors import LocalRagError
from local_rag.reading.markdown import find_headings
from local_rag.reading.read import as_document
from local_rag.reading.split import split
from local_rag.reading.structure import find_definitions

CHUNKERS: tuple[Chunker, ...] = ("auto", "fixed", "recursive", "markdown", "code")


def make_byte_tokenizer() -> Tokenizer:
    """Train a small byte-level BPE tokenizer: nothing is unknown to it, a character may be several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(
        ["the quick brown fox of a chapter is the heading of a list\n\n# and more"] * 5, trainer
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A <s>", special_tokens=[("<s>", 0)])
    return tokenizer


def make_word_tokenizer() -> Tokenizer:
    """Make one token of every word and sign, as short as MiniLM's file has it: cut at 8 tokens, padded to 8."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8, pad_id=1, pad_token="[PAD]")
    return tokenizer


BYTES, WORDS = make_byte_tokenizer(), make_word_tokenizer()


def count(text: str, tokenizer: Tokenizer = WORDS) -> int:
    copy = BYTES if tokenizer is BYTES else Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return len(copy.encode(text, add_special_tokens=False).ids)


def make(text: str, kind: DocumentKind = "markdown", pages: tuple[int, ...] = (), language: str = "python") -> Document:
    headings = find_headings(text) if kind == "markdown" else find_definitions(text, language) if kind == "code" else ()
    return Document(
        path=Path("x"),
        title="x",
        text=text,
        kind=kind,
        language=language if kind == "code" else None,
        headings=headings,
        pages=pages,
        is_source=not pages,
    )


def check(document: Document, chunks: tuple[Chunk, ...], tokenizer: Tokenizer, max_tokens: int, overlap: int) -> None:
    """Check everything that is promised of any chunks of any document."""
    text = document.text
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    end = 0
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip() != ""
        assert count(chunk.text, tokenizer) <= max_tokens or len(chunk.text) == 1
        assert not text[end : max(end, chunk.start)].strip(), "text between two chunks is lost"
        assert chunk.end > end
        end = chunk.end
        if document.pages:
            assert chunk.line is chunk.end_line is None
            pages = [sum(start <= offset for start in document.pages) for offset in (chunk.start, chunk.end - 1)]
            assert pages == [chunk.page or 0] * 2
        else:
            assert chunk.page is None
            assert (chunk.line, chunk.end_line) == tuple(
                text.count("\n", 0, offset) + 1 for offset in (chunk.start, chunk.end - 1)
            )
    assert not text[end:].strip()
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert count(text[after.start : before.end], tokenizer) <= overlap


PIECES = st.sampled_from(
    [
        "# One\n",
        "\n## Two\n\n",
        "Three\n===\n",
        "```\n",
        "- item\n",
        "| a | b |\n|---|---|\n",
        "The fox. ",
        "Is it? ",
        "\n\n",
        " ",
        "class A:\n",
        "    def f(self):\n        return 1\n",
        "\tx = 1\n",
        "# comment\n",
        "}\n",
        "word " * 9,
        "x" * 40,
        "é漢🙂",
        "\x0b\x1f\u2028",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=30).map("".join).map(lambda text: text.replace("\r", "\n"))


@settings(max_examples=250)
@given(
    text=TEXTS,
    kind=st.sampled_from(["markdown", "text", "code"]),
    chunker=st.sampled_from(CHUNKERS),
    tokenizer=st.sampled_from([BYTES, WORDS]),
    limits=st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1))),
    pages=st.lists(st.integers(0, 200), max_size=3),
)
@pytest.mark.slow
def test_chunks_are_in_order_complete_and_within_the_limit(
    text: str, kind: DocumentKind, chunker: Chunker, tokenizer: Tokenizer, limits: tuple[int, int], pages: list[int]
) -> None:
    max_tokens, overlap = limits
    document = make(text, kind, pages=tuple(sorted({page for page in pages if page < len(text)})))
    chunks = split(document, tokenizer=tokenizer, max_tokens=max_tokens, overlap=overlap, chunker=chunker)
    check(document, chunks, tokenizer, max_tokens, overlap)


MANUAL = "intro\n\n# Pump\n\nThe pump pumps.\n\n## Start\n\n{}\n\n## Stop\n\nPress the button.\n".format(
    "Turn the key. " * 12
)


def test_headings_lead_to_the_chunk() -> None:
    chunks = split(make(MANUAL), tokenizer=WORDS, max_tokens=30)
    assert [chunk.headings for chunk in chunks] == [(), ("Pump", "Start"), ("Pump", "Start"), ("Pump", "Stop")]
    assert [chunk.text.split("\n")[0] for chunk in chunks][1::2] == ["## Start", "## Stop"]
    assert [(chunk.line, chunk.end_line) for chunk in chunks] == [(1, 5), (7, 9), (9, 9), (11, 13)]


@pytest.mark.parametrize("size", range(8, 60))
def test_a_heading_never_ends_a_chunk(size: int) -> None:
    section = "# Part {0}\n\n## Section {0}\n\n{1}\n\nTitle {0}\n---\n\n{1}\n\n"
    text = "".join(section.format(number, "Some words in a sentence. " * number) for number in range(1, 9))
    document = make(text)
    chunks = split(document, tokenizer=WORDS, max_tokens=size)
    check(document, chunks, WORDS, size, 0)
    for chunk in chunks:
        assert not re.search(r"(\n|^)(#+ .*|Title \d+\n---)$", chunk.text), chunk.text


def test_lists_and_sentences_stay_whole_where_they_fit() -> None:
    sentences = [f"Sentence number {i} has exactly nine words in it." for i in range(20)]
    for kind in ("markdown", "text"):
        chunks = split(make(" ".join(sentences), kind), tokenizer=WORDS, max_tokens=35)
        assert all(chunk.text.endswith(".") and chunk.text.startswith("Sentence") for chunk in chunks)
        assert len(chunks) == 7
    items = "".join(f"- item {i} of the list\n" for i in range(20))
    assert all(chunk.text.startswith("- item") for chunk in split(make(items), tokenizer=WORDS, max_tokens=25))


@pytest.mark.parametrize("size", range(30, 80, 5))
@pytest.mark.parametrize("item", ["- call extension 4477", "2. call extension 4477", "* call\n  extension 4477"])
def test_a_list_stays_with_the_line_that_introduces_it(size: int, item: str) -> None:
    text = (
        f"{'Some words of a sentence. ' * 9}\n\nDo the following:\n\n{item}\n{item}\n\n{item}\n\n{'And so on. ' * 30}"
    )
    chunks = split(make(text), tokenizer=WORDS, max_tokens=size)
    (chunk,) = [one for one in chunks if "following:" in one.text]
    assert chunk.text.count("4477") == 3


CODE = '''import a
import b


class Pump:
    """A pump."""

    def start(self):
        if self.off:
            self.turn(1, 2, 3, 4, 5)

    # Stops it.
    @safe
    def stop(self):
        self.turn(0)


X = 1


def helper():
    return 2
'''


def test_python_is_cut_between_its_definitions() -> None:
    chunks = split(make(CODE, "code"), tokenizer=WORDS, max_tokens=34)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["import a", "class Pump:", "# Stops it.", "X = 1"]
    assert [chunk.headings for chunk in chunks] == [(), ("class Pump",), ("class Pump", "def stop"), ()]
    small = split(make(CODE, "code"), tokenizer=WORDS, max_tokens=16)
    assert ("class Pump", "def start") in [chunk.headings for chunk in small]


def test_what_follows_a_definition_does_not_stand_below_it() -> None:
    code = "def one():\n    return 1\n\n\nif one():\n    print('two')\n    print('three')\n"
    chunks = split(make(code, "code"), tokenizer=WORDS, max_tokens=10)
    assert {chunk.headings for chunk in chunks if "print" in chunk.text} == {()}


def test_other_code_is_cut_at_blank_lines_of_the_outermost_indentation() -> None:
    code = "package x\n\nfunc A() {\n\ta := 1\n\n\tb := 2\n}\n\n// B.\nfunc B() {\n\tc := 3\n\n\td := 4\n}\n"
    chunks = split(make(code, "code", language="swift"), tokenizer=WORDS, max_tokens=18)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["package x", "// B."]


def test_fixed_windows_are_full_and_overlap_by_what_was_asked() -> None:
    text = " ".join(f"w{i}" for i in range(100))
    chunks = split(make(text, "text"), tokenizer=WORDS, max_tokens=20, chunker="fixed")
    assert [count(chunk.text) for chunk in chunks] == [20] * 5
    chunks = split(make(text, "text"), tokenizer=WORDS, max_tokens=20, overlap=5, chunker="fixed")
    assert [chunk.text.split()[0] for chunk in chunks] == ["w0", "w10", "w25", "w40", "w55", "w70", "w85"]
    assert [count(text[after.start : before.end]) for before, after in pairwise(chunks)] == [5] * 6


def test_overlap_starts_with_a_sentence_and_not_before_a_heading() -> None:
    text = "One two three four. Five six. Seven eight nine ten. Eleven twelve.\n\n# New\n\nThirteen.\n"
    chunks = split(make(text), tokenizer=WORDS, max_tokens=14, overlap=5)
    assert [chunk.text for chunk in chunks] == [
        "One two three four. Five six.",
        "Five six. Seven eight nine ten. Eleven twelve.",
        "# New\n\nThirteen.",
    ]


def test_pages_are_cut_apart() -> None:
    text = "page one\n\npage two\n\n\n\npage four"
    document = make(text, "text", pages=(0, 10, 20, 22))
    chunks = split(document, tokenizer=WORDS, max_tokens=50, overlap=2)
    assert [(chunk.text, chunk.page) for chunk in chunks] == [("page one", 1), ("page two", 2), ("page four", 4)]


def test_the_tokenizer_is_left_as_it_is() -> None:
    before = WORDS.to_str()
    split(make("word " * 100), tokenizer=WORDS, max_tokens=20)
    assert WORDS.to_str() == before
    assert WORDS.truncation is not None


@pytest.mark.parametrize("limits", [(0, 0), (10, 10), (10, -1)])
def test_impossible_sizes_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(LocalRagError, match="cannot overlap"):
        split(make("x"), tokenizer=WORDS, max_tokens=limits[0], overlap=limits[1])


@pytest.mark.parametrize("chunker", CHUNKERS)
@pytest.mark.parametrize(
    "text", ["a" * 200_000, "漢字" * 12_000, ">" * 40_000, "x" + " " * 300_000 + "y", "# h\n" * 10_000]
)
@pytest.mark.slow
def test_endless_text_without_boundaries_is_split_all_the_same(text: str, chunker: Chunker) -> None:
    document = make(text, "text")
    tokenizer = WORDS if text[1] == text[0] else BYTES
    chunks = split(document, tokenizer=tokenizer, max_tokens=200, chunker=chunker)
    check(document, chunks, tokenizer, 200, 0)
    assert max(len(chunk.text) for chunk in chunks) <= 200 * 16


@pytest.mark.parametrize("overlap", range(1, 12))
def test_overlap_holds_although_parts_of_a_text_have_more_tokens(overlap: int) -> None:
    document = make("the quick brown fox is quick and brown and a fox. " * 20, "text")
    chunks = split(document, tokenizer=BYTES, max_tokens=24, overlap=overlap)
    check(document, chunks, BYTES, 24, overlap)


def stored_headings(source: str, name: str) -> int:
    """Count the bytes of headings that are stored with the chunks of a source."""
    chunks = split(as_document(Path(name), source), tokenizer=WORDS, max_tokens=20)
    assert len(chunks) > 20
    return sum(len(json.dumps(chunk.headings, ensure_ascii=False).encode()) for chunk in chunks)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("{long}\n---\n\n{text}", "minutes.md"),
        ("# {long}\n\n{text}", "long.md"),
        ("".join(f"{'#' * level} {{long}}\n\n" for level in range(1, 7)) + "{text}", "deep.md"),
    ],
)
def test_stored_headings_grow_linearly_with_the_text(source: str, name: str) -> None:
    def grown(words: int) -> int:
        filled = source.format(long="word " * words, text="text and more\n\n" * (words // 3))
        return stored_headings(filled, name)

    small, large = grown(600), grown(2400)
    assert large <= 5 * small


def test_a_chunk_knows_the_innermost_headings() -> None:
    deep = "".join(f"{' ' * level}class A{level}:\n" for level in range(60)) + " " * 60 + "x = 1\n"
    (*_, last) = split(as_document(Path("deep.py"), deep), tokenizer=WORDS, max_tokens=8)
    assert last.headings == tuple(f"class A{level}" for level in range(52, 60))
    long = "".join(f"{'#' * level} {str(level) * 190}\n\n" for level in range(1, 7)) + "text " * 40
    (*_, last) = split(as_document(Path("deep.md"), long), tokenizer=WORDS, max_tokens=8)
    assert last.headings == ("4" * 190, "5" * 190, "6" * 190)
