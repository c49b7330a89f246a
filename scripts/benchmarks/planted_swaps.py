"""Plant wrong numbers and names in right answers, and count how many the check of answers flags.

    python -m scripts.benchmarks planted_swaps corpus/questions.jsonl --json swaps.json

A line of the dataset has `question`, `answer` and `golden`. `golden` has the ids of passages in `documents.jsonl` in
the same folder. In a dataset without documents it names a file in that folder, and the chunk that contains `passage` is
shown. Each sentence is checked against the units of the passages that it stands on, as `ask` does. A number is replaced
with another number of the same unit, or else of the same shape; a name with another name of as many words. Both come
from the passages of all questions. A sentence that stands on no unit, and so is not given, counts as flagged. What is
swapped is not found with local_rag's own rules, so what those rules overlook counts as missed. Each unchanged answer is
checked too. A hash of the question's words splits the questions in halves: one to choose rules on, one to report.
"""

import argparse
import hashlib
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.answering.attribution import Attribution, Attributor
from local_rag.answering.selection import whole_sources
from local_rag.models.registry import resolve
from local_rag.passage_records import Passage
from local_rag.reading.read import read
from local_rag.reading.split import Splitting
from local_rag.text.sentences import split_sentences

# Not the numbers of list items.
_NUMBER = re.compile(r"(?!\d+\. [A-Z])(?<![\w.,:/-])(?!0\d)\d+(?:[.,]\d+)*(?![\w:/-])")
_UNIT = re.compile(r"[ -]?(%|[a-zA-Z°]+)")
_NAME = re.compile(r"(?<![.!?:\n|#*\"] )(?<=[a-z,] )[A-Z][\w-]+(?: [A-Z][\w-]+){0,2}")
_ANSWER_NAME = re.compile(r"\b[A-Z][\w-]*[a-z0-9](?: [A-Z][\w-]+){0,2}")
_OTHERS = 4
_FEWEST = 3  # candidates with the same unit, or else the shape decides


@dataclass(frozen=True, slots=True)
class Case:
    """An answer, and the passages that the model was shown."""

    question: str
    answer: str
    passages: tuple[Passage, ...]
    kind: str


def half_of(question: str) -> str:
    """Return the half that a question belongs to."""
    words = " ".join(re.findall(r"\w+", question.lower()))
    return "choose" if hashlib.sha256(words.encode()).digest()[0] % 2 else "report"


