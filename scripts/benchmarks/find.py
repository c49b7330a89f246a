"""Count words and find meanings in 2,000 generated documents whose right counts are known, and count false alarms.

    python -m scripts.benchmarks find [--documents 2000] [--questions FOLDER] [--json FILE]

Words that no other document has are planted in known documents: in any case, in plural, across lines and in numbers,
with decoys beside them that must not count. The documents are about twelve subjects in sentences that seldom name them.
Which documents of `corpus/` and of the look-alikes are about a subject was decided by reading them.
FOLDER holds the public sets that `prepare_eval` reads, and Natural Questions as questions.jsonl in `nq`: none of their
questions asks for a count or a list of documents, so each one that the rule takes for such a question is a false alarm.
"""

import argparse
import csv
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag import Library
from local_rag.understanding.question_reader import read_plan

# Each subject with sentences that belong to it.
SUBJECTS: dict[str, list[str]] = {
    "fire safety": [
        "In case of smoke leave the building by the nearest stairs and never take the lift.",
        "Extinguishers hang on every floor and are inspected each spring.",
        "The evacuation drill takes place twice a year, and everybody gathers at the gate.",
        "Flammable liquids are stored in the steel cabinet with the red label.",
        "The sprinklers start when a detector measures more than 68 degrees.",
        "Wardens count their people at the meeting point after an alarm.",
    ],
    "travel expenses": [
        "Train tickets in second class are refunded against a receipt.",
        "The mileage rate for a private car covers fuel and wear.",
        "Hotel bills above the limit need the signature of the manager beforehand.",
        "Claims for a trip are handed in within thirty days of the return.",
        "The daily meal allowance abroad depends on the country.",
        "Taxis are reimbursed only when no bus runs.",
    ],
    "parental leave": [
        "After the birth of a child a mother may stay at home for a year.",
        "Fathers get fifteen weeks off that they cannot give to their partner.",
        "Tell your manager eight weeks before the baby is due.",
        "Adoptive parents have the same rights as those who give birth.",
        "Your position is kept for you while you look after the newborn.",
        "The weeks at home with the baby count as time of service.",
    ],
    "password security": [
        "Choose a passphrase of at least four words for your account.",
        "A second factor is required to log in from outside the office.",
        "Never tell your credentials to anybody, not even to the help desk.",
        "Accounts are locked after five wrong attempts to sign in.",
        "A password manager stores the secrets of all accounts.",
        "Change the login at once if somebody may have seen it.",
    ],
    "waste recycling": [
        "Glass, paper and metal go into separate containers behind the canteen.",
        "Old batteries are collected in the box at the reception.",
        "The bins for plastic packaging are emptied every Thursday.",
        "Food scraps are composted in the garden.",
        "Broken electronics are returned to the supplier for reuse of the materials.",
        "Less rubbish is burnt since everybody sorts it.",
    ],
    "office cleaning": [
        "The floors are mopped every evening after seven.",
        "Windows are washed four times a year by a contractor.",
        "Desks are wiped only if nothing lies on them.",
        "The cleaners empty the dustbins and refill soap and towels.",
        "Carpets are vacuumed on Mondays and shampooed in summer.",
        "Spills in the kitchen are cleaned up by whoever made them.",
    ],
    "bicycle parking": [
        "Bikes are locked to the racks in the covered yard.",
        "A pump and tools hang beside the cycle stands.",
        "Electric bicycles may be charged at the sockets of the shed.",
        "Cycles that nobody has moved for a month are taken away.",
        "Do not lean your bike against the glass of the entrance.",
        "The key to the bike shed is given out by the porter.",
    ],
    "water leaks": [
        "Close the main valve first when a pipe bursts.",
        "Dripping taps are reported to the plumber the same day.",
        "Damp spots on the ceiling mean that the joint above has failed.",
        "The meter shows whether water runs while all taps are shut.",
        "Pumps and dryers stand in the basement for floods.",
        "Frost splits pipes that were not drained in autumn.",
    ],
    "hiring interviews": [
        "Two people talk to each applicant and take notes separately.",
        "Candidates are asked the same questions in the same order.",
        "The panel decides within a week whom to offer the job.",
        "References are called only with the consent of the applicant.",
        "A short exercise shows how a candidate works.",
        "Applicants who are turned down get a friendly letter.",
    ],
    "first aid": [
        "Press a clean cloth on the wound until the bleeding stops.",
        "The kit with bandages and plasters hangs in the corridor.",
        "Cool a burn with running water for twenty minutes.",
        "Lay an unconscious person who breathes on the side.",
        "The defibrillator tells you aloud what to do.",
        "Trained helpers wear a green badge and are called by radio.",
    ],
    "company cars": [
        "The keys of the pool vehicles are booked in the calendar.",
        "Drivers show their licence to the fleet manager twice a year.",
        "Tyres are changed to winter ones in October.",
        "A logbook of all trips lies in the glove box.",
        "Whoever borrows the van returns it with a full tank.",
        "Parking fines are paid by the driver.",
    ],
    "meeting rooms": [
        "The large room seats twelve and has a screen for calls.",
        "Bookings that nobody uses are released after ten minutes.",
        "Wipe the whiteboard and push in the chairs when you leave.",
        "The room by the kitchen can be reserved for half an hour at most.",
        "Coffee for guests is ordered together with the room.",
        "The projector is switched on with the remote beside the door.",
    ],
}
FILLER = [
    "This note was written for the file and replaces an earlier one.",
    "Questions go to the desk on the second floor.",
    "The text was agreed with the works council in spring.",
    "A copy lies in the folder on the shelf.",
    "It is read again once a year.",
    "Comments are welcome until the end of the month.",
]


