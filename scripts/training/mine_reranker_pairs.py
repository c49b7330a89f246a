"""Mine questions, their passages and hard negatives to train the reranker.

Natural questions come from open question sets; code gives docstring and function, documentation gives heading and
section. Negatives are what BM25 and the embedder find, and neighbours from the same document. Writes groups.jsonl and a
table of counts; nothing but the weights trained on it is ever given away.
"""

import hashlib
import json
import os
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

import click

from local_rag.errors import ReadError
from local_rag.index.keyword_index import KeywordIndex, keyword_tokens
from local_rag.index.postings import Postings
from local_rag.index.vector_index import VectorIndex, VectorPart
from local_rag.models.embedder import SentenceEmbedder
from local_rag.models.registry import resolve
from local_rag.reading.read import read
from scripts.training.reranker_code import doc_comment_items, python_items

NEGATIVES = 16
_PASSAGE_CHARACTERS = 1000
_EMBEDDED_CHARACTERS = 400
_SHINGLE_WORDS = 10
_VAGUE = {"overview", "usage", "example", "examples", "description", "see also", "introduction", "notes", "options"}


@dataclass(frozen=True, slots=True)
class Item:
    """A passage and the questions it answers; without questions it is only used as a negative.

    `answers` are strings whose presence makes another passage no negative for these questions.
    """

    source: str
    document: str
    title: str
    text: str
    questions: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


def pieces(text: str, size: int = _PASSAGE_CHARACTERS) -> list[str]:
    """Cut a text into pieces of about `size` characters between sentences."""
    found, piece = [], ""
    for sentence in re.split(r"(?<=[.!?])\s+|\n\n+", text):
        if piece and len(piece) + len(sentence) > size:
            found.append(piece)
            piece = ""
        piece = f"{piece} {sentence}".strip()[: 2 * size]
    return [*found, piece] if piece else found


def xquad_items(folder: Path) -> Iterator[Item]:
    """Yield Wikipedia paragraphs with the questions that people asked about them."""
    for article in json.loads(next(folder.glob("*.json")).read_text())["data"]:
        for paragraph in article["paragraphs"]:
            asked = tuple(entry["question"] for entry in paragraph["qas"])
            yield Item("xquad", article["title"], article["title"].replace("_", " "), paragraph["context"], asked)


def covid_items(folder: Path) -> Iterator[Item]:
    """Yield pieces of papers, each with the questions that only it answers."""
    for paper in json.loads(next(folder.glob("*.json")).read_text())["data"]:
        paragraph = paper["paragraphs"][0]
        found = [" ".join(piece.split()) for piece in pieces(paragraph["context"])]
        title = paragraph["context"].split("\n", 1)[0][:150]
        asked: dict[int, list[tuple[str, str]]] = {}
        for entry in paragraph["qas"]:
            answer = " ".join(entry["answers"][0]["text"].split())
            holders = [number for number, piece in enumerate(found) if answer in piece]
            if len(holders) == 1:
                asked.setdefault(holders[0], []).append((entry["question"], answer))
        for number, piece in enumerate(found):
            questions, answers = zip(*asked.get(number, [("", "")]), strict=True)
            yield Item("covid-qa", title, title, piece, questions if number in asked else (), answers)


def pubmed_items(folder: Path) -> Iterator[Item]:
    """Yield abstracts, each with the question that it asks."""
    for key, entry in json.loads((folder / "ori_pqal.json").read_text()).items():
        yield Item("pubmedqa", key, "", " ".join(entry["CONTEXTS"])[:1600], (entry["QUESTION"],))


def clapnq_items(folder: Path) -> Iterator[Item]:
    """Yield Wikipedia passages with the question a search engine was asked."""
    for name in ("answerable", "unanswerable"):
        for line in (folder / f"clapnq_dev_{name}.jsonl").read_text().splitlines():
            entry = json.loads(line)
            passage = entry["passages"][0]
            asked = (entry["input"],) if name == "answerable" else ()
            chosen = [s for output in entry["output"] for s in output.get("selected_sentences", ())]
            start = max(0, passage["text"].find(chosen[0]) - 200) if chosen and asked else 0
            text = passage["text"][start : start + _PASSAGE_CHARACTERS]
            yield Item("clapnq", passage["title"], passage["title"], text, asked)


