"""Configuration and data: an item stays whole, and a part of it says whose values it has."""

from pathlib import Path

import pytest

from local_rag.reading.nesting import find_nested
from local_rag.reading.read import as_document
from local_rag.reading.split import split
from tests.reading.test_split import WORDS

FRIDGES = """# Edited by hand.
defaults:
  alarm: 20
fridges:
- id: F1
  place: Pharmacy
  max: 8
- place: Prep room
  max: 8
  id: F2
  alarm: 10   # old seal
  script: |
    note: no entry
    echo
freezers:
  - id: Z1
    place: Laboratory
"""
FRIDGES_JSON = """{
  "version": 1,
  "fridges": [
    {
      "place": "Prep room",
      "id": "F2",
      "alarm": {
        "minutes": 10
      }
    },
    {"id": "F3", "alarm": 20}
  ]
}
"""
FRIDGES_TOML = """port = 5
[defaults]
alarm = 20
[defaults.mail]
to = "vet"
# The prep room.
[[fridges]]
id = "F2" # new
alarm=10
[fridges.place]
room = "prep"
[[fridges]]
id = "F3"
"""


@pytest.mark.parametrize(
    ("language", "text", "titles"),
    [
        (
            "yaml",
            FRIDGES,
            ["1 defaults", "1 fridges", "2 id: F1", "2 id: F2", "3 script", "1 freezers", "2 id: Z1"],
        ),
        ("yaml", 'a:\n  - - b: "x: y"\n      c: 2\n---\n- d:\n    e: 1\n', ["1 a", "3 b: x: y", "3 d"]),
        ("json", FRIDGES_JSON, ["1 fridges", "2 id: F2", "3 alarm"]),
        (
            "toml",
            FRIDGES_TOML,
            ["1 defaults", "2 defaults.mail", "1 fridges, id: F2", "2 fridges.place", "1 fridges, id: F3"],
        ),
        ("ini", "[mail]\nport: 5\n; Web.\n[web]\nport=6\n", ["1 mail", "1 web"]),
        ("ini", "server {\n  listen = 80\n}\n", []),
    ],
)
def test_what_has_values_below_it_is_a_heading(language: str, text: str, titles: list[str]) -> None:
    assert [f"{one.level} {one.title}" for one in find_nested(text, language)] == titles


def test_a_heading_begins_with_its_comment_and_ends_where_the_next_one_begins() -> None:
    found = {one.title: FRIDGES_TOML[one.start : one.end] for one in find_nested(FRIDGES_TOML, "toml")}
    assert found["defaults.mail"] == '[defaults.mail]\nto = "vet"\n'
    assert found["fridges, id: F2"].startswith("# The prep room.\n[[fridges]]")
    assert found["fridges, id: F2"].endswith('room = "prep"\n')


def test_an_item_stays_whole_or_its_parts_stand_below_its_key_path() -> None:
    document = as_document(Path("fridges.yaml"), FRIDGES)
    assert document.title == "fridges.yaml"
    chunks = split(document, tokenizer=WORDS, max_tokens=36)
    (found,) = [one for one in chunks if "alarm: 10" in one.text]
    assert found.text.startswith("- place: Prep room")
    assert found.text.endswith("echo")
    assert found.headings == ("fridges", "id: F2")
    small = split(document, tokenizer=WORDS, max_tokens=12)
    (found,) = [one for one in small if "alarm: 10" in one.text]
    assert "Prep room" not in found.text
    assert found.headings == ("fridges", "id: F2")


def test_two_items_in_one_chunk_stand_below_neither() -> None:
    document = as_document(Path("fridges.yaml"), FRIDGES.replace("  script: |\n    note: no entry\n    echo\n", ""))
    chunks = split(document, tokenizer=WORDS, max_tokens=36)
    (found,) = [one for one in chunks if "alarm: 10" in one.text]
    assert "id: F1" in found.text
    assert found.headings == ("fridges",)
