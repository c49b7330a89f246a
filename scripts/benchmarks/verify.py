"""Plant errors in true sentences, and count which of them `verify` finds, and how many untouched ones it doubts.

    python -m scripts.benchmarks verify [FOLDER ...] [--sentences 300] [--library FOLDER] [--model] [--half choose]
        [--seed 1] [--show] [--json FILE]

Sentences are taken in equal numbers from the documents below each FOLDER, by default corpus/. One error is planted in
each: another number, unit, sign, date or name, a negation, an opposite, another document in brackets, halves of two
sentences, an invented quotation. What is changed is found by patterns of this script, not by local_rag's own rules. An
error is found if the verdict is any but `supported` and `no claim`; an untouched sentence is doubted if it is any of
those. Paraphrases of corpus/ that a person wrote come on top. Settings are chosen on one half and reported on the
other.
"""

import argparse
import json
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.library import Library
from local_rag.verification.verdicts import Checked

_PARAPHRASES = Path("tests/data/paraphrases.jsonl")
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_MONTH = "|".join(_MONTHS)
_SENTENCE = re.compile(
    r"(?:(?<=\n\n)|(?<=[a-z\d)][.!?] ))(?<!etc\. )(?<!e\.g\. )[A-Z]"
    r"(?:[^.!?\n|*#\[\]`<>{}]|\n(?=[^\n*#|>\s\d-])|[.,](?=\d)){40,220}\.(?=\s)"
)
_NUMBER = re.compile(
    r"(?<![\w.,$\u20ac/:#-])(?!(?:19|20)\d\d(?!\d))\d{1,3}(?:,\d{3})*(?:\.\d+)?(?=[ %]|\.\Z)(?! (?:" + _MONTH + "))"
)
_DATE = re.compile(
    rf"\b\d{{1,2}} (?:{_MONTH})(?: \d{{4}})?\b|\b(?:{_MONTH}) (?:\d{{1,2}}, )?\d{{4}}\b"
    r"|\b(?:in|since|until|of) (?:1[6-9]|20)\d\d\b"
)
_UNITS = {
    "days": "weeks", "weeks": "months", "months": "years", "years": "months", "hours": "days", "minutes": "hours",
    "seconds": "minutes", "kroner": "euro", "euro": "kroner", "metres": "kilometres", "km": "metres", "cm": "mm",
    "percent": "per mille", "%": " kg", "miles": "feet", "feet": "miles", "meters": "miles", "m/s": "km/h",
    "million": "billion", "billion": "million", "kilometres": "metres", "litres": "gallons", "mm": "cm",
}  # fmt: skip
_UNIT = re.compile(r"(?<=\d)( ?)(" + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True)) + r")(?!\w)")
_NAME = re.compile(r"(?<=[a-z,] )(?!I\b|" + _MONTH + r")[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2}(?=[ ,.;])")
_OTHER_NAMES = ("Mara Quist", "Otto Ferlin", "Ines Varga", "Pavel Hodak", "Ruth Ames", "Viggo Thrane", "Selma Okoro")
_NEGATABLE = re.compile(r"\b(is|are|was|were|must|can|will|should|may|has been|have been)\b(?! not\b)")
_OPPOSITES = {
    "before": "after", "after": "before", "more": "less", "less": "more", "increase": "decrease", "above": "below",
    "below": "above", "first": "last", "last": "first", "higher": "lower", "lower": "higher", "always": "never",
    "never": "always", "all": "few", "with": "without", "without": "with", "must": "may", "should": "need not",
    "opened": "closed", "began": "ended", "largest": "smallest", "most": "few", "north": "south", "east": "west",
    "best": "worst", "won": "lost", "help": "hinder", "need": "avoid", "use": "avoid", "make": "prevent",
}  # fmt: skip
_OPPOSITE = re.compile(r"(?<=[a-z,] )(" + "|".join(_OPPOSITES) + r")(?= )")
_INVENTED = (
    "nobody on the shore was told about it before the frost had gone",
    "every lamp is kept by whoever last carried the ladder up the hill",
    "we would rather count the boats twice than ask the harbour once",
)
KINDS = ("quotation", "document", "sign", "unit", "date", "number", "name", "spliced", "negation", "predicate")
VALUES = frozenset({"quotation", "document", "sign", "unit", "date", "number", "name", "spliced"})


