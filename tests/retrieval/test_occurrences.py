# ruff: noqa: RUF001  letters of other scripts are meant
"""Words are counted as a reader counts them."""

import pytest

from local_rag.retrieval.find_question import Phrase
from local_rag.retrieval.occurrences import (
    best_line,
    inflections,
    line_span,
    occurrences,
    pattern_of,
    patterns_in,
    tokens_of,
    without_struck_ones,
)
from local_rag.text.languages import FUNCTION_WORDS, language_of
from local_rag.text.tokens import document_tokens, keyword_tokens, tokens_of_holders


def matches(text: str, phrase: str, *, exact: bool = False) -> list[str]:
    return [text[one.start : one.end] for one in occurrences(text, [pattern_of(Phrase(phrase, exact=exact))])]


def test_case_plural_possessive_and_verb_forms_count() -> None:
    assert matches("A crane. CRANES! The Crane's hook; craning.", "crane") == ["crane", "CRANES", "Crane", "craning"]
    assert matches("Policies, policy, policing", "policy") == ["Policies", "policy"]
    assert matches("They inspect, inspected and are inspecting.", "inspected") == ["inspect", "inspected", "inspecting"]
    assert matches("one analysis, two analyses, men and women", "analyses") == ["analysis", "analyses"]


def test_a_derived_word_of_the_same_stem_is_another_word() -> None:
    for one, other in (("organize", "organization"), ("import", "important")):
        assert keyword_tokens(one) == keyword_tokens(other)
        assert matches(f"{one} {other}", one) == [one]


def test_a_part_of_a_word_does_not_count() -> None:
    assert matches("crankshaft cranelike mycrane crane_2", "crane") == []


def test_a_phrase_goes_across_lines_and_markup_but_not_across_sentences() -> None:
    text = "The safety\nofficer, a **safety** officer, safety-officers. Safety. Officer\n\nsafety\n\nofficer"
    assert matches(text, "safety officer") == ["safety\nofficer", "safety** officer", "safety-officers"]


def test_quoted_words_count_only_as_they_are_written_in_any_case() -> None:
    assert matches("Blue lamp, blue lamps, BLUE LAMP", "blue lamp", exact=True) == ["Blue lamp", "BLUE LAMP"]


def test_a_number_is_no_part_of_another() -> None:
    assert matches("12, 12.5, 3.12, 1,12 and 112; 12.", "12") == ["12", "12"]
    assert matches("4,000 4,0001 14,000 4000", "4,000") == ["4,000"]


def test_codes_and_scripts_without_spaces_count() -> None:
    assert matches("E-4711 and e-4711, E-47112", "E-4711") == ["E-4711", "e-4711"]
    assert matches("起重机停止。起重机", "起重机") == ["起重机", "起重机"]


def test_other_unicode_forms_of_the_same_letters_count() -> None:
    composed, decomposed = "Gr\u00e5skj\u00e6r", "Gra\u030askj\u00e6r"
    text = f"one\n{decomposed} and {composed}\nlast"
    found = occurrences(text, [pattern_of(Phrase(composed))])
    assert len(found) == 2
    assert [text[one.start : one.end] for one in found] == [decomposed, composed]


def test_every_text_with_a_phrase_has_a_token_of_each_of_its_words() -> None:
    for phrase, text in (("leaves", "a leaf"), ("safety officers", "the safety officer"), ("4,000", "4,000 kroner")):
        tokens = set(keyword_tokens(text))
        assert matches(text, phrase)
        assert tokens_of(Phrase(phrase))
        assert all(tokens & some for some in tokens_of(Phrase(phrase)))


@pytest.mark.parametrize("language", sorted(FUNCTION_WORDS))
def test_a_word_is_indexed_under_its_tokens_in_a_document_of_any_language(language: str) -> None:
    filling = " ".join(sorted(FUNCTION_WORDS[language]))
    (tokens,) = document_tokens([f"{filling} Sicherheitsleitern {filling}"])
    assert all(some & set(tokens) for some in tokens_of(Phrase("Sicherheitsleitern")))
    assert tokens_of(Phrase("Sicherheitsleitern"))