@dataclass(frozen=True, slots=True)
class Planted:
    """A question with the number of documents and of occurrences that is right."""

    question: str
    documents: frozenset[str]
    occurrences: int


# What is planted for each word or phrase, with its occurrences, and decoys beside it that must not count.
# The documents of corpus/ with at least a paragraph about a subject, without their endings.
CORPUS: dict[str, str] = {
    "sick leave": "sick-leave-ireland sick-leave-norway",
    "parental leave": "parental-leave-ireland parental-leave-norway",
    "travel expenses": "travel-policy-2022 travel-policy-2025",
    "calibrating a tide gauge": "tide-gauge-st-4471 tide-gauge-st-4480 tide-data-service",
    "staying overnight as a guest": "visit-graskjaer visit-inishvarra 2025-q1 2025-q2",
    "bringing a dog": "landing-and-transfer visit-graskjaer visit-inishvarra",
    "changing lamps": "lamp-changer-lc-12 ir-2024-07-inishvarra",
    "a loss of electric power": "ir-2024-11-graskjaer",
    "wrong wind measurements": "ir-2025-02-hraunvik",
    "income and costs": "2025-q1 2025-q2 cooperative",
    "replacing the supply boat": "news-new-boat",
    "going ashore from a boat": "landing-and-transfer visit-graskjaer visit-inishvarra",
}
# The look-alikes with such a paragraph are all those of one title.
LOOK_ALIKES: dict[str, str] = {
    "passenger lifts": "Maintenance agreement",
    "dehumidifiers": "Operating manual",
    "allotment gardens": "Minutes of the annual meeting",
    "an acid spill": "Incident report",
    "footbridges": "Bridge inspection sheet",
    "frogs and newts": "Survey of amphibians",
    "renting business premises": "Lease of business premises",
}
_FOLDERS = ("about", "benefits", "incidents", "manuals", "policies", "reports", "web")

_TERMS: dict[str, tuple[list[tuple[str, int]], list[str]]] = {
    "zorblaxer": (
        [("The Zorblaxer stopped.", 1), ("Two zorblaxers and a ZORBLAXER stood by the Zorblaxer's door.", 3)],
        ["The zorblaxerite broke.", "My prezorblaxer is new."],
    ),
    "grimwold valve": (
        [("A grimwold\nvalve leaked; all grimwold valves were changed.", 2)],
        ["The grimwold. Valve parts came.", "The valve grimwold is shut."],
    ),
    "KX-4417": ([("Order kx-4417 came.", 1), ("KX-4417 and (KX-4417) again.", 2)], ["KX-44171 came.", "KX 44."]),
    "73,219": ([("It cost 73,219 kroner.", 1)], ["It cost 173,219 kroner.", "Meter 73,2190."]),
    "fluvency": ([("Fluvencies were measured.", 1), ("The fluvency rose.", 1)], ["The fluvent rose."]),
    "tromping shed": ([("The tromping shed is locked.", 1), ("Tromping-shed keys.", 1)], ["They tromped to the shed."]),
}


