"""Make the Office files that `reading_oracle` compares: random mixtures of what Office programs write."""

import random
import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_MORE = (
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)
_KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml"


IGNORED = re.compile("[\u00ad\u200b-\u200f\u2060-\u2065\ufeff]")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
MARKUP = re.compile(r"~~|\*\*|\\(?=[^\w\s])")
_SMALL = "\u2070-\u209c\u00b9\u00b2\u00b3\u1d2c-\u1d6a\u1d9c-\u1dbf\u02b0-\u02b8\u02e1-\u02e3"
# A sign or a raised word is written at the word before it.
_RAISED = re.compile(rf"[_^](?=\()|(?<=[^\W\d_])(?<![{_SMALL}])(?=[{_SMALL}])")
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(
    rf"[{_CJK}]|(?<![\w-])[-\u2212]?[$\u20ac\u00a3]?\d+(?:[.,:/-]\d+)*%?|\d+(?:[.,:/-]\d+)*%?|[^\W\d_{_CJK}]+"
)


def tokens_of(text: str) -> Counter[str]:
    """Return the words and numbers of a text, without marks and signs; each character of CJK is one."""
    plain = _DIRECTIONS.sub(" ", _RAISED.sub(" ", MARKUP.sub("", text)))
    plain = IGNORED.sub("", unicodedata.normalize("NFKC", plain))
    return Counter(one.replace("\u2212", "-").casefold() for one in _TOKEN.findall(plain.replace("\u2010", "-")))


_ONSETS = "b br d dr f fl g gr h k kl l m n p pr r s st t tr v w z".split()  # noqa: SIM905
_VOWELS, _CODAS = "aeiou", ("n", "r", "l", "m", "s", "t", "k", "nd")
_ALPHABETS = {
    "hebrew": "אבגדהוזחטילמנסעפצקרשת",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "greek": "αβγδεζηθικλμνξοπρτυφχψω",
    "cyrillic": "абвгдежзиклмнопрстуфхцчшщэюя",
}
_IDEOGRAPHS = [chr(code) for code in range(0x4E00, 0x5200)]


@dataclass
class Planted:
    """What a file contains: the feature of each token, and those that a reader of it does not see.

    `cells` are the features of cells by sheet, row and column, both counted from 1, and `merged` the rows with merged
    cells. `within` is added to the features of what is planted next.
    """

    draw: random.Random
    features: dict[str, str] = field(default_factory=dict)
    unseen: set[str] = field(default_factory=set)
    cells: dict[tuple[str, int, int], str] = field(default_factory=dict)
    merged: set[tuple[str, int]] = field(default_factory=set)
    within: str = ""

    def _new(self, feature: str, make: Callable[[], str], *, seen: bool) -> str:
        while True:
            word = make()
            tokens = tokens_of(word)
            if not any(token in self.features for token in tokens):
                self.features.update(dict.fromkeys(tokens, f"{feature}{self.within}"))
                if not seen:
                    self.unseen.update(tokens)
                return word

    def word(self, feature: str, *, seen: bool = True) -> str:
        """Return a new word of three or four syllables."""

        def make() -> str:
            one = "".join(self.draw.choice(_ONSETS) + self.draw.choice(_VOWELS) for _ in range(3))
            return one + self.draw.choice(_CODAS)

        return self._new(feature, make, seen=seen)

    def words(self, feature: str, most: int = 3, *, seen: bool = True) -> str:
        """Return one to `most` new words."""
        return " ".join(self.word(feature, seen=seen) for _ in range(self.draw.randint(1, most)))

    def foreign(self, script: str) -> str:
        """Return a new word of another script."""
        if script == "cjk":
            return self._new(script, lambda: "".join(self.draw.sample(_IDEOGRAPHS, 3)), seen=True)
        letters = _ALPHABETS[script]
        return self._new(script, lambda: "".join(self.draw.choice(letters) for _ in range(7)), seen=True)

    def number(self) -> str:
        """Return a number, an amount or a date, as people write them in text."""
        draw, day = self.draw, datetime(2020, 1, 1) + timedelta(days=self.draw.randrange(3000))
        makers: list[Callable[[], str]] = [
            lambda: f"{draw.randint(1000, 9_999_999):,}",
            lambda: f"{draw.uniform(1, 5000):,.2f}",
            lambda: f"-{draw.uniform(1, 500):.3f}",
            lambda: f"{draw.uniform(0, 100):.2f}%",
            lambda: f"${draw.uniform(100, 90000):,.2f}",
            lambda: f"€{draw.randint(1000, 90000):,}",
            lambda: (day + timedelta(days=draw.randrange(999))).strftime("%Y-%m-%d"),
            lambda: (day + timedelta(days=draw.randrange(999))).strftime("%d/%m/%Y"),
            lambda: f"{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}",
        ]
        return self._new("number", draw.choice(makers), seen=True)