def test_an_index_in_any_language_has_the_tokens_by_which_each_word_is_found() -> None:
    texts = {language: " ".join(sorted(words)) for language, words in FUNCTION_WORDS.items()} | {
        "russian": "капитан проверил насосы и канаты на складах",
        "greek": "ο καπετάνιος έλεγξε τις αντλίες του πλοίου",
        "arabic": "فحص القبطان المضخات والحبال في السفينة",
        "hindi": "कप्तान ने जहाज के पंपों की जाँच की",
        "armenian": "նավապետը ստուգեց նավի պոմպերը",
        "tamil": "கப்பல்கள் புறப்படும் நேரங்கள்",
        "korean": "선장이 창고에 있는 펌프를 점검했다",
    }
    words = "crossing ferries Verträge Häuser inspections naïvement canciones перевозки αντλίες"
    for language, text in texts.items():
        assert language_of(text) == language
        (tokens,) = document_tokens([f"{text}. {words}. {text}"])
        for word in f"{text} {words}".split():
            assert set(tokens_of_holders(word)) <= set(tokens), (language, word)


def test_a_word_that_some_language_leaves_out_has_no_tokens() -> None:
    assert tokens_of(Phrase("die")) == tokens_of(Phrase("DIE", exact=True)) == []


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("насосы", "Капитан проверил НАСОСЫ и канаты"),
        ("αντλίες", "Ο καπετάνιος έλεγξε τις ΑΝΤΛΊΕΣ"),
        ("المضخات", "فحص القبطان المـضخات والحبال"),
        ("QGIS", "地図はQGISを使って"),
        ("12345", "注文番号12345の品"),
        ("500", "가격은500원입니다"),
        ("GPS", "מכשיר הGPS שלנו"),
        ("猫", "白い猫が寝ている"),
        ("人々", "町の人々は"),
        ("istanbul", "İstanbul ofisi"),
        ("IŞIK", "ışık açık"),
        ("strasse", "die Straße"),
        ("Müllabfuhrtermine", "Die Müll\u00adabfuhr\u00adtermine"),
        ("password", "The pass\u200bword rule"),
        ("KQ-7731", "Part KQ\u20117731"),
        ("10-20", "10\u201320 pages"),
        ("office", "the o\ufb03ce"),
        ("eau", "l'eau froide"),
        ("crane", "the __crane__ and _crane_"),
        ("m2", "30 m\u00b2"),
        ("crowns", "4,500 crowns\u00b9"),
        ("4,500", "4,500\u00b2 crowns"),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_a_word_is_found_in_any_notation(phrase: str, text: str, exact: bool) -> None:
    asked = Phrase(phrase, exact=exact)
    (found,) = {text[one.start : one.end] for one in occurrences(text, [pattern_of(asked)])}
    assert found in text
    (tokens,) = document_tokens([text])
    assert all(some & set(tokens) for some in tokens_of(asked))


@pytest.mark.parametrize(
    "phrase",
    ["Result: failed", "open; owner", "Fig. 4: the crane", "(see p. 4)", "a - b", "C# and F#", "5 % off!", "what? no",
     "said \u201cno\u201d", "Mr. Lund", "...", "x_1 = y"],
)  # fmt: skip
def test_quoted_words_may_have_any_punctuation(phrase: str) -> None:
    assert matches(f"before {phrase} after", phrase, exact=True) == [phrase]
    assert matches("**Result**: failed\n| open; | owner |", phrase, exact=True) in (
        [[], ["Result**: failed"], ["open; | owner"]][:1]
        if phrase not in {"Result: failed", "open; owner"}
        else [["Result**: failed"], ["open; | owner"]]
    )


def test_a_superscript_is_told_from_the_number() -> None:
    assert matches("106, 10\u2076 and 10^6", "106") == ["106"]
    assert matches("106, 10\u2076 and 10^6", "10\u2076", exact=True) == ["10\u2076", "10^6"]


