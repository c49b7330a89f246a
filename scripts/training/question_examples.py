"""Build the examples that the reader of questions is trained on: questions with what each asks for.

`PLANS` are files of questions with their plans, one JSON object a line: `question`, `kind`, and the slots of a plan, as
they stand in the question. Other questions teach what is common: those to passages from sets of questions and answers,
and those to rows from sheets and from WikiTableQuestions.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from local_rag.plan_records import KINDS, MATCHES, OPERATIONS
from local_rag.understanding.question_reader import SLOTS

_CHANCE = 7
_PUBLIC = {  # how many questions of each set that asks for passages
    "nq": 250,
    "policyqa": 150,
    "dstc9": 150,
    "selqa": 120,
    "own-words": 450,
    "written": 1_100,
}
_TABLE_QUESTIONS = 450
_ANSWER_TYPES = {
    "number": "number",
    "when": "date",
    "date": "date",
    "who": "name",
    "yesno": "yes_no",
    "yes-no": "yes_no",
    "howto": "how",
    "how-to": "how",
    "why": "",
    "define": "",
    "definition": "",
    "compare": "",
    "comparison": "",
    "list": "",
}
_WORD = re.compile(r"\w+")
_JOINING = frozenset({"and", "und", "et", "y", "e", "en", "also", "plus"})
_JOINTS = ("? ", "? And ", " and ", ", and ", "? Also, ", "; ")
_BEFORE = ("hi, ", "Hello! ", "please ", "quick question: ", "ok so ", "hey, ", "Sorry, ", "one more thing: ")
_AFTER = (" please", " thanks", " ?", " pls", " thx", ", thank you", "!", " ...")
# The plainest wordings, one a line, behind kind, operation and match, with "not" if negated; their slots get names of
# written plans.
_PLAIN = """
documents list words:
Which {sort} mention {subject}?
Which documents mention {subject}?
In which {sort} does {subject} appear?
List all {sort} that contain {subject}
In which files is {subject} named?
Show me every {sort} that names {subject}
Give me a list of all documents with the word {subject}
Which {sort} refer to {subject}?
documents list words not:
Which {sort} do not mention {subject}?
Which documents don't contain {subject}?
Which of the {sort} never mention {subject}?
documents list about:
Which {sort} are about {subject}?
Which documents deal with {subject}?
Find all {sort} on {subject}
What {sort} do we have on {subject}?
List every document that discusses {subject}
Show me everything we have on {subject}
documents count words:
How many {sort} mention {subject}?
How many documents contain {subject}?
Count the {sort} that mention {subject}
In how many {sort} does {subject} occur?
number of {sort} naming {subject}
documents count words not:
How many {sort} do not mention {subject}?
documents count about:
How many {sort} are about {subject}?
How many documents deal with {subject}?
Number of {sort} concerning {subject}
documents count:
How many {sort} do we have?
How many {sort} are there?
documents list:
List all {sort}
Show me all the {sort}
list every {sort}
documents occurrences words:
How often is {subject} mentioned?
How many times does {subject} occur in the {sort}?
List every mention of {subject}
Find all references to {subject} in the {sort}
How often do the {sort} mention {subject}?
Count the occurrences of {subject}
every {subject} in the {sort}
changes:
What changed in {documents}?
What changed between {documents} and {documents}?
Compare {documents} with {documents}
Show me the differences between {documents} and {documents}
what is new in {documents}
How do {documents} and {documents} differ?
What has changed from {documents} to {documents}?
brief:
Summarise {documents}
Give me a summary of {documents}
What is {documents} about?
Tell me about {documents}
Sum up {documents}.
Overview of {documents}, please
Summarise this document
What are these documents about?
What is in this folder?
sum everything up
passages:
What is the difference between one and the other?
What changes when I move?
Who is affected by the changes?
Where is it written down?
Which document describes the valve?
What does the report say about the roof?
Which form do I need?
List the steps to do it
How many documents do I have to bring?
Can you help me with my laptop?
Why?
When?
Who?
Where?
How long?
How many?
Which one?
What is it?
And in winter?
What about Norway?
and then?
and who signs?
is it allowed?
is that still so?
boat
crane
lighthouse
parental leave
opening hours
notice period
E-4711
zebra
hotel limit
the lease
"""
_PLAIN_OF_EACH = 8


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its labels; None for one that is not known. `spans` are slot, start and end of what is tagged."""

    question: str
    kind: str
    answer_type: str | None = None
    operation: str | None = None
    match: str | None = None
    negated: bool | None = None
    spans: tuple[tuple[str, int, int], ...] | None = None
    weight: float = 1.0
    language: str = "en"