class WordFile:
    """A Word document of random features, written as XML: no library writes all of them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311
        self.planted = Planted(self.draw)
        self.notes: dict[str, list[str]] = {"footnote": [], "endnote": [], "comment": []}
        self.links: list[str] = []
        self._revisions = 0

    def write(self, path: Path) -> Planted:
        """Write the file and return what it contains."""
        head, foot = (self._frame(kind) for kind in ("header", "footer"))
        body = "".join(self._block() for _ in range(self.draw.randint(10, 18)))
        section = (
            '<w:sectPr><w:headerReference w:type="default" r:id="rIdH"/><w:footerReference w:type="default" '
            'r:id="rIdF"/><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1440" w:right="1440" w:bottom="1440" '
            'w:left="1440" w:header="708" w:footer="708" w:gutter="0"/></w:sectPr>'
        )
        parts = {
            "document": f"<w:document {_W} {_R} {_MORE}><w:body>{body}{section}</w:body></w:document>",
            "styles": _STYLES_PART,
            "numbering": _NUMBERING_PART,
            "header1": f"<w:hdr {_W} {_R}>{head}</w:hdr>",
            "footer1": f"<w:ftr {_W} {_R}>{foot}</w:ftr>",
            "settings": f"<w:settings {_W}/>",
        }
        for kind, notes in self.notes.items():
            separators = "" if kind == "comment" else "".join(_separator(kind, at) for at in (-1, 0))
            parts[f"{kind}s"] = f"<w:{kind}s {_W} {_R}>{separators}{''.join(notes)}</w:{kind}s>"
        _write_word(path, parts, self.links)
        return self.planted

    def _frame(self, kind: str) -> str:
        page = f'{_run(" ")}<w:fldSimple w:instr=" PAGE ">{_run("1")}</w:fldSimple>'
        return f"<w:p>{_run(self.planted.words(kind))}{page}</w:p>"

    def _block(self, depth: int = 0) -> str:
        makers: list[tuple[int, Callable[[], str]]] = [
            (6, self._paragraph),
            (2, self._heading),
            (2, self._list),
            (1, self._deleted_mark),
            (1, self._box),
            (1, self._styled_paragraph),
            (1, self._controlled),
            (1, self._right_to_left),
        ]
        if depth < 2:  # noqa: PLR2004  tables within tables
            makers.append((2, lambda: self._table(depth)))
        return self._pick(makers)

    def _pick(self, makers: Sequence[tuple[int, Callable[[], str]]]) -> str:
        weights = [weight for weight, _ in makers]
        return self.draw.choices([make for _, make in makers], weights)[0]()

    def _paragraph(self, properties: str = "", begin: str = "") -> str:
        runs = [begin, *(self._inline() for _ in range(self.draw.randint(2, 7)))]
        between = _run(" ")
        return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{between.join(runs)}</w:p>"

    def _heading(self) -> str:
        level = self.draw.randint(1, 3)
        words = _run(self.planted.words("heading"))
        note = self._note("footnote") if self.draw.random() < 0.2 else ""  # noqa: PLR2004
        return f'<w:p><w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr>{words}{note}</w:p>'

    def _list(self) -> str:
        number, items, level = self.draw.choice([1, 1, 2, 3]), list[str](), 0
        for at in range(self.draw.randint(2, 6)):
            level = max(0, min(2, level + self.draw.choice([-1, 0, 0, 1]))) if at else 0
            properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
            items.append(self._paragraph(properties, _run(f"{self.planted.word('item')} ")))
        return "".join(items)

    def _deleted_mark(self) -> str:
        """Write two paragraphs, of which the end of the first is deleted."""
        mark = f"<w:rPr><w:del {self._revision()}/></w:rPr>"
        first = f"<w:p><w:pPr>{mark}</w:pPr>{_run(self.planted.words('deleted end') + ' ')}</w:p>"
        return f"{first}<w:p>{_run(self.planted.words('deleted end'))}</w:p>"

    def _styled_paragraph(self) -> str:
        style, feature, seen = self.draw.choice(
            [("Struck", "struck by style", True), ("Unseen", "hidden by style", False), ("Quoted", "style", True)]
        )
        words = _run(self.planted.words(feature, seen=seen))
        if style != "Quoted":
            name = "strike" if seen else "vanish"
            words += _run(" ") + _run(self.planted.word(f"{feature}, off"), f'<w:{name} w:val="0"/>')
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{words}</w:p>'

    def _controlled(self) -> str:
        self.planted.within = ", in a control"
        paragraph = self._paragraph()
        self.planted.within = ""
        return f"<w:sdt><w:sdtPr/><w:sdtContent>{paragraph}</w:sdtContent></w:sdt>"

    def _right_to_left(self) -> str:
        runs = [
            _run(self.planted.foreign(self.draw.choice(["hebrew", "arabic"])), "<w:rtl/>")
            for _ in range(self.draw.randint(2, 5))
        ]
        runs.insert(1, _run(self.planted.number()))
        return f"<w:p><w:pPr><w:bidi/></w:pPr>{_run(' ').join(runs)}</w:p>"

    def _box(self) -> str:
        words = f"<w:p>{_run(self.planted.words('text box'))}</w:p><w:p>{_run(self.planted.number())}</w:p>"
        content = f"<w:txbxContent>{words}</w:txbxContent>"
        old = (
            '<w:pict><v:shape style="width:200pt;height:60pt" type="#_x0000_t202"><v:textbox>'
            f"{content}</v:textbox></v:shape></w:pict>"
        )
        new = (
            '<w:drawing><wp:inline><wp:extent cx="2540000" cy="762000"/><wp:docPr id="7" name="Box"/><a:graphic>'
            '<a:graphicData uri="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"><wps:wsp>'
            '<wps:cNvSpPr txBox="1"/><wps:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="2540000" cy="762000"/></a:xfrm>'
            f'<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></wps:spPr><wps:txbx>{content}</wps:txbx><wps:bodyPr/>'
            "</wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing>"
        )
        both = (
            f'<mc:AlternateContent><mc:Choice Requires="wps">{new}</mc:Choice><mc:Fallback>{old}</mc:Fallback>'
            "</mc:AlternateContent>"
        )
        return f"<w:p>{_run(self.planted.word('plain'))}<w:r>{self.draw.choice([old, both, new])}</w:r></w:p>"

    def _table(self, depth: int) -> str:
        width, height = self.draw.randint(2, 2 if depth else 4), self.draw.randint(2, 4)
        column = (2200 if depth else 9000) // width
        rows, tall = [], -1
        for row in range(height):
            cells, at = [], 0
            while at < width:
                properties, is_tall = "", False
                wide = self.draw.choice([1, 1, 1, 2]) if at + 1 < width and tall not in {at, at + 1} else 1
                if at == tall and row:
                    properties, content = "<w:vMerge/>", "<w:p/>"
                else:
                    is_tall = not row and tall < 0 and wide == 1 and self.draw.random() < 0.3  # noqa: PLR2004
                    before = self.planted.within
                    if is_tall or wide > 1:
                        self.planted.within = ", in a merged cell"
                    content = self._cell(depth)
                    self.planted.within = before
                if is_tall:
                    properties, tall = '<w:vMerge w:val="restart"/>', at
                span = f'<w:gridSpan w:val="{wide}"/>' if wide > 1 else ""
                properties = f'<w:tcW w:w="{column * wide}" w:type="dxa"/>{span}{properties}'
                cells.append(f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>")
                at += wide
            change = ""
            if row and self.draw.random() < 0.1:  # noqa: PLR2004
                change = f"<w:trPr><w:ins {self._revision()}/></w:trPr>"
            rows.append(f"<w:tr>{change}{''.join(cells)}</w:tr>")
        grid = f'<w:gridCol w:w="{column}"/>' * width
        return f"<w:tbl><w:tblPr/><w:tblGrid>{grid}</w:tblGrid>{''.join(rows)}</w:tbl><w:p/>"

    def _cell(self, depth: int) -> str:
        def one() -> str:
            inlines = (self._inline() for _ in range(self.draw.randint(1, 2)))
            return f"<w:p>{_run(' ').join(inlines)}</w:p>"

        if depth == 0 and self.draw.random() < 0.08:  # noqa: PLR2004
            return self._table(depth + 1)
        return one() + (one() if self.draw.random() < 0.2 else "")  # noqa: PLR2004

    def _revision(self) -> str:
        self._revisions += 1
        return f'w:id="{1000 + self._revisions}" w:author="A" w:date="2024-01-05T10:00:00Z"'

    def _note(self, kind: str) -> str:
        notes = self.notes[kind]
        number = len(notes) + (0 if kind == "comment" else 1)
        more = ' w:author="Q" w:date="2024-01-05T10:00:00Z" w:initials="Q"' if kind == "comment" else ""
        before = self.planted.within
        self.planted.within += ", in a note"
        said = _run(self.planted.words(kind) + ("" if kind == "comment" else f" {self.planted.number()}"))
        self.planted.within = before
        mark = "" if kind == "comment" else f"<w:r><w:{kind}Ref/></w:r>"
        notes.append(f'<w:{kind} w:id="{number}"{more}><w:p>{mark}{said}</w:p></w:{kind}>')
        reference = f'<w:r><w:{kind}Reference w:id="{number}"/></w:r>'
        if kind == "comment":
            inside = _run(self.planted.word("commented"))
            return f'<w:commentRangeStart w:id="{number}"/>{inside}<w:commentRangeEnd w:id="{number}"/>{reference}'
        return reference

    def _inline(self) -> str:
        plant, run = self.planted, _run
        cut = self.draw.randint(2, 5)

        def split(properties: str, feature: str) -> str:
            word = plant.word(feature)
            return run(word[:cut]) + run(word[cut:], properties)

        def soft(sign: str) -> str:
            word = plant.word("soft hyphen")
            return f"<w:r><w:t>{word[:cut]}{sign}{word[cut:]}</w:t></w:r>"

        def two(feature: str, between: str) -> str:
            return f"<w:r><w:t>{plant.word(feature)}</w:t>{between}<w:t>{plant.word(feature)}</w:t></w:r>"

        def signs() -> str:
            first, second, third, fourth = (plant.word("signs") for _ in range(4))
            return run(f"{first}_{second} *{third}* <{fourth}>")

        def link() -> str:
            self.links.append(f"https://example.org/{len(self.links)}")
            return f'<w:hyperlink r:id="rIdL{len(self.links)}">{run(plant.words("link"))}</w:hyperlink>'

        def broken_field() -> str:
            marks = {kind: f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")}
            code = '<w:r><w:instrText xml:space="preserve"> HYPERLINK "https://example.org/field" </w:instrText></w:r>'
            return f"{marks['begin']}{code}{marks['separate']}{run(plant.words('field'))}{marks['end']}"

        makers: list[tuple[int, Callable[[], str]]] = [
            (8, lambda: run(plant.words("plain", 5))),
            (3, lambda: run(plant.number())),
            (2, lambda: run(plant.words("struck"), "<w:strike/>")),
            (2, lambda: run(plant.words("double struck"), "<w:dstrike/>")),
            (1, lambda: run(plant.words("struck, off"), '<w:strike w:val="false"/>')),
            (1, lambda: run(plant.words("struck by run style"), '<w:rStyle w:val="StruckRun"/>')),
            (2, lambda: run(plant.words("hidden", seen=False), "<w:vanish/>")),
            (1, lambda: run(plant.words("hidden, off"), '<w:vanish w:val="0"/>')),
            (2, lambda: f"<w:ins {self._revision()}>{run(plant.words('inserted'))}</w:ins>"),
            (2, lambda: f"<w:del {self._revision()}>{run(plant.words('deleted', seen=False), '', 'delText')}</w:del>"),
            (1, lambda: f"<w:moveFrom {self._revision()}>{run(plant.words('moved away', seen=False))}</w:moveFrom>"),
            (1, lambda: f"<w:moveTo {self._revision()}>{run(plant.words('moved here'))}</w:moveTo>"),
            (2, lambda: run(plant.words("plain")) + self._note("footnote")),
            (1, lambda: run(plant.words("plain")) + self._note("endnote")),
            (1, lambda: self._note("comment")),
            (2, lambda: split("<w:b/>", "bold half")),
            (1, lambda: split("<w:strike/>", "struck half")),
            (1, lambda: split("<w:i/>", "italic half")),
            (1, lambda: two("line break", "<w:br/>")),
            (1, lambda: two("tab", "<w:tab/>")),
            (1, lambda: soft("</w:t><w:softHyphen/><w:t>")),
            (1, lambda: soft("\u00ad")),
            (1, lambda: two("hyphen", "<w:noBreakHyphen/>")),
            (1, link),
            (1, broken_field),
            (1, lambda: f'<w:fldSimple w:instr=" AUTHOR ">{run(plant.words("field"))}</w:fldSimple>'),
            (1, lambda: f"<w:sdt><w:sdtPr/><w:sdtContent>{run(plant.words('control'))}</w:sdtContent></w:sdt>"),
            (1, lambda: f'<w:smartTag w:element="x">{run(plant.words("smart tag"))}</w:smartTag>'),
            (1, lambda: run(plant.words("capitals"), self.draw.choice(["<w:caps/>", "<w:smallCaps/>"]))),
            (1, lambda: run(plant.word("raised"), '<w:vertAlign w:val="superscript"/>')),
            (1, lambda: run(plant.word("lowered"), '<w:vertAlign w:val="subscript"/>')),
            (1, lambda: run(plant.foreign("cjk"))),
            (1, lambda: run(plant.foreign(self.draw.choice(["hebrew", "arabic"])), "<w:rtl/>")),
            (1, lambda: run(plant.foreign(self.draw.choice(["greek", "cyrillic"])))),
            (1, signs),
        ]  # fmt: skip
        return self._pick(makers)


def _run(text: str, properties: str = "", tag: str = "t") -> str:
    marks = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{marks}<w:{tag} xml:space="preserve">{escape(text)}</w:{tag}></w:r>'


def _separator(kind: str, number: int) -> str:
    name = "continuationSeparator" if number else "separator"
    return f'<w:{kind} w:type="{name}" w:id="{number}"><w:p><w:r><w:{name}/></w:r></w:p></w:{kind}>'


def _heading_style(level: int) -> str:
    properties = (
        f'<w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="{36 - 4 * level}"/></w:rPr>'
    )
    return f'<w:basedOn w:val="Normal"/>{properties}'


_STYLES_PART = f"<w:styles {_W}>" + "".join(
    f'<w:style w:type="{kind}" w:styleId="{identity}"><w:name w:val="{name}"/>{more}</w:style>'
    for kind, identity, name, more in (
        ("paragraph", "Normal", "Normal", ""),
        *(("paragraph", f"Heading{at}", f"heading {at}", _heading_style(at)) for at in (1, 2, 3)),
        ("paragraph", "Struck", "Struck", '<w:basedOn w:val="Normal"/><w:rPr><w:strike/></w:rPr>'),
        ("paragraph", "Unseen", "Unseen", '<w:basedOn w:val="Normal"/><w:rPr><w:vanish/></w:rPr>'),
        ("paragraph", "Quoted", "Quote", '<w:basedOn w:val="Normal"/><w:rPr><w:i/></w:rPr>'),
        ("character", "StruckRun", "Struck run", "<w:rPr><w:dstrike/></w:rPr>"),
    )
) + "</w:styles>"  # fmt: skip

_LEVELS = {
    1: (("decimal", "%1."), ("decimal", "%1.%2."), ("lowerLetter", "(%3)")),
    2: (("upperRoman", "%1."), ("lowerLetter", "%2)"), ("lowerRoman", "%3.")),
    3: (("bullet", "•"), ("bullet", "o"), ("bullet", "-")),
}
_NUMBERING_PART = (
    f"<w:numbering {_W}>"
    + "".join(
        f'<w:abstractNum w:abstractNumId="{number}">'
        + "".join(
            f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
            f'<w:pPr><w:ind w:left="{720 * (at + 1)}" w:hanging="360"/></w:pPr></w:lvl>'
            for at, (form, text) in enumerate(levels)
        )
        + "</w:abstractNum>"
        for number, levels in _LEVELS.items()
    )
    + "".join(f'<w:num w:numId="{number}"><w:abstractNumId w:val="{number}"/></w:num>' for number in _LEVELS)
    + "</w:numbering>"
)


def _write_word(path: Path, parts: Mapping[str, str], links: Sequence[str]) -> None:
    kinds = {"header1": "header", "footer1": "footer"}
    types = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_TYPES}.'
        f'{"document.main" if name == "document" else kinds.get(name, name)}+xml"/>'
        for name in parts
    )
    identities = {"header1": "rIdH", "footer1": "rIdF"}
    relations = "".join(
        f'<Relationship Id="{identities.get(name, f"rId{at}")}" Type="{_KINDS}/{kinds.get(name, name)}" '
        f'Target="{name}.xml"/>'
        for at, name in enumerate(parts)
        if name != "document"
    )
    relations += "".join(
        f'<Relationship Id="rIdL{at}" Type="{_KINDS}/hyperlink" Target="{link}" TargetMode="External"/>'
        for at, link in enumerate(links, start=1)
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{types}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{_KINDS}/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/_rels/document.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{relations}</Relationships>',
        )
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", content)


_NUMBER_CODES = (
    "General", "0", "0.00", "#,##0", "#,##0.00", "0%", "0.0%", "$#,##0.00", "$#,##0.00_);($#,##0.00)",
    "#,##0_);[Red](#,##0)", "#,##0.00;[Red]-#,##0.00", '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)',
    "[$€-407] #,##0.00", '#,##0.00 "€"', "0.00E+00", "##0.0E+0", "# ?/?", "# ??/??", "0.0,", '0.0,,"M"', '0.0" kg"',
    "[>=1000]0.0,\"K\";0", "+0.0;-0.0;0", "00000", '"No. "0', "0.0##", '#,##0;-#,##0;"-"', "0.00;[Red]0.00",
)  # fmt: skip
_DATE_CODES = (
    "yyyy-mm-dd", "dd.mm.yyyy", "m/d/yyyy", "mm-dd-yy", "d-mmm-yy", "d-mmm", "mmm-yy", "mmmm yyyy", "d mmmm yyyy",
    "dddd, mmmm dd, yyyy", "yyyy", "m/d/yy h:mm", "yyyy-mm-dd hh:mm:ss", "dd/mm", "mmmm", "ddd d mmm",
    "[$-409]mmmm d, yyyy", "d. mmmm",
)  # fmt: skip
_TIME_CODES = ("h:mm", "h:mm:ss", "h:mm AM/PM", "[h]:mm", "[h]:mm:ss", "[mm]:ss", "mm:ss.0", "hh:mm")


class SheetFile:
    """A workbook of random features, each sheet a table with a header."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311
        self.planted = Planted(self.draw)

    def write(self, path: Path) -> Planted:
        """Write the file and return what it contains."""
        import openpyxl  # type: ignore[import-untyped]

        book = openpyxl.Workbook()
        book.remove(book.active)
        for at in range(self.draw.randint(1, 3)):
            sheet = book.create_sheet(self.planted.word("name of sheet"))
            self._fill(sheet)
            if at and self.draw.random() < 0.3:  # noqa: PLR2004
                sheet.sheet_state = "hidden"
        book.save(path)
        return self.planted

    def _fill(self, sheet: Any) -> None:
        draw, plant = self.draw, self.planted
        width, height = draw.randint(3, 8), draw.randint(4, 14)
        top = 1
        if draw.random() < 0.3:  # noqa: PLR2004
            self._put(sheet, 1, 1, plant.words("caption"), "caption")
            top = 3 if draw.random() < 0.5 else 2  # noqa: PLR2004
        is_wide = draw.random() < 0.5  # noqa: PLR2004
        hidden_columns = {draw.randint(2, width)} if draw.random() < 0.25 else set()  # noqa: PLR2004
        for column in range(1, width + 1):
            self._put(sheet, top, column, plant.words("header", 2), "header")
            if is_wide:
                sheet.column_dimensions[sheet.cell(1, column).column_letter].width = 34
            if column in hidden_columns:
                sheet.column_dimensions[sheet.cell(1, column).column_letter].hidden = True
        makers = [draw.choice([self._number, self._number, self._date, self._time, self._text]) for _ in range(width)]
        for row in range(top + 1, top + 1 + height):
            self._put(sheet, row, 1, plant.word("key"), "key")
            for column in range(2, width + 1):
                if draw.random() < 0.93:  # noqa: PLR2004
                    makers[column - 1](sheet, row, column)
            if draw.random() < 0.05:  # noqa: PLR2004
                sheet.row_dimensions[row].hidden = True
        if draw.random() < 0.25 and width > 3:  # noqa: PLR2004
            row, last = draw.randint(top + 1, top + height - 1), draw.randint(0, 1)
            sheet.merge_cells(start_row=row, end_row=row + last, start_column=2, end_column=3)
            self.planted.merged.add((sheet.title, row))

    def _put(self, sheet: Any, row: int, column: int, value: Any, feature: str, code: str = "General") -> Any:
        cell = sheet.cell(row, column, value)
        cell.number_format = code
        self.planted.cells[sheet.title, row, column] = feature
        return cell

    def _number(self, sheet: Any, row: int, column: int) -> None:
        draw = self.draw
        code = draw.choice(_NUMBER_CODES)
        value = draw.choice(
            [
                draw.randint(-5000, 50000), draw.randint(0, 30), round(draw.uniform(-10, 10), draw.randint(1, 6)),
                draw.uniform(-1e6, 1e7), 0, round(draw.uniform(0, 1), 3), draw.uniform(0, 1e-4),
                draw.randint(10**9, 10**12), -draw.randint(1, 99) / 2,
            ]
        )  # fmt: skip
        self._put(sheet, row, column, value, f"{code}", code)

    def _date(self, sheet: Any, row: int, column: int) -> None:
        code = self.draw.choice(_DATE_CODES)
        day = datetime(1995, 1, 1) + timedelta(days=self.draw.randrange(14000), seconds=self.draw.choice([0, 0, 31415]))
        self._put(sheet, row, column, day, code, code)

    def _time(self, sheet: Any, row: int, column: int) -> None:
        code = self.draw.choice(_TIME_CODES)
        seconds = self.draw.choice([self.draw.randrange(86400), self.draw.randrange(400000)])
        self._put(sheet, row, column, seconds / 86400, code, code)

    def _text(self, sheet: Any, row: int, column: int) -> None:
        from openpyxl.cell.rich_text import CellRichText, TextBlock  # type: ignore[import-untyped]
        from openpyxl.cell.text import InlineFont  # type: ignore[import-untyped]
        from openpyxl.comments import Comment  # type: ignore[import-untyped]
        from openpyxl.styles import Font  # type: ignore[import-untyped]

        draw, plant = self.draw, self.planted
        match draw.randint(0, 9):
            case 0:
                self._put(sheet, row, column, plant.words("struck"), "struck").font = Font(strike=True)
            case 1:
                struck = TextBlock(InlineFont(strike=True), plant.word("struck part"))
                self._put(sheet, row, column, CellRichText(plant.word("rich") + " ", struck), "struck part")
            case 2:
                cell = self._put(sheet, row, column, plant.words("commented"), "commented")
                cell.comment = Comment(plant.words("comment"), "Q")
            case 3:
                cell = self._put(sheet, row, column, plant.words("link"), "link")
                cell.hyperlink = "https://example.org/"
            case 4:
                self._put(sheet, row, column, f"{plant.word('lines')}\n{plant.word('lines')}", "line break")
            case 5:
                self._put(sheet, row, column, plant.foreign(draw.choice(["cjk", "hebrew", "arabic"])), "script")
            case 6:
                self._put(sheet, row, column, draw.choice([True, False]), "boolean")
            case 7:
                self._put(sheet, row, column, f"{draw.randint(0, 99999):06}", "digits as text")
            case 8:
                word = plant.word("rich")
                self._put(sheet, row, column, CellRichText(word[:3], TextBlock(InlineFont(b=True), word[3:])), "rich")
            case _:
                self._put(sheet, row, column, plant.words("text", 4), "text")


