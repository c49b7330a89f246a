"""Compare the words read from generated Office files and PDFs with what LibreOffice and poppler read from them.

    python -m scripts.benchmarks reading_oracle [--json FILE]         # 200 Office files and 100 PDFs
    python -m scripts.benchmarks reading_oracle --files 20 --folder FOLDER --examples 5

Both programs must be installed: `apt-get install libreoffice-writer-nogui libreoffice-calc-nogui
libreoffice-impress-nogui poppler-utils fonts-dejavu-core fonts-wqy-microhei`. Without the fonts, PDFs have no CJK text.

Every word and number that a file contains is drawn once, so each difference belongs to the feature that it was planted
with: a struck run, a footnote, a number in a format. `missing` is what the other program reads and local-rag does not,
`extra` the reverse. `neither` is what a reader sees and no program read. What differs by design is named in `RULES`,
each with its reason, and is counted apart. The files are made anew from the seed; LibreOffice makes ODT, ODS and PDF.
"""

import argparse
import csv
import io
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from local_rag.errors import ReadError
from local_rag.reading.read import read
from scripts.benchmarks._oracle_files import IGNORED, MARKUP, Planted, SheetFile, SlideFile, WordFile, tokens_of

# Of 200 files; ODT and ODS are made of some of the others.
SHARES = {"docx": 70, "xlsx": 60, "pptx": 30, "odt": 20, "ods": 20}
PDF_SHARES = {"docx": 40, "xlsx": 35, "pptx": 25}
_ALL_FILES = 200
_BATCH = 25
_CONVERT_SECONDS = 600

_TEXT_FILTER = "txt:Text (encoded):UTF8"
# Comma, quotation mark, UTF-8, from the first line, English (US), as shown, each sheet in a file.
_CSV_FILTER = "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true,true,false,false,-1"


class Rule(NamedTuple):
    """A difference that is no fault of ours; patterns of formats, directions and features say where it counts."""

    name: str
    whose: str  # ours by design, or another program
    formats: str
    directions: str
    features: str
    reason: str


_LOST = "(missing|extra)"
_LIBRE, _DESIGN, _WORDS, _SHEETS = "LibreOffice", "design", "docx|odt", "xlsx|ods"
RULES = [
    Rule("comments", _LIBRE, _WORDS, "extra", "comment.*", "it writes no comments"),
    Rule("deleted text", _LIBRE, _WORDS, "missing", r"(deleted|moved away)(, .*)?", "it writes deleted text"),
    Rule("notes", _LIBRE, _WORDS, "extra", "(.*, in a note|.*note).*", "it loses the text of some notes"),
    Rule("repeated notes", _LIBRE, "odt", "repeated", ".*, in a note.*", "it writes some notes in place of others"),
    Rule("controls", _LIBRE, _WORDS, "extra", ".*, in a control.*", "it loses some controls around paragraphs"),
    Rule("hidden controls", _LIBRE, _WORDS, "missing", "hidden, in a control.*", "it shows what controls hide"),
    Rule("controls in ODT", _LIBRE, "odt", "not marked as struck", ".*, in a control.*", "they become plain text"),
    Rule("codes of fields", _LIBRE, _WORDS, "missing", "code of a field", "it writes the codes of some fields"),
    Rule("joined words", "LibreOffice or poppler", ".*", _LOST, "(.*, )?joined there", "no space at signs of notes"),
    Rule("large fractions", _LIBRE, _SHEETS, "other", "not shown there", "it shows #FMT"),
    Rule("fractions", _LIBRE, _SHEETS, "other", r"# \?.*", "the nearest; numfmt and we cut a continued fraction"),
    Rule("conditions", _LIBRE, _SHEETS, "other", r"\[>=1000\].*", "it drops the minus outside of a condition"),
    Rule("names in charts", "poppler", "pptx", _LOST, "chart|short of a letter", "turned names lose a letter"),
    Rule("broken numbers", "poppler", "pdf of .*", "extra", "number(, in .*)?", "it drops the hyphen at a line's end"),
    Rule("broken words", "poppler", "pdf of .*", _LOST, "piece of a broken word", "narrow cells break words"),
    Rule("merged cells", _DESIGN, ".*", "repeated|extra", "(.*, in a )?merged( cell)?.*", "it counts in each place"),
    Rule("our words", _DESIGN, ".*", "extra", "our word", "`Note:`, `Comment:`, `Notes:`, `Chart` name what follows"),
    Rule("small numbers", _DESIGN, ".*", _LOST, "short number or letter", "of pages, notes, axes; of lists: `label`"),
    Rule("hidden slides", _DESIGN, "pptx", "extra|repeated", "hidden slide", "a PDF has none; we read them and say so"),
    Rule("speaker's notes", _DESIGN, "pptx", "extra", "speaker's notes", "a PDF has none"),
    Rule("running lines", _DESIGN, "pdf of .*", "missing", "header|footer", "what each page repeats is read once"),
    Rule("dates without year", _DESIGN, _SHEETS, "other", r"dd/mm|d-mmm|d\. mmmm|ddd d mmm", "as 2024-03-05"),
    Rule("ambiguous dates", _DESIGN, _SHEETS, "other", "mm-dd-yy|m/d/yyyy|m/d/yy h:mm", "as 2024-03-05"),
    Rule("midnight", _DESIGN, _SHEETS, "other", "yyyy-mm-dd hh:mm:ss", "a time that the date has not is left out"),
    Rule("red numbers", _DESIGN, _SHEETS, "other", r".*\[Red\].*", "a minus where a colour says it"),
]  # fmt: skip