def example_of(plan: dict[str, Any]) -> Example:
    """Return a written plan as an example."""
    question, documents = plan["question"], plan["kind"] == "documents"
    spans = list[tuple[str, int, int]]()
    known = True
    for slot in SLOTS:
        given = plan.get(slot) or []
        at = 0
        for text in [given] if isinstance(given, str) else given:
            start = question.find(text, at)
            start = question.find(text) if start < 0 else start
            if start >= 0 and not any(start < b and a < start + len(text) for _, a, b in spans):
                spans.append((slot, start, start + len(text)))
                at = start + len(text)
    if parts := plan.get("parts"):
        cuts = cuts_of(question, parts)
        known = bool(cuts)
        spans += [("cut", a, b) for a, b in cuts if not any(a < d and c < b for _, c, d in spans)]
    return Example(
        question,
        plan["kind"],
        "" if plan.get("answer_type") == "other" else plan.get("answer_type"),
        plan["operation"] if documents else None,
        plan.get("match") if documents else None,
        bool(plan.get("negated")) if documents else None,
        tuple(spans) if known else None,
        language=plan.get("language", "en"),
    )


def cuts_of(question: str, parts: Sequence[str]) -> list[tuple[int, int]]:
    """Return what stands between the parts of a question, which are rewritten to stand alone; none if that is unsure.

    Each part is laid on the stretch of the question with which it has the most words in common.
    """
    words = [(found.start(), found.end(), found[0].lower()) for found in _WORD.finditer(question)]
    bags = [{word.lower() for word in _WORD.findall(part)} for part in parts]
    gains = [[1.0 if word in bag else -0.35 for _, _, word in words] for bag in bags]
    # The best borders, by dynamic programming; a border after a comma, a question mark or "and" is a little better.
    size = len(words)
    border = [
        0.4 * bool(re.search(r"[,;?.!]", question[words[at - 1][1] : words[at][0]])) if 0 < at < size else 0.0
        for at in range(size + 1)
    ]
    best = [[float("-inf")] * (size + 1) for _ in parts]
    origin = [[0] * (size + 1) for _ in parts]
    for number, gain in enumerate(gains):
        sums = [0.0, *accumulate(gain)]
        for end in range(1, size + 1):
            for start in range(0 if number == 0 else 1, end):
                before = 0.0 if number == 0 else best[number - 1][start] + border[start]
                if number == 0 and start:
                    continue
                if (found := before + sums[end] - sums[start]) > best[number][end]:
                    best[number][end], origin[number][end] = found, start
    ends, at = list[int](), size
    for number in range(len(parts) - 1, 0, -1):
        at = origin[number][at]
        ends.append(at)
    cuts = list[tuple[int, int]]()
    for at in reversed(ends):
        if not 0 < at < size:
            return []
        after = next((number for number in range(at, size) if words[number][2] not in _JOINING), size)
        start, end = words[at - 1][1], words[after][0] if after < size else len(question)
        between = question[start:end]
        if not between.strip():
            if words[at - 1][2] not in _JOINING:
                return []
            start, end, between = *words[at - 1][:2], words[at - 1][2]
        cuts.append((end - len(between.lstrip()), start + len(between.rstrip())))
    return cuts


