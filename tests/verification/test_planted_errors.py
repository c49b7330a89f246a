"""The measurement plants one error of each kind, and leaves the sentence beside it as it was."""

import random

from scripts.benchmarks.verify import KINDS, Sentence, cases, halves

SENTENCES = [
    Sentence(text, f"{number}.md", f"Page {number}")
    for number, text in enumerate(
        [
            "The harbour of Port Lorcan has 14 berths and must close before the storm of 5 May 2025 arrives.",
            "A berth is 12 metres long, and Anna Berg is the one who keeps the keys of the first 30 days.",
            "The boat to Torvneset leaves on 3 June 2024 and is always full of people with bags of 20 kg.",
            "Every keeper was told by Tom Lind that the lamp burns for 40 hours and is never left alone.",
        ]
        * 5
    )
]


def test_each_kind_is_planted_once_in_a_sentence() -> None:
    made = cases(SENTENCES, len(SENTENCES), "pages", random.Random(1))
    assert {one.kind for one in made} == set(KINDS)
    assert len(made) == len(SENTENCES)
    assert all(one.planted != one.untouched for one in made)
    texts = {one.text for one in SENTENCES}
    plain = [one for one in made if one.kind not in {"document", "quotation"}]
    assert all(one.untouched in texts and one.planted not in texts for one in plain)


def test_the_halves_share_no_sentence_and_all_kinds() -> None:
    made = cases(SENTENCES, len(SENTENCES), "pages", random.Random(1))
    parts = {name: [one for half, one in halves(made) if half == name] for name in ("choose", "report")}
    assert len(parts["choose"]) + len(parts["report"]) == len(made)
    assert {one.kind for one in parts["choose"]} == set(KINDS)