def convert(paths: Sequence[Path], to: str, folder: Path) -> None:
    """Let LibreOffice convert files in batches into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(paths), _BATCH):
        batch = [str(path) for path in paths[first : first + _BATCH]]
        command = ["soffice", f"-env:UserInstallation=file://{folder.parent}/profile", "--headless", "--convert-to", to]
        subprocess.run(
            [*command, "--outdir", str(folder), *batch], check=True, capture_output=True, timeout=_CONVERT_SECONDS
        )


def pdf_text(path: Path, *options: str) -> str:
    """Return the text that poppler reads from a PDF."""
    command = ["pdftotext", *options, "-enc", "UTF-8", str(path), "-"]
    return subprocess.run(command, check=True, capture_output=True, timeout=_CONVERT_SECONDS).stdout.decode()


def sheets_of(path: Path, folder: Path) -> dict[str, list[list[str]]]:
    """Return the cells of each sheet as LibreOffice shows them, by the name of the sheet."""
    return {
        one.stem.removeprefix(f"{path.stem}-"): list(csv.reader(io.StringIO(one.read_text(encoding="utf-8"))))
        for one in sorted(folder.glob(f"{path.stem}-*.csv"))
    }


class Difference(NamedTuple):
    """A token or cell that only one side has, the feature it belongs to, and what both sides say of it."""

    file: str
    direction: str
    feature: str
    token: str
    ours: str
    theirs: str


def compare_text(path: Path, planted: Planted, ours: str, theirs: Sequence[str]) -> tuple[int, list[Difference]]:
    """Compare texts; return the number of tokens that some other program reads, and the differences.

    Of several texts by others, a token is missing if all of them have it, and extra if none has.
    """
    sides = _Sides(planted.features, tokens_of(ours), tuple(map(tokens_of, theirs)))
    least, most = sides.least, sides.most
    found = _unmarked(path, planted, ours)

    def add(direction: str, tokens: Iterable[str]) -> None:
        for token in tokens:
            other = next((text for text, one in zip(theirs, sides.others, strict=True) if token in one), theirs[0])
            feature = sides.of_missing(token) if direction == "missing" else sides.of_extra(token)
            if feature == "unplanted" and any(token in one for one in planted.features):
                feature = "piece of a broken word" if path.suffix == ".pdf" else "short of a letter"
            found.append(Difference(path.name, direction, feature, token, _around(ours, token), _around(other, token)))

    add("missing", (least - sides.ours).elements())
    for token, count in (sides.ours - most).items():
        add("repeated" if token in planted.features and sides.ours[token] > 1 else "extra", [token] * count)
    if path.suffix in {".docx", ".pptx"}:  # LibreOffice loses some of what it writes as ODT
        seen = planted.features.keys() - planted.unseen
        add("neither", (token for token in sorted(seen) if not sides.ours[token] and not most[token]))
        for token in (token for token, feature in planted.features.items() if feature == "item"):
            labels = [_label(text, token) for text in (ours, theirs[0])]
            if None not in labels and labels[0] != labels[1]:
                found.append(Difference(path.name, "label", "item", token, str(labels[0]), str(labels[1])))
    return sum(most.values()), found


@dataclass
class _Sides:
    """The features of tokens, what we read, and what others read, each as counted tokens."""

    features: Mapping[str, str]
    ours: Counter[str]
    others: tuple[Counter[str], ...]

    def __post_init__(self) -> None:
        self.least, self.most = self.others[0].copy(), Counter[str]()
        for one in self.others:
            self.least, self.most = self.least & one, self.most | one
        self._lost = {token for token in self.least - self.ours if token in self.features}
        self._joined_here = {token for token in self.ours - self.most if token not in self.features}
        self._joined_there = {token for token in self.most if token not in self.features}

    def of_missing(self, token: str) -> str:
        """Return the feature of a token that only others read."""
        if token not in self.features:
            joined = any(one in token for one in self.ours if len(one) >= _SHORTEST)
            return "joined there" if joined else _unplanted(token)
        joined = any(token in one for one in self._joined_here)
        return f"{self.features[token]}{', joined here' if joined else ''}"

    def of_extra(self, token: str) -> str:
        """Return the feature of a token that only we read."""
        if token in self.features:
            joined = any(token in one for one in self._joined_there)
            return f"{self.features[token]}{', joined there' if joined else ''}"
        if any(one in token for one in self._lost):
            return "joined here"
        parted = any(one.startswith(token) or one.endswith(token) for one in self._lost)
        return "part of a word" if parted else _unplanted(token)


def _unplanted(token: str) -> str:
    return next((name for name, one in _UNPLANTED if one.fullmatch(token)), "unplanted")


_STRUCK = re.compile(r"(double )?struck( part| by (run )?style)?(, in .*)?")
_MAY_BE_STRUCK = re.compile(r"struck half.*|hidden slide")


def _unmarked(path: Path, planted: Planted, ours: str) -> list[Difference]:
    """Return the words that are struck out and have no `~~`, and the reverse; a PDF does not tell which are."""
    if path.suffix == ".pdf":
        return []
    read_here = tokens_of(ours)
    struck = tokens_of(" ".join(re.findall(r"~~(.+?)~~", ours, re.DOTALL)))
    found = list[Difference]()
    for token, feature in planted.features.items():
        wanted = bool(_STRUCK.fullmatch(feature))
        if read_here[token] and wanted != bool(struck[token]) and not _MAY_BE_STRUCK.fullmatch(feature):
            direction = "not marked as struck" if wanted else "marked as struck"
            found.append(Difference(path.name, direction, feature, token, _around(ours, token), ""))
    return found


_SHORTEST = 6
_UNPLANTED = (
    ("our word", re.compile("notes?|comment|chart")),
    ("code of a field", re.compile("author|hyperlink|https|example|org|field")),
    ("value of a chart", re.compile(r"\d{1,2}\.0")),
    ("short number or letter", re.compile(r"\d{1,3}|[ivx]+|[a-z]")),
)
_NOT_OF_LABEL = re.compile(r"\[[^]]*\]|[\W_]")


def _label(text: str, token: str) -> str | None:
    """Return the number before the first word of an item, without signs; None if the word begins no line."""
    found = re.search(rf"^(.*?)\b{token}\b", text, re.MULTILINE)
    label = None if found is None else _NOT_OF_LABEL.sub("", found[1])
    return label if label is not None and label.isascii() else None


def _around(text: str, token: str) -> str:
    at = MARKUP.sub("", text).casefold().find(token)
    return "" if at < 0 else " ".join(MARKUP.sub("", text)[max(0, at - 50) : at + len(token) + 50].split())


_ROW = re.compile(r"Row (\d+): (.*)")


def cells_read(text: str) -> tuple[dict[tuple[str, int], list[tuple[str, str]]], dict[str, list[str]]]:
    """Return the cells of a text that `read` made of sheets, by sheet and row with the name of their column.

    The second result are the other cells by sheet: headers, captions and rows that are no table.
    """
    rows: dict[tuple[str, int], list[tuple[str, str]]] = {}
    rest: dict[str, list[str]] = defaultdict(list)
    sheet, names = "", list[str]()
    for line in text.split("\n"):
        if line.startswith("## "):
            sheet, names = line.removeprefix("## "), []
        elif line.startswith("Columns: "):
            names = line.removeprefix("Columns: ").split("; ")
            rest[sheet] += names
        elif match := _ROW.fullmatch(line):
            cells = match[2].split("; ")
            split = ((name, cell) for cell in cells for name, _, _ in [cell.partition(": ")])
            rows.setdefault((sheet, int(match[1])), []).extend(
                (name, cell.removeprefix(f"{name}: ")) if name in names else ("", cell) for name, cell in split
            )
        elif line.strip():
            rest[sheet] += line.split("; ")
    return rows, rest


def _plain(cell: str) -> str:
    return " ".join(IGNORED.sub("", MARKUP.sub("", cell)).split())


def compare_sheets(
    path: Path, planted: Planted, ours: str, theirs: Mapping[str, list[list[str]]]
) -> tuple[int, list[Difference]]:
    """Compare cells; return the number of tokens in those of the other program, and the differences."""
    rows, rest = cells_read(ours)
    found, count, seen = _unmarked(path, planted, ours), 0, set[tuple[str, int]]()
    for sheet, table in theirs.items():
        others = Counter(map(_plain, rest.get(sheet, [])))
        for number, cells in enumerate(table, start=1):
            named = rows.get((sheet, number), [])
            seen.add((sheet, number))
            count += sum(sum(tokens_of(cell).values()) or bool(cell) for cell in cells)
            left, lost = _left_and_lost(cells, Counter(_plain(cell) for _, cell in named), others)
            for column, cell in lost:
                feature = planted.cells.get((sheet, number, column), "unplanted")
                feature = "not shown there" if cell == "#FMT" else feature
                name = _plain(table[_header_row(planted, sheet) - 1][column - 1])
                instead = next((one for at, one in named if _plain(at) == name), "")
                left -= Counter([_plain(instead)])
                place = f"{sheet}:{number}:{column}"
                found.append(Difference(path.name, "other" if instead else "missing", feature, place, instead, cell))
            merged = bool({(sheet, number), (sheet, number - 1)} & planted.merged)
            for cell in left.elements():
                known = (planted.features[token] for token in tokens_of(cell) if token in planted.features)
                feature = "merged" if merged else next(known, "number")
                found.append(Difference(path.name, "extra", feature, f"{sheet}:{number}", cell, ",".join(cells)))
        found += [Difference(path.name, "extra", "outside of rows", sheet, cell, "") for cell in others.elements()]
    found += [
        Difference(path.name, "extra", "row", f"{sheet}:{number}", str(cells), "")
        for (sheet, number), cells in rows.items()
        if (sheet, number) not in seen
    ]
    return count, found


def _left_and_lost(
    cells: Sequence[str], read_here: Counter[str], others: Counter[str]
) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Return the cells of a row that only we read, and those that only the other program read, with their column.

    What stands outside of rows, as names of columns do, is taken from `others`.
    """
    lost = list[tuple[int, str]]()
    for column, written in enumerate(cells, start=1):
        cell, parts = _plain(written), Counter(map(_plain, written.split("\n")))
        if not cell:
            continue
        if len(parts) > 1 and parts <= read_here:  # the paragraphs of a cell, which `; ` divides in ODS
            read_here = read_here - parts
        elif read_here[cell]:
            read_here[cell] -= 1
        elif others[cell]:
            others[cell] -= 1
        else:
            lost.append((column, cell))
    return +read_here, lost


