# ruff: noqa: RUF001
"""Text in many languages and encodings: in files, in web pages, declared and not."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.errors import ReadError
from local_rag.reading.decode import clean, code_page, decode, decode_with_notes
from local_rag.reading.read import parse

# Language: a text, and the two encodings in which it was most often written before UTF-8.
TEXTS = {
    "English": (
        "It’s the company’s policy – “no refunds” after 30 days. The price is £5.",
        "windows-1252",
        "macintosh",
    ),
    "German": ("Die Größe der Räume in Köln beträgt über 20 m. Straße gesperrt.", "iso-8859-1", "macintosh"),
    "French": ("Été dernier, à Genève, nous avons mangé des crêpes près de chez eux.", "iso-8859-15", "cp850"),
    "Spanish": ("El niño mañana irá a la montaña. ¿Cuándo será la reunión del año?", "iso-8859-1", "windows-1252"),
    "Portuguese": ("A reunião será amanhã às 15 horas na sala de São Paulo.", "windows-1252", "iso-8859-15"),
    "Swedish": ("Räksmörgås är gott på våren när vädret är fint i Malmö.", "iso-8859-1", "macintosh"),
    "Norwegian": ("Blåbærsyltetøy og rømmegrøt på Ås. Møtet er på fredag.", "windows-1252", "iso-8859-1"),
    "Polish": ("Zażółć gęślą jaźń. Książka leży na stole, a świeca się pali.", "windows-1250", "iso-8859-2"),
    "Czech": ("Příliš žluťoučký kůň úpěl ďábelské ódy. Ve městě bylo ticho.", "windows-1250", "iso-8859-2"),
    "Hungarian": ("Árvíztűrő tükörfúrógép. Az idő szép, és a gyerekek játszanak.", "windows-1250", "iso-8859-2"),
    "Slovene": ("Šola je zaprta čez poletje, žal. Čevlji so v škatli.", "windows-1250", "iso-8859-2"),
    "Romanian": ("Această pagină descrie regulile de concediu pentru angajaţi.", "windows-1250", "iso-8859-2"),
    "Lithuanian": ("Šis dokumentas aprašo atostogų taisykles. Ačiū už dėmesį.", "windows-1257", "iso-8859-13"),
    "Turkish": ("Şu köşe yaz köşesi, şu köşe kış köşesi. İstanbul güzel bir şehir.", "windows-1254", "iso-8859-9"),
    "Russian": ("Это небольшой документ о правилах отпуска сотрудников.", "windows-1251", "koi8-r"),
    "Ukrainian": ("Це невеликий документ про правила відпустки.", "windows-1251", "koi8-u"),
    "Greek": ("Αυτό είναι ένα μικρό έγγραφο για τις άδειες των υπαλλήλων.", "windows-1253", "iso-8859-7"),
    "Arabic": ("هذا مستند صغير عن قواعد الإجازات للموظفين في الشركة.", "windows-1256", "iso-8859-6"),
    "Hebrew": ("זהו מסמך קטן על כללי החופשה של עובדי החברה.", "windows-1255", "iso-8859-8"),
    "Chinese": ("这是关于公司员工休假规定的小文件。联通公司", "gb2312", "gb18030"),
    "Japanese": ("これは会社の従業員の休暇規定に関する小さな文書です。", "shift_jis", "iso-2022-jp"),
    "Korean": ("이것은 회사 직원의 휴가 규정에 관한 작은 문서입니다.", "euc-kr", "cp949"),
}
UNICODE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")
ENCODINGS = [(language, name) for language, (_, *legacy) in TEXTS.items() for name in (*UNICODE, *legacy)]


def test_there_are_22_languages_in_6_encodings() -> None:
    assert (len(TEXTS), len(ENCODINGS)) == (22, 22 * 6)


@pytest.mark.parametrize(("language", "encoding"), ENCODINGS)
def test_a_declared_encoding_is_obeyed(language: str, encoding: str) -> None:
    text = TEXTS[language][0]
    for part in (text, text.split()[0], text[:12], text * 40):
        assert decode(part.encode(encoding), encoding.removesuffix("-sig")) == part


@pytest.mark.parametrize(("language", "encoding"), ENCODINGS)
def test_a_page_that_declares_its_encoding_is_not_garbled(language: str, encoding: str) -> None:
    text = TEXTS[language][0]
    page = f"<html><head><meta charset='{encoding}'></head><body><h1>T</h1><p>{text}</p></body></html>"
    if encoding == "utf-16-le":  # a page in UTF-16 needs its mark
        page = "\ufeff" + page
    assert text in parse(Path("a.html"), page.encode(encoding)).text


@pytest.mark.parametrize("language", TEXTS)
def test_utf_8_is_not_garbled_though_nothing_or_latin_1_is_declared(language: str) -> None:
    text = TEXTS[language][0]
    for length in (*range(1, len(text), 5), len(text)):
        part = text[:length]
        for declared in ((), ("iso-8859-1",), ("windows-1252",), ("no-such-charset",), ("utf-16",), ("ascii",)):
            assert decode(part.encode(), *declared) == part
        page = f"<html><body><h1>Title</h1><p>{part}</p></body></html>"
        assert part.strip() in parse(Path("a.html"), page.encode()).text


@pytest.mark.parametrize("language", TEXTS)
def test_what_is_not_declared_is_guessed_with_a_note(language: str) -> None:
    text, *legacy = TEXTS[language]
    right = 0
    for encoding in legacy:
        decoded, notes = decode_with_notes(text.encode(encoding))
        right += decoded == text
        assert len(notes) == 1
        assert "guessed" in notes[0]
    # Of the sibling encodings of a language, which differ in a few letters, one may be taken for the other.
    assert right >= 1


def test_the_guess_is_made_from_what_is_not_ascii_even_if_that_comes_late() -> None:
    text = "plain line\n" * 100_000 + "Příliš žluťoučký kůň úpěl ďábelské ódy. Ve městě bylo ticho.\n"
    assert decode(text.encode("cp1250")) == text
    text = "word " * 300_000 + "Grüße aus Köln, schöne Straße."
    assert decode(text.encode("cp1252")) == text


def test_utf_16_without_a_mark_is_text_and_other_data_with_zeros_are_not() -> None:
    text = "Die Größe der Räume in Köln."
    assert [decode(text.encode(name)) for name in ("utf-16-le", "utf-16-be")] == [text, text]
    for data in (b"\x00\x01\x02\x03" * 50, b"\x89PNG\x00\x00", b"a\x00b" * 1000, b"\x00\x01" * 500, b"\x01\x00" * 500):
        with pytest.raises(ReadError, match="binary file"):
            decode(data)


@pytest.mark.parametrize("damage", [b"\x00", b"\x81", b"\xff\x81\x00", b"\x90" * 30])
@pytest.mark.parametrize("text", ["Plain words on a line.\n" * 200, "Die Größe der Räume in Köln.\n" * 200])
def test_a_damaged_place_does_not_cost_the_text(text: str, damage: bytes) -> None:
    data = text.encode()
    decoded = decode(data[:2_000] + damage + data[2_000:])
    assert decoded.startswith(data[:1_990].decode())
    assert decoded.endswith(data[2_010:].decode())


@given(st.text(st.characters(exclude_categories=["C"])), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_what_unicode_can_say_is_decoded_as_it_was_encoded(text: str, encoding: str) -> None:
    text = text.lstrip("\ufeff")
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_control_characters_are_no_text_whatever_mark_precedes_them(encoding: str) -> None:
    with pytest.raises(ReadError, match="binary file"):
        decode(("\x01\x02\x03\x04" * 500).encode(encoding))


@pytest.mark.parametrize("text", ["one\x0ctwo\x0c", "a\x1fb\x1e" * 9 + "words " * 99])
def test_a_few_control_characters_are_kept(text: str) -> None:
    assert decode(text.encode()) == text


def test_colours_of_a_terminal_are_no_text() -> None:
    assert (
        decode(b"\x1b[1;31mLoss\x1b[0m: 0.25\n\x1b]8;;https://a.example\x07here\x1b]8;;\x07\n") == "Loss: 0.25\nhere\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "encoding"),
    [
        ("a.py", "# -*- coding: cp1250 -*-\nname = 'Łódź'\n", "cp1250"),
        ("a.xml", "<?xml version='1.0' encoding='iso-8859-2'?>\n<a>Łódź</a>\n", "iso-8859-2"),
        ("a.tex", "\\documentclass{article}\n\\usepackage[latin2]{inputenc}\nŁódź\n", "iso-8859-2"),
        ("a.css", '@charset "windows-1250";\n/* Łódź */\n', "cp1250"),
        ("a.txt", "-*- coding: koi8-r -*-\nПривет\n", "koi8-r"),
    ],
)
def test_source_that_declares_its_encoding(name: str, content: str, encoding: str) -> None:
    document = parse(Path(name), content.encode(encoding))
    assert document.text == content
    assert document.notes == ()


@pytest.mark.parametrize(
    "declared", ["utf-7", "punycode", "idna", "unicode_escape", "zlib", "rot13", "x" * 9999, "\x00"]
)
def test_no_declared_codec_is_obeyed_that_is_no_encoding_of_documents(declared: str) -> None:
    assert decode(b"+ADw-script\\x41 text", declared) == "+ADw-script\\x41 text"


def test_a_declaration_that_fits_with_few_damaged_bytes_is_obeyed() -> None:
    text = unicodedata.normalize("NFC", "これは会社の従業員の休暇規定に関する小さな文書です。")
    assert decode(text.encode("shift_jis") + b"\xff", "shift_jis").startswith(text)


@pytest.mark.parametrize(
    "text",
    [
        "Fee 5 € café",
        "Straße „Füße“ – 5 €, naïve café.",
        "Temperature 5 °C ± 2 µm",
        "Größe: 45 cm × 30 cm, Gewicht ca. 5 kg",
        "cafe ½ litre of 10 m² at 3 ¾ inch",
        "It’s “open” – 20 £",
    ],
)
def test_few_letters_and_signs_of_a_western_text_are_no_letters_of_another_script(text: str) -> None:
    assert decode(text.encode("cp1252")) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Straße Füße größer für Öl über Ärger", "cp437"),
        ("Отчёт GPS за 2024 год: 5 кг", "cp1251"),
        ("GPS του πλοίου: 5 μίλια", "cp1253"),
        ("Kůň úpěl ďábelské ódy", "cp1250"),
    ],
)
def test_other_encodings_are_told_from_a_western_text(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (437, "café"),
        (708, "مرحبا"),
        (720, "مرحبا"),
        (936, "联通"),
        (950, "聯通"),
        (1250, "Łódź"),
        (1361, "가게"),
        (10000, "café"),
        (10007, "Ада"),
        (10029, "Łódź"),
        (20127, "plain"),
        (20866, "Ада"),
        (28591, "café"),
        (28605, "5 €"),
        (50220, "会議"),
        (51932, "会議"),
        (51949, "회의"),
        (54936, "联通😀"),
        (65001, "Łódź 😀"),
    ],
)
def test_a_code_page_of_windows_is_an_encoding(number: int, text: str) -> None:
    encoding = code_page(number)
    assert encoding is not None
    assert text.encode(encoding).decode(encoding) == text


def test_a_code_page_that_python_lacks_or_that_is_wide_is_none_for_text_of_single_bytes() -> None:
    assert [code_page(number) for number in (0, 1200, 12000, 57002, 2**32 - 1)] == [None] * 5
    assert (code_page(1200, wide=True), code_page(57002, wide=True)) == ("utf-16-le", None)
    assert "café".encode("cp037").decode(code_page(37) or "") == "café"


def test_of_progress_the_last_state_stays_and_lines_of_old_macintosh_stay() -> None:
    assert clean("Load\n  10%\r  50%\r 100%\nDone\n") == "Load\n 100%\nDone\n"
    assert clean("one\rtwo\rthree") == "one\ntwo\nthree"
    assert clean("Share 10%\rShare 20%\r") == "Share 10%\nShare 20%\n"
    assert clean("one\rtwo\nthree") == "one\ntwo\nthree"
    assert clean("\x9b31mLoss\x9b0m: 0.25") == "Loss: 0.25"


def test_lines_of_subtitles_without_spaces_are_joined_without_one() -> None:
    cue = "1\n00:00:01,000 --> 00:00:04,000\n由北方公\n司检查\n\n2\n00:00:04,000 --> 00:00:06,000\nThe crane\nlifts\n"
    assert parse(Path("a.srt"), cue.encode()).text == "[00:00:01] 由北方公司检查 The crane lifts"