class SlideFile:
    """A presentation of random features."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311
        self.planted = Planted(self.draw)

    def write(self, path: Path) -> Planted:
        """Write the file and return what it contains."""
        from pptx import Presentation

        book = Presentation()
        for _ in range(self.draw.randint(3, 6)):
            self._slide(book)
        book.save(str(path))
        return self.planted

    def _slide(self, book: Any) -> None:
        from pptx.util import Inches, Pt

        draw, plant = self.draw, self.planted
        hidden = draw.random() < 0.12  # noqa: PLR2004
        slide = book.slides.add_slide(book.slide_layouts[draw.choice([1, 5])])
        if hidden:
            slide._element.set("show", "0")
        before = set(plant.features)
        slide.shapes.title.text = plant.words("title")
        if len(slide.placeholders) > 1:
            self._say(slide.placeholders[1].text_frame, numbered=draw.random() < 0.5)  # noqa: PLR2004
        place = Inches(4.2)
        kind = draw.choice(["box", "table", "group", "chart", "drawing"])
        if kind == "box":
            box = slide.shapes.add_textbox(Inches(1), place, Inches(7), Inches(1.5))
            box.text_frame.word_wrap = True
            self._say(box.text_frame)
        elif kind == "table":
            self._table(slide.shapes.add_table(3, 3, Inches(1), place, Inches(8), Inches(1.5)).table)
        elif kind == "group":
            group = slide.shapes.add_group_shape()
            inner = group.shapes.add_group_shape()
            for at, shapes in enumerate((group.shapes, inner.shapes)):
                box = shapes.add_textbox(Inches(1 + 4 * at), place, Inches(3.5), Inches(0.6))
                box.text_frame.text = plant.words("grouped", 2)
        elif kind == "chart":
            self._chart(slide, place)
        else:
            shape = slide.shapes.add_shape(5, Inches(1), place, Inches(6), Inches(1.5))
            shape.text_frame.text = plant.words("drawing")
            shape.text_frame.paragraphs[0].font.size = Pt(14)
        if hidden:
            for token in set(plant.features) - before:
                plant.features[token] = "hidden slide"
        if draw.random() < 0.4:  # noqa: PLR2004
            slide.notes_slide.notes_text_frame.text = plant.words("speaker's notes", 5)

    def _say(self, frame: Any, *, numbered: bool = False) -> None:
        from pptx.util import Pt

        kinds = ("arabicPeriod", "alphaLcParenR", "romanUcPeriod")
        kind = self.draw.choice(kinds)
        for at in range(self.draw.randint(2, 4)):
            paragraph = frame.paragraphs[0] if not at else frame.add_paragraph()
            paragraph.level = self.draw.choice([0, 0, 1])
            if numbered:
                properties = paragraph._p.get_or_add_pPr()
                properties.append(_element("a:buAutoNum", type=kind))
            for number in range(self.draw.randint(1, 4)):
                if number:
                    paragraph.add_run().text = " "
                self._runs(paragraph)
            for run in paragraph.runs:
                run.font.size = Pt(13)

    def _runs(self, paragraph: Any) -> None:
        plant = self.planted
        kind = self.draw.choice(
            ["plain", "plain", "plain", "number", "struck", "double struck", "line break", "tab", "link", "raised",
             "cjk", "hebrew", "bold half", "field", "capitals", "soft hyphen"]
        )  # fmt: skip
        run = paragraph.add_run()
        if kind == "number":
            run.text = plant.number()
        elif kind in {"cjk", "hebrew"}:
            run.text = plant.foreign(kind)
        elif kind == "bold half":
            word = plant.word(kind)
            run.text = word[:3]
            more = paragraph.add_run()
            more.text, more.font.bold = word[3:], True
        elif kind == "line break":
            run.text = plant.word(kind)
            paragraph.add_line_break()
            paragraph.add_run().text = plant.word(kind)
        elif kind == "soft hyphen":
            word = plant.word(kind)
            run.text = f"{word[:4]}\u00ad{word[4:]}"
        else:
            run.text = f"{plant.word(kind)}\t{plant.word(kind)}" if kind == "tab" else plant.words(kind)
        marks = {
            "struck": ("strike", "sngStrike"), "double struck": ("strike", "dblStrike"), "capitals": ("cap", "all"),
            "raised": ("baseline", "30000"),
        }  # fmt: skip
        if kind in marks:
            run._r.get_or_add_rPr().set(*marks[kind])
        elif kind == "link":
            run.hyperlink.address = "https://example.org/"
        elif kind == "field":
            run._r.tag = run._r.tag.replace("}r", "}fld")
            run._r.set("id", "{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}")
            run._r.set("type", "unknown")
            run._r.get_or_add_rPr().set("sz", "1300")

    def _table(self, table: Any) -> None:
        for row in table.rows:
            for cell in row.cells:
                cell.text = self.planted.words("table", 2) if self.draw.random() < 0.7 else self.planted.number()  # noqa: PLR2004
        if self.draw.random() < 0.4:  # noqa: PLR2004
            for cell in (table.cell(1, 1), table.cell(2, 0), table.cell(2, 1)):
                for token in tokens_of(cell.text):
                    self.planted.features.pop(token)
                cell.text = ""
            table.cell(1, 0).merge(table.cell(2, 1))
            for token in tokens_of(table.cell(1, 0).text):
                self.planted.features[token] = "merged"

    def _chart(self, slide: Any, place: Any) -> None:
        from pptx.chart.data import CategoryChartData
        from pptx.enum.chart import XL_CHART_TYPE
        from pptx.util import Inches

        data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
        data.categories = [self.planted.word("chart") for _ in range(3)]
        for _ in range(2):
            data.add_series(self.planted.word("chart"), [self.draw.randint(1, 99) for _ in range(3)])
        kind = self.draw.choice([XL_CHART_TYPE.COLUMN_CLUSTERED, XL_CHART_TYPE.LINE])
        frame = slide.shapes.add_chart(kind, Inches(1), place, Inches(7), Inches(2.8), data)
        frame.chart.has_legend = True


def _element(name: str, **attributes: str) -> Any:
    from pptx.oxml.ns import qn
    from pptx.oxml.xmlchemy import OxmlElement

    made: Any = OxmlElement(name)
    assert made.tag == qn(name)
    for key, value in attributes.items():
        made.set(key, value)
    return made
