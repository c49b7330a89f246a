"""What readers of this field lose or glue together: raised digits, numbers of clauses, moved and hidden text, forms."""
# ruff: noqa: E501  the lines of files

from tests.reading.golden.case import Case
from tests.reading.golden.office_cases import HEADING, p, rtf
from tests.support.office_files import book, open_document
from tests.support.pdf_files import at, field, pdf_file, remark
from tests.support.word_files import item, level, lists, paragraph, run, word_file

FACT, LAST = "The fee is 40 crowns.", "Ask the harbour office."
MARK = 'w:id="1" w:author="Bo" w:date="2026-01-01T00:00:00Z"'
RAISED, LOWERED = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
CLAUSES = level(0, "%1.") + level(1, "%1.%2") + level(2, "(%3)", "lowerLetter")
NUMBERED = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
STYLES = (
    '<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="H1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Deep"><w:name w:val="Deep"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
    '<w:style w:type="character" w:styleId="Gone"><w:name w:val="Gone"/><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="Sign"><w:name w:val="Sign"/><w:rPr>'
    f"{RAISED}</w:rPr></w:style>"
)
BOX = f"<w:txbxContent>{paragraph(FACT)}</w:txbxContent>"
SHAPE = f"<w:drawing><wp:inline><a:graphic><a:graphicData><wps:wsp><wps:txbx>{BOX}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing>"
OPEN_LIST = (
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
    'style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="1" text:display-levels="2"/>'
    '</text:list-style><style:style style:name="up" style:family="text"><style:text-properties '
    'style:text-position="super 58%"/></style:style>'
)


def listed(*items: str, more: str = "") -> str:
    inner = "".join(f"<text:list-item>{one}</text:list-item>" for one in items)
    return f'<text:list text:style-name="L"{more}>{inner}</text:list>'


