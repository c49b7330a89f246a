"""Mine examples to train the reader: a question, passages, which of them answer it, and where.

Sources and negatives are those of mine_reranker_pairs, with Natural Questions. An example also says which characters of
the right passage answer; a question with one value changed, which its passage no longer answers, makes another example.
Questions and golden passages of the evaluation sets are left out. Writes examples.jsonl and a table of counts.
"""

import csv
import json
import os
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import click

from local_rag.models.embedder import SentenceEmbedder
from local_rag.models.registry import resolve
from scripts.training.mine_reranker_pairs import Item, clapnq_items, covid_items, groups, pubmed_items, xquad_items
from scripts.training.reranker_code import python_items

NEGATIVES = 8
_CODE = 700
_YEARS = range(1801, 2026)
_CHARACTERS = 1100
_OF_VALUES = re.compile(r"\b\d[\d.,]*\b|(?<=[a-z,] )[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")

Span = tuple[int, int]
Example = dict[str, Any]


def normalised(text: str) -> str:
    """Return only the words of a text, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))


def sentences(text: str) -> list[Span]:
    """Return where the sentences of a text begin and end."""
    ends = [match.end() for match in re.finditer(r"[.!?][\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9`])|\n+", text)]
    bounds = [0, *ends, len(text)]
    return [(first, last) for first, last in pairwise(bounds) if text[first:last].strip()]


def spans_of(text: str, answers: Iterable[str]) -> list[Span]:
    """Return the sentences that contain an answer or lie in one."""
    flat, found = text.lower(), set()
    for answer in answers:
        for match in re.finditer(re.escape(answer.lower()), flat) if answer.strip() else ():
            word = answer[0].isalnum() and flat[max(0, match.start() - 1) : match.start()].isalnum()
            if not word:
                found |= {(a, b) for a, b in sentences(text) if a < match.end() and match.start() < b}
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Values:
    """What a value of a question can be changed into: other names and numbers of the same source."""

    names: Sequence[str]

    def changed(self, question: str, title: str, chance: random.Random) -> str | None:
        """Return the question with one year, number, name, or its title, changed; None if it has none."""
        places = [match.span() for match in _OF_VALUES.finditer(question)]
        subject = re.sub(r"\s*\(.*\)", "", title).lower()
        if not places and len(subject) > 3 and (start := question.lower().find(subject)) >= 0:
            places = [(start, start + len(subject))]
        if not places:
            return None
        start, end = chance.choice(places)
        value = question[start:end]
        other = self._other(value, chance)
        return question[:start] + (other.lower() if value.islower() else other) + question[end:]

    def _other(self, value: str, chance: random.Random) -> str:
        digits = value.strip(".,")
        if digits.isdigit():
            near = [year for year in _YEARS if 0 < abs(year - int(digits)) <= 30]
            is_year = int(digits) in _YEARS
            return value.replace(digits, str(chance.choice(near) if is_year else int(digits) + chance.randint(1, 9)))
        if value[0].isdigit():
            return re.sub(r"\d", lambda _: str(chance.randint(1, 9)), value, count=2)
        others = [name for name in self.names if name.lower() not in value.lower()]
        return chance.choice(others)


def nq_items(folder: Path) -> Iterator[Item]:
    """Yield Wikipedia passages with a question that a search engine was asked, and every accepted answer."""
    for entry in map(json.loads, (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()):
        yield Item(
            "nq", entry["title"], entry["title"], entry["passage"], (entry["question"],), tuple(entry["answers"])
        )


def scifact_items(folder: Path) -> Iterator[tuple[Item, dict[str, list[str]]]]:
    """Yield abstracts of training claims that no test claim uses, with the sentences that are evidence for each."""

    def lines(name: str) -> list[Any]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    tested = {row.split("\t")[1] for row in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]}
    tested |= {entry["doc_id"] for entry in lines("evidence_test.jsonl")}
    claims = {entry["_id"]: entry["text"] for entry in lines("queries.jsonl")}
    proof: dict[str, dict[str, set[int]]] = {}
    for entry in lines("evidence_train.jsonl"):
        proof.setdefault(entry["doc_id"], {}).setdefault(claims[entry["query_id"]], set()).update(entry["sentences"])
    for entry in lines("corpus.jsonl"):
        key, text = entry["_id"], entry["text"]
        if key in proof and key not in tested:
            found = sentences(text)
            chosen = {
                claim: [text[slice(*found[number])] for number in numbers if number < len(found)]
                for claim, numbers in proof[key].items()
            }
            yield Item("scifact-train", key, entry["title"], text, tuple(chosen)), chosen


def answers_of(questions: Path) -> dict[tuple[str, str], list[str]]:
    """Return what answers a question, by source and question: spans of people, or the sentences that they chose."""
    found: dict[tuple[str, str], list[str]] = {}
    for source, name in (("xquad", "xquad-en"), ("covid-qa", "covid-qa")):
        for article in json.loads(next((questions / name).glob("*.json")).read_text(encoding="utf-8"))["data"]:
            for entry in (entry for paragraph in article["paragraphs"] for entry in paragraph["qas"]):
                texts = [" ".join(answer["text"].split()) for answer in entry["answers"]]
                found.setdefault((source, entry["question"]), []).extend(texts)
    for line in (questions / "clapnq-dev" / "clapnq_dev_answerable.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        found["clapnq", entry["input"]] = [one for output in entry["output"] for one in output["selected_sentences"]]
    for item in nq_items(questions / "nq"):
        found["nq", item.questions[0]] = list(item.answers)
    return found


def unanswerable(folder: Path) -> Iterator[Example]:
    """Yield questions with the passage of the right article in which people found no answer."""
    for line in (folder / "clapnq_dev_unanswerable.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        text = entry["passages"][0]
        yield {
            "source": "clapnq",
            "question": entry["input"],
            "passages": [passage(text["title"], text["text"][:_CHARACTERS], None, 0, [])],
        }


def passage(title: str, text: str, relevant: int | None, answers: int | None, spans: list[Span] | None) -> Example:
    """Return a passage with its labels; None is not known, and not trained on."""
    return {"title": title, "text": text, "relevant": relevant, "answers": answers, "spans": spans}


def examples(
    items: list[Item], embedder: SentenceEmbedder | None, answers: dict[tuple[str, str], list[str]]
) -> Iterator[Example]:
    """Yield each question with its passage and negatives, and, if it has one, with a value changed."""
    chance = random.Random(len(items))
    names = [m[0] for item in items for question in item.questions for m in _OF_VALUES.finditer(question)]
    names = [name for name in names if not name[0].isdigit()]
    values = Values(names + [re.sub(r"\s*\(.*\)", "", item.title) for item in items if item.title])
    group: Any
    for group in groups(items, embedder):
        source, question, (title, text) = group["source"], group["question"], group["positive"]
        known = answers.get((source, question))
        spans = spans_of(text, known) if known else None
        negatives = [passage(other[0], other[1], 0, 0, []) for other in group["negatives"][:NEGATIVES]]
        marked = group["held_out"]
        if known is None or spans:  # a cut may have removed the answer
            answered = None if source == "pubmedqa" else 1
            right = passage(title, text, 1, answered, spans or None)
            yield {"source": source, "held_out": marked, "question": question, "passages": [right, *negatives]}
            other_question = values.changed(question, title, chance) if answered else None
            if other_question and source in {"nq", "xquad", "clapnq", "covid-qa"}:
                wrong = passage(title, text, None, 0, [])
                yield {
                    "source": f"{source}-changed",
                    "held_out": marked,
                    "question": other_question,
                    "passages": [wrong],
                }


def evaluation_texts(folder: Path) -> tuple[set[str], set[str]]:
    """Return the normalised questions of all evaluation sets, and their golden passages, if these are ready-made."""
    asked, golden = set(), set()
    for name in ("nq", "mtrag-un"):
        documents = {}
        for line in (folder / name / "documents.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            documents[entry["id"]] = normalised(entry["text"])
        for line in (folder / name / "questions.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            asked.add(normalised(entry["question"]))
            golden |= {documents[one] for one in entry["golden"] if one in documents}
    for line in (folder / "codebases" / "evaluation_set.jsonl").read_text(encoding="utf-8").splitlines():
        asked.add(normalised(json.loads(line)["query"]))
    for source in json.loads((folder / "codebases" / "codebase_chunks.json").read_text(encoding="utf-8")):
        golden |= {normalised(chunk["content"]) for chunk in source["chunks"]}
    scifact = folder / "scifact"
    tested = [row.split("\t") for row in (scifact / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    for name, column, texts in (("queries.jsonl", 0, asked), ("corpus.jsonl", 1, golden)):
        used = {row[column] for row in tested}
        entries = map(json.loads, (scifact / name).read_text(encoding="utf-8").splitlines())
        texts |= {normalised(entry["text"]) for entry in entries if entry["_id"] in used}
    with (folder / "chunking-evaluation" / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        asked |= {normalised(row["question"]) for row in csv.DictReader(file)}
    for path in (folder / "chunking-evaluation").glob("*.md"):
        text = normalised(path.read_text(encoding="utf-8"))
        golden.add(text)  # searched as a whole below
    return asked, golden


@click.command()
@click.option("--questions", type=click.Path(path_type=Path), required=True, help="nq, xquad-en, covid-qa ...")
@click.option("--evaluation", type=click.Path(path_type=Path), required=True, help="Sets to leave out; has scifact.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="examples.jsonl")
def main(questions: Path, evaluation: Path, output: Path) -> None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    chance = random.Random(0)
    answers = answers_of(questions)
    science = list(scifact_items(evaluation / "scifact"))
    answers |= {("scifact-train", claim): chosen for _, one in science for claim, chosen in one.items() if chosen}
    paths = sysconfig.get_paths()
    code = [
        Item("code", *found)
        for name in ("stdlib", "purelib")
        for found in islice(python_items(Path(paths[name]), chance), _CODE)
    ]
    pools: list[list[Item]] = [
        [*nq_items(questions / "nq"), *xquad_items(questions / "xquad-en"), *clapnq_items(questions / "clapnq-dev")],
        list(covid_items(questions / "covid-qa")),
        list(pubmed_items(questions / "pubmedqa")),
        [item for item, _ in science],
        code,
    ]
    asked, golden = evaluation_texts(evaluation)
    long = [text for text in golden if len(text) > 20_000]  # whole documents

    def is_tested(text: str) -> bool:
        flat = normalised(text)
        return flat in golden or (len(flat) > 100 and any(flat in one for one in long))

    embedder = SentenceEmbedder(resolve("all-minilm-l6-v2", "embed"))
    counts: dict[str, Counter[str]] = {}
    written = [dict(one, held_out=hash_of(one["question"])) for one in unanswerable(questions / "clapnq-dev")]
    for items in pools:
        clean = [item for item in items if not is_tested(item.text)]
        counts.setdefault(items[0].source, Counter())["dropped passages"] += len(items) - len(clean)
        written += examples(clean, embedder if items is not code else None, answers)
        click.echo(f"{items[0].source}: {len(clean)} passages of {len(items)}", err=True)
    kept = [one for one in written if normalised(one["question"]) not in asked]
    kept = [one for one in kept if not any(is_tested(text["text"]) for text in one["passages"])]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in kept), encoding="utf-8")
    for one in kept:
        counts.setdefault(one["source"], Counter())["held out" if one["held_out"] else "train"] += 1
        counts[one["source"]]["with sentences"] += bool(one["passages"][0]["spans"])
    counts["all"] = Counter({"dropped examples": len(written) - len(kept)})
    output.with_suffix(".counts.json").write_text(json.dumps(counts, indent=2) + "\n")
    click.echo(json.dumps(counts, indent=1))


def hash_of(question: str) -> bool:
    """Return whether a question belongs to the held-out part."""
    return random.Random(question).random() < 0.05


if __name__ == "__main__":
    main()
