"""Plant changes in documents, and count which of them `diff` finds, and what it reports that nobody planted.

    python -m scripts.benchmarks planted_changes [FOLDER] [--documents 20] [--seed 1] [--json FILE]

The documents are contracts made here, and long ones made of the Markdown pages below FOLDER, one after the other. In a
copy of each, amounts, dates, numbers and names get other values, sentences are removed, added and reworded, and two
sections change places. What is changed is found by patterns of this script, not by local_rag's own rules. A changed
value is found if a change has the old one before and the new one after; every other value of a change is false, and so
is a change without values where nothing was planted.
"""

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_rag.digests.differences import Change, ChangedValue, Difference, compare
from local_rag.digests.statements import text_of_file
from local_rag.reading.read import as_document

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "fifteen", "twenty")
_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_MONTH = "|".join(_MONTHS)
_UNIT = r"(?:days?|hours?|weeks?|months?|years?|minutes?|people|percent|%)\b"
_PATTERNS = {
    "dates": re.compile(rf"\b\d{{1,2}} (?:{_MONTH}) \d{{4}}\b|\b(?:{_MONTH}) \d{{1,2}}, \d{{4}}\b"),
    "amounts": re.compile(r"(?<![\w.,])(?:\$|EUR )\d{1,3}(?:,?\d{3})*(?:\.\d\d)?(?!\w|[.,]\d)"),
    "numbers": re.compile(rf"(?<![\w.,$/:#-])(?:\d{{1,4}}|{'|'.join(_WORDS)})(?= {_UNIT})"),
    "names": re.compile(r"(?<=[a-z,] )(?![A-Z][a-z]+day )[A-Z][a-z]{2,} [A-Z][a-z]{2,}(?=[ ,.;])"),
}
_OTHER_NAMES = ("Mara Quist", "Otto Ferlin", "Ines Varga", "Pavel Hodak", "Ruth Ames", "Viggo Thrane", "Selma Okoro")
_SENTENCE = re.compile(r"(?<=[a-z\d)]\. )(?<!etc\. )[A-Z][^.!?\n|*#\[\]`<>{}]{40,160}\.(?=\s)")
_NEW = (
    "A copy of this page is kept at the {} office for inspection.",
    "Whoever finds a mistake in the {} list tells the editor the same week.",
    "The {} register is opened to visitors in summer only.",
)
_REWORDED = {" must ": " should ", " will ": " may ", " may ": " must ", " should ": " need not ", " shall ": " may "}


@dataclass(frozen=True, slots=True)
class Planted:
    """A change: its kind, and the text before and after it."""

    kind: str
    before: str
    after: str


_CLAUSES = {
    "Term": """
        This agreement begins on {date}. It runs for {years} years and ends without notice. {name} signs for
        the supplier. The notice period is {months} months to the end of a quarter.
    """,
    "Fees": """
        The customer pays EUR {fee} for every calendar month. Invoices are paid within {days} days of receipt.
        Late payments bear interest of {rate} percent above the base rate. Travel is charged at EUR {travel} a
        day.
    """,
    "Delivery": """
        The supplier delivers the equipment by {date}. Delays of more than {days} days entitle the customer to
        a reduction of EUR {fee} for each week. The delivery note is signed by {name} or a deputy.
    """,
    "Support": """
        Faults are reported to {name} by telephone. The supplier answers within {hours} hours on working days.
        Spare parts are kept for {years} years after the last delivery. Work at night is charged at EUR
        {travel} an hour.
    """,
    "Liability": """
        The supplier is liable for damage caused by negligence. Liability is limited to EUR {fee} in each
        year. Claims expire {months} months after the damage became known. This does not apply to intent.
    """,
    "Confidentiality": """
        Both parties keep secret what they learn about the other. This duty ends {years} years after the
        agreement. Documents are returned within {days} days. Exceptions are approved by {name} in writing.
    """,
    "Data protection": """
        Personal data are processed only on instruction. A breach is reported within {hours} hours. The
        officer for data protection is currently {name} of the head office. Records are kept for {years}
        years.
    """,
    "Acceptance": """
        The customer tests each delivery within {days} days. Acceptance takes place on {date} at the latest.
        Minor defects do not prevent acceptance. A protocol is signed by {name} for the customer.
    """,
    "Insurance": """
        The supplier insures itself for at least EUR {fee} for each event. The policy is shown before {date}
        to the customer. A lapse is reported within {days} days.
    """,
    "Termination": """
        Either party may terminate the agreement with {months} months of notice. Termination for cause remains
        possible after a warning of {days} days. The letter is addressed to {name} at the registered office.
    """,
}
_CONTRACT_NAMES = ("Anna Berg", "Tom Lindqvist", "Nora Haugen", "Emil Straub", "Lucia Ferrero", "Henrik Dahl")


