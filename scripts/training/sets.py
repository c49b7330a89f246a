"""Read the question sets that answers and readers are trained on, all into one form.

FOLDER holds one folder for each set, with the files of its authors:

    nq/  clapnq-dev/  squad1-qg-test/  squad2-dev-half/  squadshifts/  xquad-en/  covid-qa/  selqa/  fetaqa/  tatqa/
    dstc9-faq/  multihop-train-100/   public sets
    written/    questions, passages, evidence and answers that were written for this project
    sentences/  short answers of the sets above as sentences; null where the passage does not support the answer

A set that is not there is skipped. `excluded.json` lists what is never trained on: hashes of the questions of
evaluation sets, and the numbers of entries whose passages stand in the documents of these.
"""

import functools
import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.text.sentences import split_sentences
from local_rag.text.tokens import keyword_tokens

NEAR = 12  # passages that share words with a question
_PIECE_WORDS = 130  # of a paper that is cut into passages
_LONGEST_TABLE = 16  # rows
_FAQS = 3000
_EXCLUDED = Path(__file__).with_name("excluded.json")


@dataclass(frozen=True, slots=True)
class Text:
    """A passage below its title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A question and its passages.

    The passages `gold` answer it together, `others` do not, the most similar first. Without gold it cannot be answered.
    `evidence` are the strings of the gold passages that answer. `answer` is empty if none was written, and `brief` if
    it is a few words of a passage instead of a sentence. A follow-up has the question `before` it. Entries of one
    `topic` share passages.
    """

    source: str
    question: str
    gold: tuple[Text, ...] = ()
    others: tuple[Text, ...] = ()
    evidence: tuple[str, ...] = ()
    answer: str = ""
    brief: bool = False
    before: str = ""
    topic: str = ""


Written = Mapping[str, str | None]  # sentences by the id of the question


def normalised(text: str) -> str:
    """Return only the words of a text, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))


@functools.cache
def excluded(kind: str) -> frozenset[Any]:
    """Return what is not trained on: hashes of `questions`, numbers of entries of `nq` and `clapnq`."""
    return frozenset(json.loads(_EXCLUDED.read_text(encoding="utf-8"))[kind])


def is_excluded(question: str) -> bool:
    """Return whether an evaluation set asks a question."""
    return hashlib.sha256(normalised(question).encode()).hexdigest()[:12] in excluded("questions")


def read_sets(folder: Path, say: Callable[[str], None]) -> Iterator[Entry]:
    """Yield the entries of all sets in a folder, and say how many each has, or that it is missing."""
    written: Written = {}
    if (folder / "sentences").is_dir():
        written = {one["id"]: one["answer"] for one in _lines(folder / "sentences" / "sentences.jsonl")}
    for name, read in _SETS.items():
        if not (folder / name).is_dir():
            say(f"{name} is skipped: there is no {folder / name}.")
            continue
        entries = [one for one in read(folder / name, written) if not is_excluded(one.question)]
        say(f"{name}: {len(entries)} questions")
        yield from entries


class Pool:
    """Passages in which those that share words with a question are looked for."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self.texts = texts
        tokens = [keyword_tokens(f"{one.title}\n{one.text}") for one in texts]
        self._keywords = KeywordIndex([(Postings.build(tokens, range(len(texts))), None)])

    def near(self, question: str, own: int, without: Sequence[str] = ()) -> tuple[Text, ...]:
        """Return the passages nearest to a question but its own, and those that contain an answer."""
        found = (key for key, _ in self._keywords.search(keyword_tokens(question), NEAR) if key != own)
        held = [answer.lower() for answer in without if answer]
        return tuple(
            self.texts[key] for key in found if not any(answer in self.texts[key].text.lower() for answer in held)
        )