def write_documents(folder: Path, count: int, seed: int = 7) -> tuple[list[Planted], dict[str, frozenset[str]]]:
    """Write documents; return the questions with their right counts, and the documents of each subject."""
    chance = random.Random(seed)  # noqa: S311
    names = [f"note-{chance.randrange(10**6):06}-{number}.md" for number in range(count)]
    texts = dict[str, list[str]]()
    of_subject: dict[str, set[str]] = {subject: set() for subject in SUBJECTS}
    for number, name in enumerate(names):
        sentences = chance.sample(FILLER, 3)
        if number % 3 == 0:  # the others are about nothing in particular
            subject = chance.choice(sorted(SUBJECTS))
            of_subject[subject].add(name)
            sentences[1:1] = chance.sample(SUBJECTS[subject], 4)
        texts[name] = sentences
    planted = list[Planted]()
    for term, (variants, decoys) in _TERMS.items():
        chosen = chance.sample(names, max(1, count // 40))
        total = 0
        for name in chosen:
            sentence, often = chance.choice(variants)
            texts[name].insert(chance.randrange(len(texts[name])), sentence)
            total += often
        for name in chance.sample(sorted(set(names) - set(chosen)), max(1, count // 40)):
            texts[name].append(chance.choice(decoys))
        planted += [
            Planted(f"How many documents mention {term}?", frozenset(chosen), total),
            Planted(f"Which notes contain the {term}?", frozenset(chosen), total),
            Planted(f"List every document that mentions {term}.", frozenset(chosen), total),
        ]
    for name, sentences in texts.items():
        (folder / name).write_text(f"# Note {name[5:11]}\n\n" + "\n\n".join(sentences) + "\n", encoding="utf-8")
    return planted, {subject: frozenset(found) for subject, found in of_subject.items()}


def corpus_documents(corpus: Path, folder: Path) -> dict[str, frozenset[str]]:
    """Copy the documents of corpus/ that people wrote; return the names of those about each subject."""
    for name in _FOLDERS:
        shutil.copytree(corpus / name, folder / name)
    names = {path.stem: path.name for path in folder.rglob("*.*")}
    return {subject: frozenset(names[stem] for stem in stems.split()) for subject, stems in CORPUS.items()}


def look_alike_documents(corpus: Path, folder: Path) -> dict[str, frozenset[str]]:
    """Write the look-alikes; return the names of those about each subject."""
    of_title = dict[str, set[str]]()
    for line in (corpus / "look-alikes" / "documents.jsonl").read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        (folder / document["id"]).write_text(document["text"], encoding="utf-8")
        of_title.setdefault(document["title"], set()).add(document["id"])
    return {subject: frozenset(of_title[title]) for subject, title in LOOK_ALIKES.items()}


def fact_questions(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the questions of public sets that ask for facts, each with the name of its set."""
    for name, file, field in (("nq", "questions.jsonl", "question"), ("codebases", "evaluation_set.jsonl", "query")):
        path = folder / name / file
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            yield name, json.loads(line)[field]
    path = folder / "chunking-evaluation" / "questions_df.csv"
    if path.exists():
        with path.open(encoding="utf-8", newline="") as opened:
            yield from (("chunking-evaluation", row["question"]) for row in csv.DictReader(opened))


def measure_words(library: Library, planted: list[Planted]) -> dict[str, Any]:
    """Return how many counts are right, and the seconds of the slowest question."""
    right, slowest, computed = 0, 0.0, 0.0
    for one in planted:
        started, before = time.monotonic(), time.process_time()
        found = library.find(one.question)
        slowest = max(slowest, time.monotonic() - started)
        computed = max(computed, time.process_time() - before)
        names = [Path(place.passage.path).name for place in found.places]
        total = sum(place.occurrences for place in found.places)
        right += set(names) == one.documents and len(names) == found.count and total == one.occurrences
    return {
        "questions": len(planted),
        "right": right,
        "most_seconds": round(slowest, 2),
        "most_cpu": round(computed, 2),
    }


def measure_meanings(library: Library, of_subject: dict[str, frozenset[str]], subjects: int) -> dict[str, Any]:
    """Return recall and precision of questions for what documents are about, and the seconds of the slowest."""
    hits = found_all = wanted = 0
    slowest = computed = 0.0
    for subject in sorted(of_subject)[:subjects]:
        started, before = time.monotonic(), time.process_time()
        found = library.find(f"Which documents are about {subject}?")
        slowest = max(slowest, time.monotonic() - started)
        computed = max(computed, time.process_time() - before)
        names = {Path(place.passage.path).name for place in found.places}
        hits += len(names & of_subject[subject])
        found_all += len(names)
        wanted += len(of_subject[subject])
    return {
        "subjects": subjects,
        "recall": round(hits / max(1, wanted), 3),
        "precision": round(hits / max(1, found_all), 3),
        "most_seconds": round(slowest, 1),
        "most_cpu": round(computed, 1),
    }


def measure_labelled(write: Callable[[Path, Path], dict[str, frozenset[str]]]) -> dict[str, Any]:
    """Index documents whose subjects are known, and return recall and precision."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "documents"
        folder.mkdir()
        of_subject = write(Path("corpus"), folder)
        with Library(Path(temporary) / "library", context="headings", context_minutes=0.0) as library:
            library.index([folder])
            return measure_meanings(library, of_subject, len(of_subject))


def main() -> None:
    """Write the documents, index them, ask, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--subjects", type=int, default=len(SUBJECTS), help="how many subjects are asked for")
    parser.add_argument("--questions", type=Path, help="folder of the public sets")
    parser.add_argument("--json", type=Path, help="where to write the report")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"documents": arguments.documents}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "notes"
        folder.mkdir()
        planted, of_subject = write_documents(folder, arguments.documents)
        with Library(Path(temporary) / "library", context="headings", context_minutes=0.0) as library:
            library.index([folder])
            report["words"] = measure_words(library, planted)
            if arguments.subjects:
                report["meanings"] = measure_meanings(library, of_subject, arguments.subjects)
    report["corpus"] = measure_labelled(corpus_documents)
    report["look_alikes"] = measure_labelled(look_alike_documents)
    if arguments.questions:
        alarms: dict[str, list[int]] = {}
        for name, question in fact_questions(arguments.questions):
            alarms.setdefault(name, []).append(read_plan(question).kind == "documents")
        report["false_alarms"] = {name: {"questions": len(ones), "taken": sum(ones)} for name, ones in alarms.items()}
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