def load_cases(path: Path) -> list[Case]:
    """Return the answerable questions of a dataset with their answers."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    documents = path.parent / "documents.jsonl"
    if not documents.exists():
        # Questions that a single passage answers.
        plain = [line for line in lines if isinstance(line.get("passage"), str)]
        return [case for line in plain for case in _corpus_cases(line, path.parent)]
    texts = [json.loads(line) for line in documents.read_text(encoding="utf-8").splitlines()]
    by_id = {text["id"]: passage(text["id"], text["title"], text["text"], key=key) for key, text in enumerate(texts)}
    wanted = [line for line in lines if line["golden"] and line.get("answerability") == "answerable"]
    return [_golden_case(line, by_id) for line in wanted]


def passage(path: str, title: str, text: str, headings: tuple[str, ...] = (), *, key: int = 0) -> Passage:
    """Return a passage without a search."""
    return Passage(key, path, title, text, "", "", headings, None, None, None, 0.0)


def _golden_case(line: dict[str, Any], by_id: dict[str, Passage]) -> Case:
    """Return a reference answer with its golden passages; other passages are shown too."""
    golden = [by_id[name] for name in line["golden"]]
    others = random.Random(line["question"]).sample(sorted(by_id), _OTHERS)  # noqa: S311
    read = (*golden, *(by_id[name] for name in others))
    return Case(line["question"], line["answer"].strip(), read, "reference")


def _corpus_cases(line: dict[str, Any], folder: Path) -> Iterator[Case]:
    """Show the chunk with the passage, for the short answer and for the passage as an answer."""
    name = re.sub(r":\d+(?:-\d+)?\Z", "", line["golden"][0])
    document = read(folder / name)
    tokenizer = resolve("minilm-l6-reader", "rerank").path / "tokenizer.json"
    chunks = Splitting(tokenizer, 254).split(document)
    read_too = [passage(name, document.title, chunk.text, chunk.headings, key=key) for key, chunk in enumerate(chunks)]
    squeezed = "".join(line["passage"].split())
    golden = next((one for one in read_too if squeezed in "".join(one.text.split())), None)
    if golden is None:
        return
    read_too = [golden, *(one for one in read_too if one is not golden)][: _OTHERS + 1]
    yield Case(line["question"], f"{line['answer']}.", tuple(read_too), "short")
    quoted = " ".join(line["passage"].strip("| ").replace("|", ",").split())
    yield Case(line["question"], quoted, tuple(read_too), "quoted")


def pools(cases: Sequence[Case]) -> tuple[dict[str, list[str]], dict[int, list[str]]]:
    """Return the numbers of all passages by kind and the names by their count of words."""
    numbers, names = dict[str, set[str]](), dict[int, set[str]]()
    texts = {one.text for case in cases for one in case.passages}
    plain = {word for text in texts for word in re.findall(r"(?<![\w-])[a-z]\w*", text)}
    for text in texts:
        for match in _NUMBER.finditer(text):
            for kind in number_kinds(match):
                numbers.setdefault(kind, set()).add(match[0])
        for match in _NAME.finditer(text):
            if not plain & set(match[0].lower().split()):
                names.setdefault(len(match[0].split()), set()).add(match[0])
    return {kind: sorted(found) for kind, found in numbers.items()}, {n: sorted(found) for n, found in names.items()}


def number_kinds(match: re.Match[str]) -> list[str]:
    """Return the kinds of a number: its shape with its unit, then its shape alone."""
    unit = _UNIT.match(match.string, match.end())
    shape = "year" if re.fullmatch(r"(?:19|20)\d\d", match[0]) else re.sub(r"\d+", "9", match[0])
    return [f"{shape} {unit[1].lower().rstrip('s')}", shape] if unit else [shape]


def swaps(case: Case, numbers: dict[str, list[str]], names: dict[int, list[str]]) -> list[tuple[str, str, str]]:
    """Return for each number and name of an answer the old text, the new text and the wrong answer."""
    found = []
    chance = random.Random(case.answer)  # noqa: S311
    body = case.answer
    for match in [*_NUMBER.finditer(body), *_ANSWER_NAME.finditer(body)]:
        if re.search(r"(?:^|\n)\s*\Z", body[: match.start()]) and body[match.end() : match.end() + 2] == ". ":
            continue  # the number of a list item
        if match[0][0].isdigit():
            of_kind = [_others(numbers.get(kind, []), match[0]) for kind in number_kinds(match)]
            choices = next((some for some in of_kind if len(some) >= _FEWEST), [])
        else:
            size = len(match[0].split())
            choices = _others(names[size], match[0]) if match[0] in names.get(size, []) else []
        if choices:
            other = chance.choice(choices)
            found.append((match[0], other, f"{body[: match.start()]}{other}{body[match.end() :]}"))
    return found


def _others(choices: Sequence[str], one: str) -> list[str]:
    return [choice for choice in choices if choice.lower() != one.lower()]


def measure(cases: Sequence[Case], count: int, seed: int) -> dict[str, Any]:
    """Check every answer unchanged, and with `count` swaps planted."""
    numbers, names = pools(cases)
    chance = random.Random(seed)  # noqa: S311
    right = [(case, unsupported(case, case.answer)) for case in cases]
    found = [(case, *swap) for case in cases for swap in swaps(case, numbers, names)]
    rows = [
        {
            "question": case.question,
            "kind": "number" if old[0].isdigit() else "name",
            "old": old,
            "new": new,
            "answer": answer,
            "flagged": not given(case, answer),
            "also_read": any(re.search(rf"(?<!\w){re.escape(new)}(?!\w)", one.text) for one in case.passages),
        }
        for case, old, new, answer in chance.sample(found, min(count, len(found)))
    ]
    missed = [row for row in rows if not row["flagged"]]
    flagged = [
        {"question": case.question, "answer": case.answer, "missing": missing} for case, missing in right if missing
    ]
    return {
        "answers": len(right),
        "answers_flagged": len(flagged),
        "swaps": len(rows),
        "swaps_flagged": len(rows) - len(missed),
        "swaps_of_names": sum(row["kind"] == "name" for row in rows),
        "missed_names": sum(row["kind"] == "name" for row in missed),
        "missed_though_not_read": sum(not row["also_read"] for row in missed),
        "flagged": flagged,
        "missed": missed,
    }


def unsupported(case: Case, answer: str) -> list[str]:
    """Return the numbers and names that the units of an answer lack."""
    return [word for sentence in _attributed(case, answer) for word in sentence.missing]


def given(case: Case, answer: str) -> bool:
    """Return whether `ask` would give an answer without a remark: each sentence stands on units that lack nothing."""
    return all(one.is_supported and not one.missing for one in _attributed(case, answer))


def _attributed(case: Case, answer: str) -> list[Attribution]:
    attributor = Attributor(case.question, whole_sources(case.question, [case.passages]))
    return [attributor.attribute(sentence.strip()) for sentence in split_sentences(answer)]


def main() -> None:
    """Measure both halves and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, nargs="+")
    parser.add_argument("--swaps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("choose", "report"), action="append", help="measure only this half")
    parser.add_argument("--json", type=Path, help="file for the report")
    arguments = parser.parse_args()
    report = {}
    for dataset in arguments.dataset:
        cases = load_cases(dataset)
        for kind in sorted({case.kind for case in cases}):
            for half in arguments.half or ("choose", "report"):
                chosen = [case for case in cases if case.kind == kind and half_of(case.question) == half]
                report[f"{dataset.parent.name} {kind} {half}"] = measure(chosen, arguments.swaps, arguments.seed)
    for name, part in report.items():
        print(name, json.dumps({key: value for key, value in part.items() if key not in {"flagged", "missed"}}))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