def passages_of(folder: Path, chance: random.Random) -> Iterator[Example]:
    """Yield questions that passages answer, of public sets and of those written for this project."""

    def some(name: str, found: Sequence[Example]) -> list[Example]:
        return chance.sample(list(found), min(len(found), _PUBLIC[name]))

    def plain(questions: Sequence[str], weight: float = 0.5) -> list[Example]:
        return [Example(one, "passages", spans=(), weight=weight) for one in dict.fromkeys(questions)]

    yield from some("nq", plain([one["question"] for one in _lines(folder / "nq/train.jsonl")]))
    policies = json.loads((folder / "policyqa/dev.json").read_text())["data"]
    yield from some(
        "policyqa",
        plain([qa["question"] for one in policies for part in one["paragraphs"] for qa in part["qas"]]),
    )
    known = json.loads((folder / "dstc9-faq/knowledge.json").read_text())
    yield from some(
        "dstc9",
        plain([doc["title"] for kind in known.values() for one in kind.values() for doc in one["docs"].values()]),
    )
    yield from some(
        "selqa", plain([one["question"] for one in json.loads((folder / "selqa/selqa-ass-dev.json").read_text())])
    )
    yield from some("own-words", plain([one["question"] for one in _lines(folder / "own-words/questions.jsonl")], 0.7))
    written, joined = list[Example](), list[Example]()
    for path in sorted((folder / "written").glob("*.jsonl")):
        before = ""
        for one in _lines(path):
            kind = _ANSWER_TYPES.get(one["kind"])
            whole = one.get("form") != "compound"
            made = Example(one["question"], "passages", kind, spans=() if whole else None, weight=0.7)
            written.append(replace(made, language=one.get("question_language", one.get("language", "en"))))
            if before and whole and made.language == "en":
                joined.append(_joined(before, made.question, chance))
            before = made.question if whole else ""
    yield from some("written", written)
    yield from chance.sample(joined, 260)


def _joined(one: str, other: str, chance: random.Random) -> Example:
    """Return two questions as one."""
    first, joint = one.rstrip(" ?.!"), chance.choice(_JOINTS)
    second = other if joint.startswith("? ") and len(joint) == 2 else other[:1].lower() + other[1:]
    start = len(first) + (1 if joint.startswith(" ") else 0)
    end = start + len(joint.strip())
    return Example(f"{first}{joint}{second}", "passages", spans=(("cut", start, end),), weight=0.5)