def markdown(rows: Sequence[Sequence[Any]]) -> str:
    """Write a table as Markdown, its first row as the head."""
    lines = ["| " + " | ".join(" ".join(str(cell).replace("|", "/").split()) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _plain(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text).strip()


def _answered(entry: Entry, key: str, written: Written) -> Iterator[Entry]:
    """Yield an entry with its short answer, and with the sentence written of it; nothing if it has no support."""
    sentence = written.get(key, "")
    if sentence is None:
        return
    yield entry
    if sentence:
        fields = {name: getattr(entry, name) for name in ("question", "gold", "others", "evidence", "topic")}
        yield Entry(f"{entry.source}-sentence", answer=sentence, **fields)


def natural_questions(folder: Path, written: Written) -> Iterator[Entry]:
    """Yield questions that a search engine was asked, with a passage and an accepted answer in it."""
    rows = [(number, row) for number, row in enumerate(_lines(folder / "train.jsonl")) if number not in excluded("nq")]
    pool = Pool([Text(row["title"], _plain(row["passage"])) for _, row in rows])
    for own, (number, row) in enumerate(rows):
        text, flat = pool.texts[own], pool.texts[own].text.lower()
        said = next((one for one in sorted(row["answers"], key=len, reverse=True) if one.lower() in flat), "")
        if said:
            at = flat.find(said.lower())
            answer = text.text[at : at + len(said)]
            others = pool.near(row["question"], own, row["answers"])
            entry = Entry("nq", row["question"], (text,), others, (answer,), answer, brief=True)
            yield from _answered(entry, f"nq-{number}", written)


def clap_nq(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield such questions with answers by people, and with passages in which people found no answer."""
    rows = [row for kind in ("answerable", "unanswerable") for row in _lines(folder / f"clapnq_dev_{kind}.jsonl")]
    passages = [row["passages"][0] for row in rows]
    pool = Pool([Text(one["title"], _untokenized(one["text"])) for one in passages])
    for own, row in enumerate(rows):
        if own in excluded("clapnq"):
            continue
        text, others = pool.texts[own], pool.near(row["input"], own)
        for output in row["output"]:
            answer = _untokenized(output["answer"])
            evidence = tuple(map(_untokenized, output["selected_sentences"]))
            if not answer:
                yield Entry("clapnq-near", row["input"], others=(text, *others))
            elif 3 < len(answer.split()) <= 60:
                yield Entry("clapnq", row["input"], (text,), others, evidence, answer)


def _untokenized(text: str) -> str:
    text = re.sub(r" ([.,;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[]) ", r"\1", text)
    text = re.sub(r"`` ?| ?''", '"', text).replace(" \u2013 ", "\u2013").replace(" - ", "-")
    return re.sub(r" (n't|'s|'re|'ve|'ll|'d|'m)\b", r"\1", text).strip()


def squad(name: str, file: str, *, papers: bool = False) -> Callable[[Path, Written], Iterator[Entry]]:
    """Return what reads a set in the format of SQuAD, with the questions of version 2 that a passage does not answer.

    Contexts that are whole `papers` are cut into passages.
    """

    def read(folder: Path, written: Written) -> Iterator[Entry]:
        texts, asked = list[Text](), list[tuple[range, Any]]()
        for article in _json(folder / file)["data"]:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"].strip()
                title = (article.get("title") or "").replace("_", " ").replace("%E2%80%93", "-")
                pieces = _pieces(context) if papers else [context]
                span = range(len(texts), len(texts) + len(pieces))
                texts += [Text(title or context.split("\n", 1)[0][:110], _plain(piece)) for piece in pieces]
                asked += [(span, one) for one in paragraph["qas"]]
        pool = Pool(texts)
        for span, one in asked:
            question = _plain(one["question"])
            if one.get("is_impossible"):
                yield Entry(f"{name}-near", question, others=(texts[span[0]], *pool.near(question, span[0])))
            elif one["answers"]:
                given = [_plain(answer["text"]).strip(" .,;") for answer in one["answers"]]
                answer = Counter(given).most_common(1)[0][0]
                holders = [number for number in span if answer and answer in texts[number].text]
                if len(holders) == 1 and len(answer.split()) < 20:
                    others = pool.near(question, holders[0], given)
                    entry = Entry(name, question, (texts[holders[0]],), others, (answer,), answer, brief=True)
                    yield from _answered(entry, f"{name}-{one['id']}", written)

    return read


def _pieces(text: str) -> list[str]:
    """Cut a text between sentences into pieces of some 130 words."""
    found, piece = list[str](), ""
    for sentence in split_sentences(text):
        piece += sentence
        if len(piece.split()) >= _PIECE_WORDS:
            found.append(piece)
            piece = ""
    return [*found, piece] if piece.strip() else found


def selqa(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield questions with a section of Wikipedia and the sentences in it that answer."""
    rows = [row for part in ("dev", "test") for row in _json(folder / f"selqa-ass-{part}.json")]
    pool = Pool([Text(f"{row['article']} > {row['section']}", " ".join(row["candidates"])) for row in rows])
    for own, row in enumerate(rows):
        evidence = tuple(row["candidates"][number] for number in row["answers"])
        others = pool.near(row["question"], own, evidence)
        yield Entry("selqa", row["question"], (pool.texts[own],), others, evidence)


def fetaqa(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield questions about tables of Wikipedia with answers in sentences, and the rows that they stand on."""
    rows = [row for part in ("dev", "test") for row in _lines(folder / f"fetaQA-v1_{part}.jsonl")]
    rows = [row for row in rows if 3 < len(row["table_array"]) <= _LONGEST_TABLE]
    titles = [f"{row['table_page_title']} > {row['table_section_title']}" for row in rows]
    pool = Pool([Text(title, markdown(row["table_array"])) for title, row in zip(titles, rows, strict=True)])
    for own, row in enumerate(rows):
        lines = pool.texts[own].text.split("\n")
        marked = sorted({number for number, _ in row["highlighted_cell_ids"] if number > 0})
        if marked and 3 < len(row["answer"].split()) < 45:
            evidence = tuple(lines[number + 1] for number in marked)
            others = tuple(
                text
                for text in pool.near(row["question"], own)
                if text.title.split(" > ")[0] != row["table_page_title"]
            )
            yield Entry("fetaqa", row["question"], (pool.texts[own],), others, evidence, row["answer"])


def tatqa(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield questions about a table of a financial report and its notes that are answered by reading, not computing."""
    title = "Notes to the financial statements"
    for part in ("dev", "test_gold"):
        for report in _json(folder / f"tatqa_dataset_{part}.json"):
            rows = report["table"]["table"]
            notes = {str(one["order"]): Text(title, _plain(one["text"])) for one in report["paragraphs"]}
            for one in report["questions"] if len(rows) <= _LONGEST_TABLE else ():
                if one["answer_type"] not in {"span", "multi-span"}:
                    continue
                spans = one["answer"] if isinstance(one["answer"], list) else [one["answer"]]
                used = {str(number) for number in one.get("rel_paragraphs") or ()}
                table = (Text(title, markdown(rows)),) if "table" in one["answer_from"] else ()
                gold = table + tuple(text for number, text in notes.items() if number in used)
                others = tuple(text for number, text in notes.items() if number not in used)
                answer = ", ".join(map(str, spans))
                if gold and answer and len(answer.split()) <= 40:
                    yield Entry("tatqa", one["question"], gold, others, tuple(map(str, spans)), answer, brief=True)


def faqs(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield questions about one place beside the same question about others: the title says which one is meant."""
    chance = random.Random(3)
    flat, alike, own = list[tuple[str, str, str]](), defaultdict(list), defaultdict(list)
    for places in _json(folder / "knowledge.json").values():
        for place in places.values():
            name = place.get("name") or ""
            name = name.title() if name.isupper() else name
            for one in place["docs"].values() if name else ():
                found = (name, one["title"], one["body"])
                flat.append(found)
                alike[normalised(one["title"])[:40]].append(found)
                own[name].append(found)
    for name, asked, answer in chance.sample(flat, min(_FAQS, len(flat))):
        if not 4 < len(answer.split()) < 45:
            continue
        named = name.lower()[:8] in asked.lower()
        question = asked if named else f"{asked.rstrip('? ')} at {name}?"
        same = [one for one in alike[normalised(asked)[:40]] if one[0] != name]
        rest = [one for one in own[name] if one[1] != asked]
        near = [*chance.sample(same, min(4, len(same))), *chance.sample(rest, min(3, len(rest)))]
        chance.shuffle(near)
        others = tuple(Text(f"{place} > {title}", body) for place, title, body in near)
        if chance.random() < 0.3 and others:
            yield Entry("faq-near", question, others=others)
        else:
            yield Entry("faq", question, (Text(f"{name} > {asked}", answer),), others, (answer,), answer)


def multihop(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield questions that two or more passages answer only together."""
    for row in _json(folder / "hotpotqa_train.json"):
        used = {title for title, _ in row["supporting_facts"]}
        texts = [(title in used, Text(title, " ".join(parts))) for title, parts in row["context"]]
        yield _together(row, texts)
    for row in _json(folder / "musique_train.json"):
        yield _together(
            row, [(one["is_supporting"], Text(one["title"], one["paragraph_text"])) for one in row["paragraphs"]]
        )


def _together(row: Mapping[str, Any], texts: Sequence[tuple[bool, Text]]) -> Entry:
    gold, others = (tuple(text for is_gold, text in texts if is_gold == wanted) for wanted in (True, False))
    evidence = tuple(text.text for text in gold)
    return Entry("multihop", row["question"], gold, others, evidence, row["answer"], brief=True)


def written_entries(folder: Path, _written: Written) -> Iterator[Entry]:
    """Yield what was written for this project: near misses, look-alikes, compound questions, follow-ups and more."""
    for path in sorted(folder.glob("*.jsonl")):
        for row in _lines(path):
            titles = [" > ".join(filter(None, (one["title"], one.get("heading")))) for one in row["passages"]]
            texts = [Text(title, one["text"].strip()) for title, one in zip(titles, row["passages"], strict=True)]
            gold = tuple(texts[number] for number in row["gold"])
            others = tuple(text for number, text in enumerate(texts) if number not in row["gold"])
            rest = {"before": row.get("before") or "", "topic": row["passages"][(row["gold"] or [0])[0]]["title"]}
            if row["answerable"]:
                evidence, answer = tuple(row["evidence"]), row["answer"].strip()
                yield Entry(path.stem, row["question"], gold, others, evidence, answer, **rest)
            else:
                yield Entry(f"{path.stem}-near", row["question"], others=others, **rest)


_SETS: Mapping[str, Callable[[Path, Written], Iterator[Entry]]] = {
    "nq": natural_questions,
    "clapnq-dev": clap_nq,
    "squad1-qg-test": squad("squad1", "test-v1.1.json"),
    "squad2-dev-half": squad("squad2", "dev-v2.0.json"),
    "squadshifts": squad("newwiki", "new_wiki_v1.0.json"),
    "xquad-en": squad("xquad", "xquad.en.json"),
    "covid-qa": squad("covid", "200423_covidQA.json", papers=True),
    "selqa": selqa,
    "fetaqa": fetaqa,
    "tatqa": tatqa,
    "dstc9-faq": faqs,
    "multihop-train-100": multihop,
    "written": written_entries,
}