def scifact_items(folder: Path) -> Iterator[Item]:
    """Yield abstracts with the training claims that they support or refute, without those of the test claims."""

    def pairs(name: str) -> list[list[str]]:
        return [line.split("\t") for line in (folder / "qrels" / name).read_text().splitlines()[1:]]

    tested = {document for _, document, _ in pairs("test.tsv")}
    claims = {e["_id"]: e["text"] for e in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    of_document: dict[str, list[str]] = {}
    for query, document, _ in pairs("train.tsv"):
        of_document.setdefault(document, []).append(claims[query])
    for entry in map(json.loads, (folder / "corpus.jsonl").read_text().splitlines()):
        key = entry["_id"]
        if key not in tested and (key in of_document or int(key) % 3 == 0):
            yield Item("scifact-train", key, entry["title"], entry["text"], tuple(of_document.get(key, ())))


def section_items(path: Path, source: str, chance: random.Random) -> Iterator[Item]:
    """Yield the sections of a document, each with its heading, or a sentence removed from it, as the question."""
    try:
        document = read(path)
    except ReadError:
        return
    text = document.text
    if path.suffix == ".rst":  # a line above a line of punctuation is a heading
        text = re.sub(r"^(\S.*)\n([=\-~^\"'`#*+])\2{2,}\n", r"## \1\n", text, flags=re.MULTILINE)
    for part in re.split(r"^#{1,6} ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        heading = re.sub(r"[`*_#{}]|\[?\]?\(.*?\)", "", heading).strip()
        body = re.sub(r"\n{3,}", "\n\n", body).strip()
        is_stub = len(body) < 120 or len(re.findall("[A-Za-z]", heading)) < 4
        if is_stub or "no longer distributed" in body:  # pages that only say where the book has moved
            continue
        body = body[: _PASSAGE_CHARACTERS + 200].rsplit(" ", 1)[0]
        title = document.title
        vague = heading.lower() in _VAGUE or len(heading) < 8
        question = f"{title} {heading.lower()}" if vague or chance.random() < 0.3 else heading
        sentences = [s for s in re.split(r"(?<=[.!?])\s+", body) if 8 <= len(s.split()) <= 30]
        if len(sentences) > 4 and chance.random() < 0.3:
            question = chance.choice(sentences[1:])
            body = body.replace(question, "")
        yield Item(source, f"{path.parent.name}/{path.name}", title, body, (question,))


def shingles(text: str) -> set[int]:
    """Hash every sequence of ten words."""
    words = re.findall(r"\w+", text.lower())
    return {hash(tuple(words[i : i + _SHINGLE_WORDS])) for i in range(len(words) - _SHINGLE_WORDS + 1)}


def groups(items: list[Item], embedder: SentenceEmbedder | None) -> Iterator[dict[str, object]]:
    """Yield each question with its passage and the negatives from the indexes and the same document."""
    tokens = [keyword_tokens(f"{item.title}\n{item.text}") for item in items]
    keywords = KeywordIndex([(Postings.build(tokens, range(len(items))), None)])
    of_document: dict[str, list[int]] = {}
    for row, item in enumerate(items):
        of_document.setdefault(item.document, []).append(row)
    asked = [(row, question) for row, item in enumerate(items) for question in item.questions]
    dense_lists: list[list[int]] = [[] for _ in asked]
    if embedder:
        vectors = embedder.embed_passages([item.text[:_EMBEDDED_CHARACTERS] for item in items])
        index = VectorIndex([VectorPart(vectors)])
        queries = embedder.embed_passages([question for _, question in asked])
        dense_lists = [[key for key, _ in index.search(query, NEGATIVES)] for query in queries]
    for (row, question), dense in zip(asked, dense_lists, strict=True):
        item = items[row]
        sparse = [key for key, _ in keywords.search(keyword_tokens(question), NEGATIVES)]
        near = [key for key in of_document[item.document] if key != row]
        random.Random(question).shuffle(near)
        both = [key for pair in zip_longest(dense, sparse) for key in pair if key is not None]
        words = set(item.text.split())
        negatives = [
            [items[key].title, items[key].text]
            for key in dict.fromkeys([*both[:6], *near[:5], *both[6:]])
            if question not in items[key].questions
            and not any(answer and answer in items[key].text for answer in item.answers)
            and len(words & set(items[key].text.split())) < 0.8 * len(words)
        ]
        yield {
            "source": item.source,
            "held_out": int(hashlib.sha256(item.document.encode()).hexdigest(), 16) % 100 < 5,
            "question": question,
            "positive": [item.title, item.text],
            "negatives": negatives[:NEGATIVES],
        }


@click.command()
@click.option("--questions", type=click.Path(path_type=Path), required=True, help="xquad-en, covid-qa, pubmedqa ...")
@click.option(
    "--scifact", type=click.Path(path_type=Path), required=True, help="SciFact: its training claims are used."
)
@click.option("--documents", type=click.Path(path_type=Path), multiple=True, help="Folders of Markdown, RST or HTML.")
@click.option(
    "--doc-comments", type=click.Path(path_type=Path), multiple=True, help="C++ headers, rustdoc's src pages."
)
@click.option("--without", type=click.Path(path_type=Path), multiple=True, help="Evaluation texts to exclude.")
@click.option("--output", type=click.Path(path_type=Path), required=True, help="groups.jsonl")
def main(
    questions: Path,
    scifact: Path,
    documents: tuple[Path, ...],
    doc_comments: tuple[Path, ...],
    without: tuple[Path, ...],
    output: Path,
) -> None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # reading HTML imports onnxruntime
    chance = random.Random(0)
    paths = sysconfig.get_paths()
    by_source: dict[str, list[Item]] = {
        "xquad": list(xquad_items(questions / "xquad-en")),
        "covid-qa": list(covid_items(questions / "covid-qa")),
        "pubmedqa": list(pubmed_items(questions / "pubmedqa")),
        "clapnq": list(clapnq_items(questions / "clapnq-dev")),
        "scifact-train": list(scifact_items(scifact)),
    }
    natural = {
        "xquad",
        "covid-qa",
        "pubmedqa",
        "clapnq",
    }  # embedding the others would take as long as training
    for source, name in (("standard library", "stdlib"), ("packages", "purelib")):
        by_source[source] = [Item(source, *found) for found in islice(python_items(Path(paths[name]), chance), 2500)]
    for folder in doc_comments:
        mined = (Item("doc comments", *found) for found in doc_comment_items(folder, chance))
        by_source[f"doc comments of {folder.name}"] = list(islice(mined, 1500))
    for folder in documents:
        files = sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".rst", ".html"})
        chance.shuffle(files)
        mined = (item for path in files for item in section_items(path, "documentation", chance))
        by_source[f"documentation {folder.name}"] = list(islice(mined, 800))
    tested = set().union(*(shingles(path.read_text(errors="replace")) for path in without)) if without else set()
    embedder = SentenceEmbedder(resolve("all-minilm-l6-v2", "embed"))
    counts: dict[str, Counter[str]] = {}
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", encoding="utf-8") as out:
        for source, items in by_source.items():
            clean = [item for item in items if len(shingles(item.text) & tested) < 3]
            count: Counter[str] = Counter(passages=len(clean), dropped=len(items) - len(clean))
            counts[source] = count
            for group in groups(clean, embedder if source in natural else None):
                out.write(json.dumps(group, ensure_ascii=False) + "\n")
                count["held out" if group["held_out"] else "train"] += 1
            click.echo(f"{source}: {dict(count)}", err=True)
    output.with_suffix(".counts.json").write_text(json.dumps(counts, indent=2) + "\n")


if __name__ == "__main__":
    main()