def rows_of(folder: Path, more: Sequence[Path], chance: random.Random) -> Iterator[Example]:
    """Yield questions that rows answer."""
    for path in [folder / "sheets/questions.jsonl", *more]:
        yield from (Example(one["question"], "rows", spans=()) for one in _lines(path))
    asked = (folder / "wikitablequestions/training.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for line in chance.sample(asked, _TABLE_QUESTIONS):
        yield Example(line.split("\t")[1], "rows", spans=(), weight=0.35)


def varied(example: Example, pool: dict[tuple[str, str], list[str]], chance: random.Random) -> Example:
    """Return an example as somebody else may type it: other names in its slots, other case, a typing mistake."""
    text, spans = example.question, list(example.spans or ())
    if spans and chance.random() < 0.3:
        text, spans = _renamed(text, spans, example, pool, chance)
    if chance.random() < 0.08 and example.kind != "chat":
        begin = chance.choice(_BEFORE)
        text = begin + text[:1].lower() + text[1:]
        spans = [(slot, a + len(begin), b + len(begin)) for slot, a, b in spans]
    if chance.random() < 0.25 and text[-1:] in "?.!" and not any(b == len(text) for _, _, b in spans):
        text = text[:-1].rstrip()
    if chance.random() < 0.08 and example.kind != "chat":
        text += chance.choice(_AFTER)
    if chance.random() < 0.2:
        text = text.lower() if len(text.lower()) == len(text) else text
    for _ in range(chance.choice((0, 0, 0, 0, 1, 1, 2))):
        text, spans = _mistyped(text, spans, chance)
    return replace(example, question=text, spans=None if example.spans is None else tuple(spans))


def _renamed(
    text: str,
    spans: list[tuple[str, int, int]],
    example: Example,
    pool: dict[tuple[str, str], list[str]],
    chance: random.Random,
) -> tuple[str, list[tuple[str, int, int]]]:
    made, at, found = "", 0, list[tuple[str, int, int]]()
    for slot, start, end in sorted(spans, key=lambda one: one[1]):
        made += text[at:start]
        others = pool.get((pool_name(slot, example), example.language), [])
        own = text[start:end]
        if slot in {"subject", "sort", "documents"} and others and chance.random() < 0.7:
            own = chance.choice(others)
        found.append((slot, len(made), len(made) + len(own)))
        made += own
        at = end
    return made + text[at:], found


def pool_name(slot: str, example: Example) -> str:
    """Return the name of what may stand in the place of a slot: subjects of words are no subjects of meanings."""
    return f"{slot} {example.match}" if slot == "subject" else f"{slot} {example.kind}"


def pool_of(examples: Sequence[Example]) -> dict[tuple[str, str], list[str]]:
    """Return what stands in the slots of all examples."""
    pool: dict[tuple[str, str], list[str]] = {}
    for one in examples:
        for slot, start, end in one.spans or ():
            pool.setdefault((pool_name(slot, one), one.language), []).append(one.question[start:end])
    return pool


def _mistyped(
    text: str, spans: list[tuple[str, int, int]], chance: random.Random
) -> tuple[str, list[tuple[str, int, int]]]:
    places = [at for at in range(1, len(text) - 1) if text[at - 1 : at + 2].isalpha()]
    if not places:
        return text, spans
    at, kind = chance.choice(places), chance.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :], spans
    step = -1 if kind == 1 else 1
    made = text[:at] + text[at + 1 :] if kind == 1 else text[:at] + text[at] + text[at:]
    moved = [(slot, a + step * (a > at), b + step * (b > at)) for slot, a, b in spans]
    return made, [(slot, a, b) for slot, a, b in moved if b > a]


def plain_examples(examples: Sequence[Example], chance: random.Random) -> Iterator[Example]:
    """Yield the plainest wordings with the names that examples in English have in their slots."""
    pool, kind, said_of = pool_of(examples), "", list[str]()
    for text in _PLAIN.strip().splitlines() * _PLAIN_OF_EACH:
        if text.endswith(":"):
            kind, *said_of = text.rstrip(":").split()
            continue
        operation = next((one for one in said_of if one in OPERATIONS), None)
        match, negated = next((one for one in said_of if one in MATCHES), None), "not" in said_of
        made, spans = "", list[tuple[str, int, int]]()
        for piece in re.split(r"(\{\w+\})", text):
            slot = piece[1:-1] if piece.startswith("{") else ""
            named = f"{slot} {match}" if slot == "subject" else f"{slot} {kind}"
            said = chance.choice(pool[named, "en"]) if slot else piece
            if slot:
                spans.append((slot, len(made), len(made) + len(said)))
            made += said
        yield Example(made, kind, None, operation, match, negated if operation else None, tuple(spans), weight=0.5)


def read_plans(paths: Sequence[Path]) -> list[Example]:
    """Return the examples of files of plans; a line that is not whole yet is left out."""
    plans = [plan for path in paths for plan in _lines(path)]
    known = {plan["question"]: plan for plan in plans if plan.get("kind") in KINDS}
    return [example_of(plan) for plan in known.values()]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def all_examples(plans: Sequence[Path], sets: Path, sheets: Sequence[Path]) -> tuple[list[Example], list[Example]]:
    """Return the examples of the written plans, and those of other sets."""
    chance = random.Random(_CHANCE)
    written = read_plans(plans)
    plain = {one.question: one for one in plain_examples(written, chance)}
    return written, [*passages_of(sets, chance), *rows_of(sets, sheets, chance), *plain.values()]
