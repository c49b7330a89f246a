"""Plain texts in many encodings, and subtitles."""

from tests.reading.golden.case import Case

POLISH, RUSSIAN, GREEK = "Zażółć gęślą jaźń, świeca się pali.", "Это документ о правилах.", "Αυτό είναι ένα έγγραφο."  # noqa: RUF001
JAPANESE, GERMAN = "これは会社の休暇規定に関する文書です。", "Die Größe der Räume in Köln."
CUES = (
    "WEBVTT - Talk\n\nNOTE Recorded in May.\n\n1\n00:00:01.000 --> 00:00:03.000 align:start\n<v Ada>The tide rises\n"
    "<i>twice</i> a day.\n\n00:03.500 --> 00:05.000\n<v Ada>Boats &amp; crews wait.</v>\n\n"
    "00:00:05.000 --> 00:00:06.000\n<v Bo>Who decides?\n"
)
ROLLING = (
    "1\r\n00:00:01,000 --> 00:00:02,000\r\nThe tide rises\r\n\r\n"
    "2\r\n00:00:02,000 --> 00:00:03,000\r\nThe tide rises\r\n\r\n"
    "3\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}twice a day.\r\n\r\n"
    "4\r\n00:02:00,000 --> 00:02:01,000\r\n<b>Boats wait.</b>\r\n"
)
CASES = [
    Case("windows.txt", lambda: POLISH.encode("cp1250"), {POLISH: ""}, noted={"the encoding": "guessed as cp1250"}),
    Case("koi8.txt", lambda: RUSSIAN.encode("koi8-r"), {RUSSIAN: ""}, noted={"the encoding": "guessed as koi8-r"}),
    Case("greek.txt", lambda: GREEK.encode("cp1253"), {GREEK: ""}, noted={"the encoding": "guessed as"}),
    Case(
        "no-mark.txt", lambda: GERMAN.encode("utf-16-le"), {GERMAN: ""}, noted={"the encoding": "guessed as utf-16-le"}
    ),
    Case("marked.txt", lambda: JAPANESE.encode("utf-16"), {JAPANESE: ""}),
    Case("iso-2022.txt", lambda: JAPANESE.encode("iso-2022-jp"), {JAPANESE: ""}, noted={"the encoding": "guessed as"}),
    Case("damaged.txt", lambda: (GERMAN * 9).encode() + b"\xff and more.", {"and more.": "", GERMAN: ""}),
    Case(
        "speakers.vtt",
        CUES.encode,
        {
            "Recorded in May.": "",
            "[00:00:01] Ada: The tide rises twice a day. Boats & crews wait.": "",
            "[00:00:05] Bo: Who decides?": "",
        },
    ),
    Case(
        "rolling.srt",
        lambda: ROLLING.encode("utf-8-sig"),
        {"[00:00:01] The tide rises twice a day.": "", "[00:02:00] Boats wait.": ""},
    ),
]