def test_a_place_in_a_line_with_other_forms_of_letters_is_exact() -> None:
    text = "first\nＡＢＣ。Cafe\u0301 o\ufb03ce, pass\u200bword: weir\u00b2 and 猫\nlast weir"
    found = occurrences(text, [pattern_of(Phrase("weir")), pattern_of(Phrase("猫")), pattern_of(Phrase("office"))])
    assert [(text[one.start : one.end], one.line) for one in found] == [
        ("o\ufb03ce", 1), ("weir", 1), ("猫", 1), ("weir", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["a", "bus", "ss", "ies", "x", "\u00e9t\u00e9s", "news"])
def test_a_word_is_a_form_of_itself(word: str) -> None:
    assert word in inflections(word)


def test_overlapping_matches_of_two_phrases_count_once() -> None:
    patterns = [pattern_of(Phrase("tide")), pattern_of(Phrase("tide gauge"))]
    assert len(occurrences("tide gauge", patterns)) == 1


def test_what_is_struck_out_is_told_from_what_holds() -> None:
    text = "A fee of ~~30~~ 44 crowns. ~~A fine of 30 crowns~~ is a fine. No fee in ~~May."
    found = {word: occurrences(text, [pattern_of(Phrase(word))]) for word in ("fine", "30", "fee", "fee of 30", "May")}
    assert [one.start for one in without_struck_ones(text, found["fine"])] == [text.rindex("fine")]
    assert len(found["30"]) == 2
    assert without_struck_ones(text, found["30"]) == []
    assert without_struck_ones(text, found["fee of 30"]) == [], "a part of it is struck out"
    assert without_struck_ones(text, found["fee"]) == found["fee"]
    assert without_struck_ones(text, found["May"]) == found["May"], "nothing ends it"


def test_the_line_with_most_occurrences_is_the_best() -> None:
    text = "a crane\ncrane and crane\ncrane crane"
    first = best_line(occurrences(text, [pattern_of(Phrase("crane"))]))
    assert first.line == 1
    assert text[slice(*line_span(text, first.start, first.end))] == "crane and crane"


def test_of_a_long_line_the_part_around_the_word_is_shown() -> None:
    text = "word " * 200 + "crane " + "word " * 200
    start = text.index("crane")
    left, right = line_span(text, start, start + 5)
    assert left < start < right
    assert right - left <= 300


@pytest.mark.parametrize(
    ("text", "word", "counted"),
    [
        ("Die Verträge und des Vertrages, ein Vertragspartner; der Vertrag ist von der Firma.", "Vertrag", 3),
        ("Drei Häuser, das Haus, ein Haushalt, die Hausordnung und der Hof.", "Häuser", 2),
        ("Les journaux sont dans le bureau; le journal est sur la table.", "journal", 2),
        ("Los contratos y el contrato son de la empresa.", "contrato", 2),
        ("Насосы стоят на складе, насосов много, НАСОС один.", "насос", 3),
        ("Ёлка и елки в лесу.", "ёлка", 2),
        ("العقد موقع", "عقد", 1),
        ("The насосы of the ship are in the store.", "насос", 1),
        ("The pumps of the ship are in the store.", "насос", 0),
    ],
)
def test_inflected_words_of_other_languages_count(text: str, word: str, counted: int) -> None:
    phrases = [Phrase(word)]
    assert len(occurrences(text, patterns_in(text, phrases))) == counted
    tokens = set(document_tokens([text])[0])
    assert not counted or all(one & tokens for one in tokens_of(phrases[0]))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("שָׁלוֹם לכם", "שלום"),
        ("שלום לכם", "שָׁלוֹם"),
        ("\ufb2aלום", "שלום"),
        ("جاء مُحَمَّدٌ", "محمد"),
        ("في عام ٢٠٢٤ كان", "2024"),
        ("in 2024", "٢٠٢٤"),
        ("सन् २०२४ में", "2024"),
        ("١٢٫٥ كغم", "12.5"),
        ("Приёмник", "приемник"),
    ],
)
def test_points_digits_and_letters_that_are_written_in_two_ways_are_the_same(text: str, word: str) -> None:
    assert len(matches(text, word, exact=True)) == 1
    tokens = set(document_tokens([text])[0])
    assert all(one & tokens for one in tokens_of(Phrase(word, exact=True)))


def test_words_of_scripts_without_spaces_go_on_in_the_next_line() -> None:
    text = "由北方公\n 司检查\n\n公\n\n司"
    assert matches(text, "公司") == ["公"]
    assert matches(text, "北方公司", exact=True) == ["北方公"]
    assert "公司" in keyword_tokens(text)
    assert matches("cra\nne", "crane") == []


def test_words_of_scripts_without_spaces_go_on_in_quoted_lines() -> None:
    text = "> 由北方公\n> 司检查"
    assert matches(text, "公司") == ["公"]
    assert "公司" in keyword_tokens(text)