def _header_row(planted: Planted, sheet: str) -> int:
    return next((row for (name, row, _), feature in planted.cells.items() if (name, feature) == (sheet, "header")), 1)


def rule_of(kind: str, difference: Difference) -> Rule | None:
    """Return the rule that a difference in a format falls under."""
    return next(
        (
            rule
            for rule in RULES
            if re.fullmatch(rule.formats, kind)
            and re.fullmatch(rule.directions, difference.direction)
            and re.fullmatch(rule.features, difference.feature)
        ),
        None,
    )


@dataclass
class Case:
    """A file, what it contains, and its format; `name` tells it from all others."""

    path: Path
    kind: str
    planted: Planted


def make_files(folder: Path, seed: int, files: int) -> list[Case]:
    """Write the Office files; LibreOffice makes those of OpenDocument of others."""
    cases, made = list[Case](), {kind: max(1, round(share * files / _ALL_FILES)) for kind, share in SHARES.items()}
    writers: dict[str, Callable[[int], WordFile | SheetFile | SlideFile]] = {
        "docx": WordFile, "xlsx": SheetFile, "pptx": SlideFile,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for kind, writer in writers.items():
        for number in range(made[kind]):
            path = folder / f"{kind}{number:03}.{kind}"
            cases.append(Case(path, kind, writer(seed * 10_000 + number).write(path)))
    for kind, of in (("odt", "docx"), ("ods", "xlsx")):
        sources = [case for case in cases if case.kind == of][-made[kind] :]
        convert([case.path for case in sources], kind, folder)
        cases += [Case(folder / f"{case.path.stem}.{kind}", kind, case.planted) for case in sources]
    return cases


def differences(folder: Path, seed: int, files: int) -> Iterator[tuple[str, Path, int, list[Difference]]]:
    """Make and compare all files; yield the format, the file, the number of tokens compared, and what differs."""
    cases = make_files(folder / "files", seed, files)
    of = {kind: [case for case in cases if case.kind == kind] for kind in SHARES}
    for kind in SHARES:
        paths = [case.path for case in of[kind]]
        if kind in {"docx", "odt"}:
            convert(paths, _TEXT_FILTER, folder / f"text-{kind}")
        if kind in {"docx", "odt", "pptx"}:
            convert(paths, "pdf", folder / f"pdf-{kind}")
        else:
            convert(paths, _CSV_FILTER, folder / f"csv-{kind}")
    pdfs = {kind: of[kind][: max(1, round(share * files / _ALL_FILES))] for kind, share in PDF_SHARES.items()}
    convert([case.path for case in pdfs["xlsx"]], "pdf", folder / "pdf-xlsx")
    for case in cases:
        try:
            ours = read(case.path).text
        except ReadError as error:
            yield case.kind, case.path, 0, [Difference(case.path.name, "unread", "file", "", str(error), "")]
            continue
        if case.kind in {"xlsx", "ods"}:
            theirs = sheets_of(case.path, folder / f"csv-{case.kind}")
            yield case.kind, case.path, *compare_sheets(case.path, case.planted, ours, theirs)
            continue
        texts = [pdf_text(folder / f"pdf-{case.kind}" / f"{case.path.stem}.pdf")]
        if case.kind != "pptx":
            written = folder / f"text-{case.kind}" / f"{case.path.stem}.txt"
            texts.insert(0, written.read_text(encoding="utf-8-sig"))
        yield case.kind, case.path, *compare_text(case.path, case.planted, ours, texts)
    for kind, some in pdfs.items():
        for case in some:
            path = folder / f"pdf-{kind}" / f"{case.path.stem}.pdf"
            texts = [pdf_text(path), pdf_text(path, "-layout")]
            yield f"pdf of {kind}", path, *compare_text(path, case.planted, read(path).text, texts)


def main() -> None:
    """Compare all files and print the counts by format and by kind of difference."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--files", type=int, default=_ALL_FILES, help="Office files; half as many PDFs are compared")
    parser.add_argument("--folder", type=Path, help="where the files and conversions stay; else they are removed")
    parser.add_argument("--examples", type=int, default=1, help="of each kind of difference")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    for program in ("soffice", "pdftotext"):
        if not shutil.which(program):
            parser.error(f"{program} is not installed; install it as the docstring of this module says")
    with tempfile.TemporaryDirectory() as temporary:
        result = measured(arguments.folder or Path(temporary), arguments.seed, arguments.files, arguments.examples)
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _coarse(kind: str, difference: Difference) -> str:
    """Return what groups the differences: what happened in a PDF does not depend on the features of its source."""
    if not kind.startswith("pdf") or difference.feature.endswith("joined here"):
        return difference.feature
    return "number" if any(map(str.isdigit, difference.token)) else "word"


def measured(folder: Path, seed: int, files: int, examples: int) -> dict[str, Any]:
    """Return the counts by format, with examples of each kind of difference."""
    formats: dict[str, dict[str, Any]] = {}
    for kind, _, tokens, found in differences(folder, seed, files):
        empty = {"files": 0, "tokens": 0, "unexplained_by_direction": Counter[str](), "by_rule": {}, "unexplained": {}}
        one = formats.setdefault(kind, empty)
        one["files"] += 1
        one["tokens"] += tokens
        for difference in found:
            if rule := rule_of(kind, difference):
                groups, name = one["by_rule"], f"{rule.whose}: {rule.name}"
            else:
                groups, name = one["unexplained"], f"{difference.direction}: {_coarse(kind, difference)}"
                one["unexplained_by_direction"][difference.direction] += 1
            group = groups.setdefault(name, {"count": 0, "files": set[str](), "examples": []})
            group["count"] += 1
            group["files"].add(difference.file)
            if len(group["examples"]) < examples:
                group["examples"].append(difference._asdict())
    for one in formats.values():
        for groups in (one["by_rule"], one["unexplained"]):
            for group in groups.values():
                group["files"] = len(group["files"])
        one["by_rule"] = dict(sorted(one["by_rule"].items()))
        one["unexplained"] = dict(sorted(one["unexplained"].items(), key=lambda pair: -pair[1]["count"]))
    return {"seed": seed, "formats": formats, "rules": {f"{rule.whose}: {rule.name}": rule.reason for rule in RULES}}


if __name__ == "__main__":
    main()