@dataclass(frozen=True, slots=True)
class Sentence:
    """A true sentence with the name of its file and its title."""

    text: str
    file: str
    title: str


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence as it was, or as true as it, and with an error of a kind."""

    kind: str
    folder: str
    untouched: str
    planted: str


def sentences_of(library: Library, folder: Path) -> list[Sentence]:
    """Return the whole sentences of the documents below a folder that their text has once."""
    found = list[Sentence]()
    with library.documents.named() as named:
        for one in named.at(str(folder)):
            if not one.path.endswith((".md", ".html")):
                continue  # where headings are no lines of their own
            text = library.documents.get(one.id).text
            name = one.path.rpartition("/")[2]
            found += [Sentence(" ".join(match[0].split()), name, one.title) for match in _SENTENCE.finditer(text)]
    times = Counter(one.text for one in found)
    return [one for one in found if times[one.text] == 1 and len(one.text.split()) >= 8]  # noqa: PLR2004


def _number(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    found = [*_NUMBER.finditer(one.text)]
    if not found:
        return None
    match = random_.choice(found)
    digits = [str(random_.choice([d for d in "123456789" if d != old])) if old.isdigit() else old for old in match[0]]
    first = next(at for at, sign in enumerate(digits) if sign.isdigit())
    new = match[0][:first] + digits[first] + match[0][first + 1 :]
    return one.text[: match.start()] + new + one.text[match.end() :]


def _sign(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    found = [match for match in _NUMBER.finditer(one.text) if one.text[match.start() - 1 : match.start()] == " "]
    if not found:
        return None
    at = random_.choice(found).start()
    return f"{one.text[:at]}-{one.text[at:]}"


def _unit(_random: random.Random, one: Sentence, _other: Sentence) -> str | None:
    match = _UNIT.search(one.text)
    if match is None:
        return None
    new = _UNITS[match[2]]
    return one.text[: match.start()] + (new if new.startswith(" ") else match[1] + new) + one.text[match.end() :]


def _date(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    match = _DATE.search(one.text)
    if match is None:
        return None
    parts = match[0].split()
    at = random_.randrange(len(parts))
    part = parts[at].rstrip(",")
    if part in _MONTHS:
        new = random_.choice([month for month in _MONTHS if month != part])
    elif part.isdigit():
        new = str(int(part) + random_.choice([3, 7, 11]) * (1 if len(part) == 4 or int(part) < 15 else -1))  # noqa: PLR2004
        new = str(max(1, int(new)))
    else:
        at, part = len(parts) - 1, parts[-1]
        new = str(int(part) + 7)
    parts[at] = parts[at].replace(part, new, 1)
    return one.text[: match.start()] + " ".join(parts) + one.text[match.end() :]


def _name(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    found = [*_NAME.finditer(one.text)]
    if not found:
        return None
    match = random_.choice(found)
    return one.text[: match.start()] + random_.choice(_OTHER_NAMES) + one.text[match.end() :]


def _negation(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    if " not " in one.text:
        return one.text.replace(" not ", " ", 1)
    found = [*_NEGATABLE.finditer(one.text)]
    if not found:
        return None
    at = random_.choice(found).end()
    return f"{one.text[:at]} not{one.text[at:]}"


def _predicate(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    found = [*_OPPOSITE.finditer(one.text)]
    if not found:
        return None
    match = random_.choice(found)
    return one.text[: match.start()] + _OPPOSITES[match[0]] + one.text[match.end() :]


def _spliced(_random: random.Random, one: Sentence, other: Sentence) -> str | None:
    own, others = one.text.split(), other.text.split()
    return " ".join([*own[: len(own) // 2], *others[len(others) // 2 :]])


def _document(_random: random.Random, one: Sentence, other: Sentence) -> str | None:
    return None if other.file == one.file else f"{one.text[:-1]} ({other.file})."


def _quotation(random_: random.Random, one: Sentence, _other: Sentence) -> str | None:
    words = one.text.rstrip(".").split()
    said = random_.choice(_INVENTED)
    if random_.random() < 0.5:  # noqa: PLR2004
        at = random_.sample(range(2, len(words)), 2)
        said = " ".join(word if place not in at else "meanwhile" for place, word in enumerate(words))
    return f"The page on {one.title} puts it this way: \u201c{said}\u201d."


_PLANT: Mapping[str, Callable[[random.Random, Sentence, Sentence], str | None]] = {
    "number": _number, "sign": _sign, "unit": _unit, "date": _date, "name": _name, "negation": _negation,
    "predicate": _predicate, "spliced": _spliced, "document": _document, "quotation": _quotation,
}  # fmt: skip


def _untouched(kind: str, one: Sentence) -> str:
    """Return a true sentence in the form that the planted one has."""
    if kind == "document":
        return f"{one.text[:-1]} ({one.file})."
    if kind == "quotation":
        return f"The page on {one.title} puts it this way: \u201c{one.text.rstrip('.')}\u201d."
    return one.text


def cases(sentences: Sequence[Sentence], most: int, folder: str, random_: random.Random) -> list[Case]:
    """Plant one error in each of some sentences, of all kinds in turn as far as the sentences allow it."""
    pool, made = random_.sample(sentences, len(sentences)), list[Case]()
    wanted = Counter[str]()
    for number, one in enumerate(pool):
        if len(made) == most:
            break
        other = pool[(number + len(pool) // 2) % len(pool)]
        for kind in sorted(KINDS, key=lambda kind: wanted[kind]):
            planted = _PLANT[kind](random_, one, other)
            if planted and planted != one.text:
                wanted[kind] += 1
                made.append(Case(kind, folder, _untouched(kind, one), planted))
                break
    return made


def halves(made: Sequence[Case]) -> Iterator[tuple[str, Case]]:
    """Yield each case with the half that it belongs to: every other one of its kind."""
    seen = Counter[str]()
    for one in made:
        seen[one.kind] += 1
        yield ("choose" if seen[one.kind] % 2 else "report"), one


def _is_found(one: Sequence[Checked]) -> bool:
    return any(each.verdict not in {"supported", "no claim"} for each in one)


def measure(
    library: Library, made: Sequence[Case], *, model: bool, show: bool
) -> tuple[dict[str, Any], Sequence[tuple[Case, str, Sequence[Checked]]]]:
    """Check each case as it was and with its error; return the counts, and what was judged wrongly."""
    found, total, doubted = Counter[str](), Counter[str](), Counter[str]()
    wrong = list[tuple[Case, str, Sequence[Checked]]]()
    verdicts = defaultdict[str, Counter[str]](Counter)
    statements, started = 0, time.perf_counter()
    for one in made:
        planted = library.verify(one.planted, model=model).statements
        untouched = library.verify(one.untouched, model=model).statements
        statements += len(planted) + len(untouched)
        total[one.kind] += 1
        found[one.kind] += _is_found(planted)
        doubted[one.kind] += _is_found(untouched)
        verdicts[one.kind].update(each.verdict for each in planted)
        if not _is_found(planted):
            wrong.append((one, "missed", planted))
        if _is_found(untouched):
            wrong.append((one, "doubted", untouched))
    seconds = time.perf_counter() - started
    values = [kind for kind in total if kind in VALUES]
    figures = {
        "sentences": len(made),
        "planted": {kind: {"found": found[kind], "of": total[kind]} for kind in KINDS if total[kind]},
        "values_dates_names_quotations": {"found": sum(found[k] for k in values), "of": sum(total[k] for k in values)},
        "untouched": {"doubted": sum(doubted.values()), "of": len(made)},
        "verdicts": {kind: dict(counts) for kind, counts in verdicts.items()},
        "statements_a_second": round(statements / seconds, 2),
    }
    if show:
        for case, what, checked in wrong:
            print(f"\n{what} {case.kind} ({case.folder})\n  {case.untouched}\n  {case.planted}")
            for each in checked:
                print(
                    f"  -> {each.verdict} {each.probability} {[(q.place.text[:300], q.differs) for q in each.quotes]}"
                )
    return figures, wrong


def paraphrased(library: Library, *, model: bool, show: bool) -> dict[str, Any]:
    """Check the paraphrases of corpus/: those that are true, and those with an error."""
    lines = [json.loads(line) for line in _PARAPHRASES.read_text(encoding="utf-8").splitlines()]
    counts = Counter[tuple[bool, str]]()
    for line in lines:
        checked = library.verify(line["text"], model=model).statements
        counts[line["true"], checked[0].verdict] += 1
        if show and _is_found(checked) == line["true"]:
            said = [(one.verdict, [(each.place.text, each.differs) for each in one.quotes]) for one in checked]
            print(f"\nparaphrase {line}\n  -> {said}")
    return {
        name: {verdict: count for (true, verdict), count in sorted(counts.items()) if true == is_true}
        for name, is_true in (("true", True), ("false", False))
    }


def main() -> None:
    """Measure, and print or write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("corpus")])
    parser.add_argument("--library", type=Path, help="a library of these folders; without it, one is made")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--half", choices=["choose", "report"], default="report")
    parser.add_argument("--model", action="store_true", help="let the answer model decide what words leave open")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was judged wrongly")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, Library(arguments.library or temporary) as library:
        if arguments.library is None:
            library.index(arguments.folders)
        made, share = list[Case](), arguments.sentences // len(arguments.folders)
        for folder in arguments.folders:
            random_ = random.Random(arguments.seed)  # noqa: S311
            made += cases(sentences_of(library, folder.resolve()), share, folder.name, random_)
        chosen = [one for half, one in halves(made) if half == arguments.half]
        figures, _ = measure(library, chosen, model=arguments.model, show=arguments.show)
        figures["half"], figures["model"] = arguments.half, arguments.model
        figures["paraphrases"] = paraphrased(library, model=arguments.model, show=arguments.show)
    print(json.dumps(figures, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
