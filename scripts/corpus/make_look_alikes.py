"""Generate the look-alike set: documents of the same form that say only once what they are about.

    .venv/bin/python scripts/corpus/make_look_alikes.py

Each family in look_alikes/ is a form: an agreement, a manual, a report. Its documents share headings, titles
and most of their wording, which varies slightly, and differ in their values. File names say nothing. So a chunk looks
like the same chunk of the other documents, while the questions name a site, product or year. Four of the seven families
name it in the opening, one in the middle, one in a table and one in the signatures at the end. A writer of contexts
that only copies the beginning of a document therefore does badly.

The output in corpus/look-alikes/ has the same bytes every time: the two files of a dataset
(local_rag/evaluation/dataset.py), and `facts.jsonl` with the sentence that a perfect writer would put before every
chunk of a document, `{"document", "context"}`, generated from the same facts as the document.
"""

import json
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.evaluation.dataset import write_dataset

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("look_alikes")
TARGET = ROOT / "corpus" / "look-alikes"
QUESTIONS = 2  # per document

FIRST_NAMES = """Abel Agnes Alma Anton Barnaby Beatrix Bram Celia Clement Cora Dorcas Edwin Elspeth Enid Ezra Felix
Flora Gideon
Greta Hector Hester Ines Ivor Jonas Judith Kester Lena Linus Mabel Magnus Maud Nadia Nestor Odile Oscar Petra
Quentin Rhoda Rufus Selma Silas Tabitha Tobias Ursula Viola Walter Wilma Xenia Yorick Zelda""".split()  # noqa: SIM905
LAST_NAMES = """Abbotsley Aldridge Ballantrae Bexwell Carrow Coldham Dancey Denholm Edgecote Elverson Fairlie Fenwright
Garrick Gosforth Haddow Hallamore Inskip Jessop Kellaway Kirkbride Lackford Lovelock Marchbank Mossop Nettlefold Norcott
Oldacre Orme Pargeter Penhallow Quillam Rackstraw Redfern Sandringham Stallard Tarrant Thirlwell Underhay Varley Vickers
Wadlow Winterbourne Yardley Yelland""".split()  # noqa: SIM905

_CHOICE = re.compile(r"\{([^{}|]*(?:\|[^{}|]*)+)\}")
_SLOT = re.compile(r"<(\w+)>")
_SENTENCE_START = re.compile(r"(?:^|(?<=[.!?] ))<\w+>", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?]) |\n+")


@dataclass(frozen=True)
class LookAlike:
    """A document, and the sentence that contains each of its values."""

    family: Mapping[str, Any]
    values: Mapping[str, str]
    text: str
    sentences: Mapping[str, str]

    @property
    def context(self) -> str:
        """Return the sentence that a perfect writer would put before each chunk."""
        return fill(self.family["context"], self.values)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values into their slots, capitalized at the beginning of a sentence."""
    text = _SENTENCE_START.sub(lambda slot: _capital(values[slot[0][1:-1]]), text)
    return _SLOT.sub(lambda slot: values[slot[1]], text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def make_family(path: Path) -> list[LookAlike]:
    """Generate the documents of a family."""
    family = tomllib.loads(path.read_text(encoding="utf-8"))
    chance = random.Random(path.stem)  # noqa: S311  the same set every time
    drawn = {slot: _draw(source, len(family["documents"]), chance) for slot, source in family["values"].items()}
    documents = []
    for number, document in enumerate(family["documents"]):
        values = {slot: values[number] for slot, values in drawn.items()} | document
        documents.append(_write(family, values, chance))
    return documents


def _draw(source: Any, count: int, chance: random.Random) -> list[str]:
    """Draw a value for each document, without repetition if there are enough."""
    if source == "person":
        names = zip(chance.sample(FIRST_NAMES, count), chance.sample(LAST_NAMES, count), strict=True)
        return [" ".join(name) for name in names]
    if isinstance(source, dict):
        numbers = range(source["from"], source["to"] + 1, source.get("step", 1))
        source = [source["form"].format(number) for number in numbers]
    return chance.sample(source, count) if len(source) >= count else chance.choices(source, k=count)


def _write(family: Mapping[str, Any], values: Mapping[str, str], chance: random.Random) -> LookAlike:
    """Write a document: its title, then its sections in order, each under its number."""
    parts = [f"# {family['title']}"]
    sentences: dict[str, str] = {}
    for number, section in enumerate(family["sections"]):
        if "heading" in section:
            parts.append(f"## {number}. {section['heading']}")
        worded = _CHOICE.sub(lambda choice: chance.choice(choice[1].split("|")), section["text"].strip())
        for sentence in _SENTENCE_END.split(worded):
            sentences |= {slot: fill(sentence, values) for slot in _SLOT.findall(sentence)}
        parts.append(fill(worded, values))
    return LookAlike(family, values, "\n\n".join(parts) + "\n", sentences)


def ask(number: int, document: LookAlike) -> Iterator[tuple[str, str]]:
    """Yield questions with the sentences that answer them, for the facts of a family in turn."""
    facts: Sequence[Mapping[str, Any]] = document.family["facts"]
    for turn in range(QUESTIONS * number, QUESTIONS * (number + 1)):
        fact = facts[turn % len(facts)]
        worded = fact["questions"][(number + turn + turn // len(facts)) % len(fact["questions"])]
        yield fill(worded, document.values), document.sentences[fact["slot"]]


def make() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, str]]]:
    """Return the records of documents, questions and facts."""
    families = [make_family(path) for path in sorted(SOURCE.glob("*.toml"))]
    numbers = iter(random.Random("scans").sample(range(1000, 10000), sum(map(len, families))))  # noqa: S311
    documents, questions, facts = [], [], []
    for family in families:
        for number, document in enumerate(family):
            name = f"scan-{next(numbers)}.md"
            documents.append({"id": name, "title": document.family["title"], "text": document.text})
            facts.append({"document": name, "context": document.context})
            for question, sentence in ask(number, document):
                if document.text.count(sentence) != 1:
                    raise ValueError(
                        f"{sentence!r} is in {name} {document.text.count(sentence)} times instead of once."
                    )
                start = document.text.index(sentence)
                span = {"document": name, "start": start, "end": start + len(sentence)}
                questions.append({"question": question, "golden": [span]})
    documents.sort(key=lambda record: record["id"])
    facts.sort(key=lambda record: record["document"])
    return documents, questions, facts


def main() -> None:
    """Write the set."""
    documents, questions, facts = make()
    write_dataset(TARGET, documents, questions)
    lines = (json.dumps(fact, ensure_ascii=False) + "\n" for fact in facts)
    (TARGET / "facts.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    print(f"{TARGET.relative_to(ROOT)}: {len(documents)} documents, {len(questions)} questions")


if __name__ == "__main__":
    main()