def mark(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


WORD = [
    Case("moved.docx", lambda: word_file(
        paragraph(f"<w:moveTo {MARK}>{run(FACT)}</w:moveTo>") + paragraph(f"<w:moveFrom {MARK}>{run('Old.')}</w:moveFrom>")
    ), {FACT: ""}, absent=("Old.",)),
    Case("wrapped.docx", lambda: word_file(
        paragraph(run("Number ") + f'<w:fldSimple w:instr=" X ">{run("KQ-77")}</w:fldSimple>')
        + f'<w:customXml w:element="x">{paragraph(FACT)}</w:customXml>'
        + paragraph(f'<w:bdo w:val="rtl">{run("Alef 22.")}</w:bdo><w:unheardOf>{run("Bet 33.")}</w:unheardOf>')
    ), {"Number KQ-77": "", FACT: "", "Alef 22.": "", "Bet 33.": ""}),
    Case("ruby.docx", lambda: word_file(paragraph(
        run("In ") + f"<w:r><w:ruby><w:rt>{run('toukyou')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby></w:r>"
        + run(" now.")
    )), {"In 東京 now.": ""}, noted={"toukyou": "1 reading aid is left out"}),
    Case("page-within.docx", lambda: word_file(
        paragraph("Before.") + '<w:altChunk r:id="c0"/>' + paragraph("Behind."),
        chunks={"part.html": f"<p>{FACT}</p>"},
    ), {"Before.": "", FACT: "", "Behind.": ""}),
    Case("text-within.docx", lambda: word_file(
        paragraph("Before.") + '<w:altChunk r:id="c0"/>', chunks={"part.txt": FACT}
    ), {"Before.": "", FACT: "Attachment: part.txt"}),
    Case("box-of-one-choice.docx", lambda: word_file(paragraph(
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps">{SHAPE}</mc:Choice></mc:AlternateContent></w:r>'
    )), {FACT: ""}),
    Case("box-without-choices.docx", lambda: word_file(paragraph(f"<w:r>{SHAPE}</w:r>")), {FACT: ""}),
    Case("orphan-field.docx", lambda: word_file(
        paragraph(mark("separate") + run(FACT) + mark("end")) + paragraph(run(LAST) + mark("end"))
    ), {FACT: "", LAST: ""}),
    Case("hidden.docx", lambda: word_file(
        paragraph(run(FACT) + run(" Secret one.", "<w:vanish/>") + run(" Secret two.", '<w:rStyle w:val="Gone"/>')),
        styles=STYLES,
    ), {FACT: ""}, noted={"Secret": "4 hidden words are left out"}),
    Case("headings-by-style.docx", lambda: word_file(
        paragraph("Fees", '<w:pStyle w:val="Own"/>') + paragraph(FACT) + paragraph("Office", '<w:pStyle w:val="Deep"/>')
        + paragraph(LAST), styles=STYLES,
    ), {FACT: "Fees", LAST: "Office"}),
    Case("other-main-part.docx", lambda: word_file(paragraph(FACT), main="doc/text2.xml"), {FACT: ""}),
    Case("macros.docm", lambda: word_file(
        paragraph(FACT), kind="application/vnd.ms-word.document.macroEnabled.main+xml"
    ), {FACT: ""}),
    Case("raised.docx", lambda: word_file(paragraph(
        run("10") + run("6", RAISED) + run(" H") + run("2", LOWERED) + run("O 4,500") + run("2", '<w:rStyle w:val="Sign"/>')
        + run(" x") + run("a,b", RAISED)
    ), styles=STYLES), {"10⁶ H₂O 4,500² x^(a,b)": ""}),
    Case("clauses.docx", lambda: word_file(
        item("Terms", 1) + item("Boats.", 1, 1) + paragraph("Between.") + item("Fees", 1) + item(FACT, 1, 1)
        + item(LAST, 1, 1) + item("Day.", 1, 2) + item("Night.", 1, 2), numbering=lists(CLAUSES),
    ), {"1.1 Boats.": "", f"2.1 {FACT}": "", f"2.2 {LAST}": "", "(b) Night.": ""}),
    Case("restarted.docx", lambda: word_file(
        item("One.", 1) + item("Two.", 1) + item("Anew.", 2) + item("Next.", 2),
        numbering=lists(CLAUSES, more='<w:num w:numId="2"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0">'
                        '<w:startOverride w:val="5"/></w:lvlOverride></w:num>'),
    ), {"2. Two.": "", "5. Anew.": "", "6. Next.": ""}),
    Case("numbered-headings.docx", lambda: word_file(
        paragraph("Fees", f'<w:pStyle w:val="H1"/>{NUMBERED}') + paragraph(FACT)
        + paragraph("Office", f'<w:pStyle w:val="H1"/>{NUMBERED}') + paragraph(LAST),
        styles=STYLES, numbering=lists(level(0, "Article %1", "upperRoman")),
    ), {FACT: "Article I Fees", LAST: "Article II Office"}),
]  # fmt: skip
OTHERS = [
    Case("raised.html", lambda: b"<main><p>4,500<sup>2</sup> crowns, H<sub>2</sub>O, 10<span style='vertical-align:super'>6</span>, "
         b"the 3<sup>rd</sup> of<sup>[4]</sup> <math><msup><mi>x</mi><mn>2</mn></msup></math></p></main>",
         {"4,500² crowns, H₂O, 10⁶, the 3rd of[4] x²": ""}),
    Case("numbers.html", lambda: b"<main><ol start=5><li>Five.</li><li value=9>Nine.</li></ol><ol type=i reversed><li>Two.</li>"
         b"<li>One.</li></ol></main>", {"5. Five.": "", "9. Nine.": "", "ii. Two.": "", "i. One.": ""}),
    Case("frame.html", lambda: b"<main><p>See.</p><iframe srcdoc='&lt;p&gt;Rust at frame 17.&lt;/p&gt;'></iframe></main>",
         {"See.": "", "Rust at frame 17.": ""}),
    Case("menus.html", lambda: b"<p><a href=a>Prev</a> / <a href=b>Up</a></p><h1>Pumps</h1><p>The pump runs.</p><h2>See also</h2>"
         b"<ul><li><a href=w>Winches</a></ul><div><a href=a>Prev</a> <a href=n>Next</a></div><p><a href=e>Download the ebook</a>",
         {"The pump runs.": "Pumps", "Winches": "See also"}, absent=("Prev", "Next", "Download the ebook")),
    Case("signs-of-menus.html", lambda: b"<div><p>\nNext: <a href=a>Winches</a>, Previous: <a href=b>Ropes</a>, Up: <a href=c>Manual</a> &nbsp; "
         b"[<a href=d>Contents</a>][<a href=e>Index</a>]</p></div><h1>Pumps</h1><p>The pump runs.</p><p>Up <a href=f>to date</a></p>"
         b"<b> Next:</b> <a href=a>Winches</a> <b>Up:</b> <a href=c>Manual</a>", {"The pump runs.": "Pumps", "Up to date": "Pumps"},
         absent=("Winches", "Ropes", "Manual", "Contents", "Next", "Up:")),
    Case("note-sign.epub", lambda: book({"a": "<html><body><h1>Knots</h1><p>It holds 60<a epub:type='noteref' href='n'>1</a> percent, "
         "10<sup>6</sup> times.</p></body></html>"}, "a"), {"It holds 60¹ percent, 10⁶ times.": "Knots"}),
    Case("numbers.odt", lambda: open_document(
        "text", listed(p("One."), p("Two.") + f"<text:list><text:list-item>{p('Inner.')}</text:list-item></text:list>")
        + p("Between.") + listed(p("Three."), more=' text:continue-numbering="true"')
        + '<text:list text:style-name="L"><text:list-item text:start-value="7"><text:p>Seven.</text:p></text:list-item></text:list>',
        masters=OPEN_LIST,
    ), {"1. One.": "", "2. Two.": "", "2.1 Inner.": "", "3. Three.": "", "7. Seven.": ""}),
    Case("raised.odt", lambda: open_document(
        "text", HEADING + '<text:p>10<text:span text:style-name="up">6</text:span> boats.</text:p>', masters=OPEN_LIST
    ), {"10⁶ boats.": "Leave"}),
    Case("hidden.odt", lambda: open_document(
        "text", HEADING + p(f"{FACT}<text:hidden-text> secret word</text:hidden-text>")
        + f'<text:section text:display="none">{p("Secret part.")}</text:section>'
    ), {FACT: "Leave"}, noted={"ecret": "4 hidden words are left out"}),
    Case("changes.rtf", lambda: rtf(r"The fee is {\deleted 100}{\revised 40} crowns. {\v secret} 10{\super 6} H{\sub 2}O\par"),
         {"The fee is 40 crowns.": "", "10⁶ H₂O": ""}, noted={"secret": "1 hidden word is left out"}, absent=("100",)),
    Case("numbers.rtf", lambda: rtf(r"{\listtext 2.1\tab}Boats.\par {\pntext (a)\tab}Ropes.\par {\shp{\*\shpinst{\sp{\sn a}{\sv 9}}"
         r"{\shptxt In a box.\par}}}"), {"2.1 Boats.": "", "(a) Ropes.": "", "In a box.": ""}),
    Case("rolling.vtt", lambda: b"WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n \nthe<00:00:00.500><c> ferry</c>\n\n"
         b"00:00:02.000 --> 00:00:02.010\nthe ferry\n \n\n00:00:02.010 --> 00:00:04.000\nthe ferry\nleaves<c> at</c> six\n",
         {"the ferry leaves at six": ""}, absent=("ferry the ferry", "<c>")),
    Case("properties.md", lambda: b"---\ntitle: Boats\naliases: [Skiff, BWP-9]\nserial: ZX-44\n# note\n---\nText `{% if x %}` here.\n",
         {"BWP-9": "", "ZX-44": "", "{% if x %}": ""}),
    Case("flowed.eml", lambda: b"From: a@x.org\nContent-Type: text/plain; format=flowed; delsp=yes\n\nthe sup \nplier of  \nropes AX-  \n71\n",
         {"the supplier of ropes AX-71": ""}),
    Case("cancelled-invitation.eml", lambda: b"From: a@x.org\nContent-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nBEGIN:VTIMEZONE\n"
         b"DTSTART:19701025T030000\nEND:VTIMEZONE\nBEGIN:VEVENT\nSUMMARY:Test\nDTSTART;TZID=Europe/Oslo:20240603T090000\n"
         b"RRULE:FREQ=MONTHLY;INTERVAL=2;BYDAY=-1FR;UNTIL=20241231\nEXDATE:20240802T090000Z\nSTATUS:CANCELLED\nEND:VEVENT\nEND:VCALENDAR\n",
         {"Start: 2024-06-03 09:00 (Europe/Oslo)": "Test", "Repeats: every 2 months on last Friday, until 2024-12-31": "Test",
          "Not on: 2024-08-02 09:00 UTC": "Test", "Status: cancelled": "Test"}, absent=("1970",)),
]  # fmt: skip
LEFT = (
    "The ferry Skua leaves the pier at",
    "six in the morning and is back",
    "by noon. Its captain, Ada Holm,",
    "has held the post since spring.",
)
RIGHT = (
    "The tug Pellow lies at the quay and",
    "burns forty litres an hour. Its",
    "engineer keeps the log of it in a",
    "green book in the engine room.",
)
PDFS = [
    Case("form.pdf", lambda: pdf_file(
        [at(50, 740, "Vessel:") + at(50, 700, "Insured:") + at(50, 660, "Pier:")],
        fields=(
            field("a", 150, 736, "/FT /Tx /V (Black Guillemot)"),
            field("b", 150, 696, "/FT /Btn /V /Yes /AS /Yes /AP << /N << /Yes 1 0 R /Off 1 0 R >> >>", 12),
            field("c", 150, 656, "/FT /Ch /Ff 131072 /Opt [(North) (South)] /V (South)"),
        ),
    ), {"Vessel: Black Guillemot": "", "Insured: [x]": "", "Pier: South": ""}),
    Case("only-fields.pdf", lambda: pdf_file([""], fields=(field("a", 50, 700, "/FT /Tx /V (The anchor is at gate 9.)"),)),
         {"The anchor is at gate 9.": ""}),
    Case("remarks.pdf", lambda: pdf_file(
        [at(50, 740, FACT) + at(50, 600, LAST)],
        remarks=(remark("FreeText", 50, 680, "Use 7.5 metres."), remark("Text", 400, 735, "Ask Bo first.")),
    ), {f"{FACT} Comment: Ask Bo first. Use 7.5 metres. {LAST}": ""}),
    Case("portfolio.pdf", lambda: pdf_file([at(50, 740, FACT)], attached=("The wreck lies at marker 31.",)),
         {FACT: "", "The wreck lies at marker 31.": "Attachment: survey.txt"}),
    Case("raised.pdf", lambda: pdf_file([
        at(50.0, 740, "It holds 10", 12) + at(105.4, 745, "6", 7) + at(109.3, 740, " cells of 30 m", 12) + at(180.0, 745, "2", 7)
        + at(183.8, 740, "/s and H", 12) + at(228.5, 737, "2", 7) + at(232.4, 740, "O.", 12)
    ]), {"It holds 10⁶ cells of 30 m²/s and H₂O.": ""}),
    Case("certificates.pdf", lambda: pdf_file([
        at(50, 780, f"Crane {name} was seen.") + at(50, 760, f"It lifts {number} tons.") + at(50, 740, "Result: passed")
        for number, name in enumerate("ABCDE", start=3)
    ]), {f"Crane {name} was seen. It lifts {number} tons. Result: passed": "" for number, name in enumerate("ABCDE", start=3)}),
    Case("invoices.pdf", lambda: pdf_file([
        "".join(at(50, 780 - 14 * line, f"Boat {name}{line} lay at the pier.") for line in range(50)) + at(50, 80, "Due: 250 crowns")
        for name in "ABCD"
    ]), {f"Boat {name}49 lay at the pier. Due: 250 crowns": "" for name in "ABCD"}),
    Case("unknown-font.pdf", lambda: pdf_file([at(50, 780, FACT), at(50, 780, "wxyzabc", font="F3")]), {FACT: ""},
         noted={"wxyzabc": "1 of 2 pages waits for OCR"}),
    Case("narrow-columns.pdf", lambda: pdf_file([
        "".join(at(50, 780 - 14 * line, left) + at(310, 780 - 14 * line, right)
                for line, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)))
    ]), {" ".join((*LEFT, *RIGHT)): ""}),
    Case("bold-headings.pdf", lambda: pdf_file([
        "".join(at(50, 780 - 90 * part, name, font="F2") + at(50, 760 - 90 * part, f"The limit of {name} is {part + 7} crowns a night, for all.")
                for part, name in enumerate(("Meals", "Hotels", "Flights")))
    ]), {f"The limit of {name} is {part + 7} crowns a night, for all.": name
         for part, name in enumerate(("Meals", "Hotels", "Flights"))}),
]  # fmt: skip
CASES = [*WORD, *OTHERS, *PDFS]
