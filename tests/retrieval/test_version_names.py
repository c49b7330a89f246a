"""By what versions are recognised: names without years and version numbers, dates, and sketches of texts."""

from pathlib import Path

import pytest

from local_rag.document_records import Document, Provenance
from local_rag.indexing.document_rows import date_in_force, version_keys
from local_rag.retrieval.version_families import date_of_name, key_words, likeness, sketch, version_of_name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("travel-policy-2022", "travel-policy-2025"),
        ("handbook_v1", "handbook_v2.1"),
        ("Handbook (1)", "handbook"),
        ("plan final", "plan draft 3"),
        ("rules-2024-05-01", "rules_20250301"),
        ("price list rev. 4", "price list revision 5"),
        ("terms-old", "terms"),
    ],
)
def test_names_of_versions_differ_only_in_what_does_not_count(one: str, other: str) -> None:
    assert key_words(one) == key_words(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tide-gauge-st-4471", "tide-gauge-st-4480"),
        ("report-2025-q1", "report-2025-q2"),
        ("leave-norway", "leave-ireland"),
        ("scan-1082", "scan-9291"),
        ("room 12", "room 14"),
    ],
)
def test_names_of_other_things_stay_different(one: str, other: str) -> None:
    assert key_words(one) != key_words(other)


def test_the_date_of_a_name_is_as_exact_as_it_is_written() -> None:
    assert [date_of_name(name) for name in ("a-2022", "a-2022-05", "a 20220501", "a-4471", "a-12345678")] == [
        "2022", "2022-05", "2022-05-01", "", "",
    ]  # fmt: skip


def test_an_old_version_comes_before_the_current_one_and_numbers_count() -> None:
    assert version_of_name("terms-old.md") < version_of_name("terms.md")
    assert version_of_name("v2.md") < version_of_name("v10.md")


def test_a_text_says_from_when_it_is_in_force() -> None:
    assert date_in_force("TP-7, issue 2. In force from 1 May 2022. Superseded on 1 March 2025.") == "2022-05-01"
    assert date_in_force("**Effective date:** March 2024") == "2024-03"
    assert date_in_force("We met on 3 June 2020.") == ""


def test_the_date_of_the_name_counts_unless_the_front_matter_is_more_exact() -> None:
    def dated(name: str, own: str) -> str:
        return version_keys(Document(Path(f"/d/{name}.md"), "T", "x", "text", provenance=Provenance(date=own))).dated

    assert dated("policy-2023", "2023-05-01") == "2023-05-01"
    assert dated("policy-2023", "2026-01-01") == "2023"
    assert dated("policy", "2023-05-01") == "2023-05-01"
    assert dated("policy", "") == ""


def test_the_sketches_of_texts_tell_how_alike_these_are() -> None:
    words = [f"word{number}" for number in range(3000)]
    text, half = " ".join(words), " ".join([*words[:1500], *(f"other{number}" for number in range(1500))])
    assert likeness(sketch(text), sketch(text)) == 1
    assert abs(likeness(sketch(text), sketch(half)) - 1 / 3) < 0.1
    assert likeness(sketch(text), sketch("nothing of it")) == 0
    assert likeness(sketch(""), sketch("")) == 0