def contract(random_: random.Random) -> str:
    """Return a contract with a number of clauses, each under a heading."""
    titles = random_.sample(sorted(_CLAUSES), len(_CLAUSES))
    parts = [f"# Agreement {random_.randrange(1000, 9999)} on lamps\n"]
    for number, title in enumerate(titles, start=1):
        values = {
            "date": f"{random_.randint(1, 28)} {random_.choice(_MONTHS)} {random_.randint(2021, 2029)}",
            "name": random_.choice(_CONTRACT_NAMES),
            "years": random_.choice(_WORDS[1:]),
            "months": random_.choice(_WORDS[1:]),
            "days": random_.randint(5, 90),
            "hours": random_.randint(2, 72),
            "rate": random_.randint(2, 9),
            "fee": f"{random_.randint(1, 99)},{random_.randint(100, 999)}",
            "travel": random_.randint(50, 950),
        }
        parts.append(f"## {number}. {title}\n\n{' '.join(_CLAUSES[title].split()).format(**values)}\n")
    return "\n".join(parts)


def handbooks(folder: Path, count: int, random_: random.Random, characters: int = 150_000) -> Iterator[str]:
    """Yield documents of some 50 pages, made of the pages below a folder in random order."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))]
    pages = [re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.DOTALL) for page in pages]
    for _ in range(count):
        text = ""
        for page in random_.sample(pages, len(pages)):
            text += f"\n\n{page}"
            if len(text) > characters:
                break
        yield text


def plant(text: str, random_: random.Random, share: float = 0.2, apart: int = 200) -> tuple[str, list[Planted]]:
    """Return a changed copy of a text, and what was changed."""
    spots = list[tuple[int, int, Planted]]()
    for kind, pattern in _PATTERNS.items():
        for found in pattern.finditer(text):
            if random_.random() < share:
                spots.append((*found.span(), Planted(kind, found[0], _other(kind, found[0], random_))))
    for found in _SENTENCE.finditer(text):
        chance, sentence = random_.random(), found[0]
        if chance < share / 8:
            spots.append((*found.span(), Planted("removed", sentence, "")))
        elif chance < share / 4:
            new = random_.choice(_NEW).format(random_.choice(["north", "harbour", "upper", "second", "old"]))
            spots.append((found.end(), found.end(), Planted("added", "", f" {new}")))
        elif chance < share / 2 and (word := next((one for one in _REWORDED if one in sentence), "")):
            reworded = sentence.replace(word, _REWORDED[word], 1)
            spots.append((*found.span(), Planted("reworded", sentence, reworded)))
    kept, done = list[tuple[int, int, Planted]](), -apart
    for start, end, one in sorted(spots, key=lambda spot: spot[0]):
        if start >= done + apart:
            kept.append((start, end, one))
            done = end
    parts, last = list[str](), 0
    for start, end, one in kept:
        parts += [text[last:start], one.after]
        last = end
    return "".join([*parts, text[last:]]), [one for _, _, one in kept]


def _other(kind: str, value: str, random_: random.Random) -> str:
    if kind == "names":
        return random_.choice(_OTHER_NAMES)
    if kind == "dates":
        return re.sub(r"\d{4}", lambda year: str(int(year[0]) + random_.randint(1, 4)), value)
    if value in _WORDS:
        return random_.choice([one for one in _WORDS[1:] if one != value])
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + random_.randint(0, 7)) % 9 + 1), value, count=1)


def swap_sections(text: str, random_: random.Random) -> tuple[str, list[str]]:
    """Move a section far down the text; return the text and the title of the section."""
    starts = [found.start() for found in re.finditer(r"^## .", text, re.MULTILINE)]
    sections = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    long = [number for number, one in enumerate(sections[: len(sections) // 2]) if 150 < len(one) < 6000]  # noqa: PLR2004
    if not long:
        return text, []
    moved = random_.choice(long)
    target = min(len(sections) - 1, moved + max(2, len(sections) // 3))
    order = [number for number in range(len(sections)) if number != moved]
    order.insert(target, moved)
    title = sections[moved].splitlines()[0]
    return text[: starts[0]] + "".join(f"{sections[number].rstrip()}\n\n" for number in order), [title]


def judge(difference: Difference, planted: Sequence[Planted], moved: Sequence[str]) -> Counter[str]:
    """Count what was found of what was planted, and what was reported besides."""
    counts = Counter[str]()
    values = [(value, change) for change in difference.changes for value in change.values]
    used = set[int]()
    for one in planted:
        counts[f"planted {one.kind}"] += 1
        if one.kind in _PATTERNS:
            hit = next(
                (number for number, (value, _) in enumerate(values) if number not in used and _is(one, value)),
                None,
            )
            if hit is not None:
                used.add(hit)
                counts[f"found {one.kind}"] += 1
        elif any(_shows(change, one) for change in difference.changes):
            counts[f"found {one.kind}"] += 1
    plain = [one for one in planted if one.kind not in _PATTERNS]
    counts["values reported"] = len(values)
    counts["values false"] = len(values) - len(used)
    for change in difference.changes:
        if not change.values and change.kind != "moved":
            counts["other changes reported"] += 1
            counts["other changes false"] += not any(_shows(change, one) for one in plain)
    titles = {_words(one) for one in moved}
    found = [change for change in difference.changes if change.kind == "moved"]
    texts = [_words(one.before.text) for one in found if one.before]
    counts["found moves"] = sum(any(title[:40] in text for text in texts) for title in titles)
    counts["moves reported"] = len(found)
    counts["planted moves"] = len(titles)
    return counts


def _is(planted: Planted, value: ChangedValue) -> bool:
    """Return whether a value holds a planted one before and after, as whole words."""
    sides = ((planted.before, value.before), (planted.after, value.after))
    return all(re.search(rf"(?<![\w,.]){re.escape(one)}(?![\w]|[,.]\d)", other) for one, other in sides)


def _shows(change: Change, planted: Planted) -> bool:
    before, after = (_words(place.text) if place else "" for place in (change.before, change.after))
    if planted.kind == "removed":
        return change.kind == "removed" and _words(planted.before) in before
    if planted.kind == "added":
        return change.kind == "added" and _words(planted.after) in after
    return _words(planted.before) in before and _words(planted.after) in after


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def measure(
    texts: Sequence[str], random_: random.Random, *, apart: int, show: int = 0
) -> tuple[Counter[str], list[float]]:
    """Plant changes in each text, compare, and judge."""
    counts, seconds = Counter[str](), list[float]()
    for text in texts:
        changed, planted = plant(text, random_, apart=apart)
        changed, moved = swap_sections(changed, random_)
        documents = [text_of_file(as_document(Path(f"{name}.md"), one)) for name, one in (("a", text), ("b", changed))]
        started = time.perf_counter()
        difference = compare(*documents)
        seconds.append(time.perf_counter() - started)
        counts += judge(difference, planted, moved)
        if show:
            _show(difference, planted, show)
    return counts, seconds


def _show(difference: Difference, planted: Sequence[Planted], most: int) -> None:
    """Print what is wrong: false changes, and what was missed."""
    left = list(planted)
    for change in difference.changes:
        hits = [
            next((one for one in planted if one.kind in _PATTERNS and _is(one, value)), None) for value in change.values
        ]
        left = [one for one in left if one not in hits]
        is_plain = not change.values and change.kind != "moved"
        if None in hits or (is_plain and not any(_shows(change, one) for one in planted)):
            print("FALSE", change.summary)
            for sign, place in (("-", change.before), ("+", change.after)):
                print("  ", sign, place and place.text[:300])
    for one in left[:most]:
        if one.kind in _PATTERNS or not any(_shows(change, one) for change in difference.changes):
            print("MISSED", one)


def report(name: str, counts: Counter[str], seconds: Sequence[float]) -> dict[str, object]:
    """Print and return the figures of a set of documents."""
    planted, found = (sum(counts[f"{what} {kind}"] for kind in _PATTERNS) for what in ("planted", "found"))
    kinds = (*_PATTERNS, "removed", "added", "reworded", "moves")
    figures: dict[str, object] = {
        "documents": len(seconds),
        "changed values": planted,
        "found %": round(100 * found / max(1, planted), 2),
        "false values %": round(100 * counts["values false"] / max(1, counts["values reported"]), 2),
        **{kind: f"{counts[f'found {kind}']} of {counts[f'planted {kind}']}" for kind in kinds},
        "other changes false": f"{counts['other changes false']} of {counts['other changes reported']}",
        "moves reported": counts["moves reported"],
        "seconds at most": round(max(seconds, default=0.0), 2),
    }
    print(f"{name}: {json.dumps(figures)}")
    return figures


def main() -> None:
    """Measure on contracts and, if a folder is named, on long documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="folder with Markdown pages")
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="show what is wrong")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    random_ = random.Random(asked.seed)  # noqa: S311
    sets = {"contracts": [contract(random_) for _ in range(asked.documents)]}
    if asked.folder:
        sets["handbook"] = [*handbooks(asked.folder, asked.documents, random_)]
    apart = {"contracts": 40, "handbook": 200}
    figures = {
        name: report(name, *measure(texts, random_, apart=apart[name], show=asked.show)) for name, texts in sets.items()
    }
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
