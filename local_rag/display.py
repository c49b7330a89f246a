"""Show records: make text from documents and web pages safe to print, shorten paths, write records as JSON."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from local_rag.answer_records import SHOWN_TABLE_ROWS, Answer, Found, TableAnswer, VersionValue
from local_rag.document_records import Provenance, heading_path
from local_rag.passage_records import Passage
from local_rag.progress_records import Stage

# C0 (except tab and newline), DEL and C1 can move the cursor or change colours; bidirectional controls reorder text;
# lone surrogates, from file names that are not UTF-8, cannot be printed.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile("[\n\t\u2028\u2029]")
# Where a cell of CSV may begin: of the text, or behind a sign that some program takes for the separator of cells, even
# within quotation marks. Full-width signs begin formulas, too.
_CELL_START = r"((?:\A|[,;|\t\r\n])(?:[^\S\t\r\n]|\")*+)"
_FORMULA = re.compile(_CELL_START + "(?='*[=+@\uff0b\uff0d\uff1d\uff20-])")
_MARKED_FORMULA = re.compile(_CELL_START + "'(?='*[=+@\uff0b\uff0d\uff1d\uff20-])")
Name = Callable[[Path | str], str]
STAGES: dict[Stage, str] = {
    "read": "Reading",
    "compare": "Comparing documents",
    "contextualize": "Writing contexts",
    "embed": "Embedding",
    "publish": "Publishing",
    "ask": "Asking",
    "answer": "Answering",
    "draft": "Drafting",
    "check": "Checking",
    "find": "Examining",
    "extract": "Extracting",
    "verify": "Verifying",
}
_SINGULAR = {"contain": "contains", "do": "does", "have": "has", "lie": "lies", "are": "is"}
_LONG_SECONDS = 90  # from which a duration is told in minutes
_SNIPPET_CHARACTERS = 320
_CHANCE = 0.05


def printable(text: str) -> str:
    """Replace characters that a terminal would obey or cannot print, except newline and tab, with U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


def xml_text(text: str) -> str:
    """Replace characters that no XML holds, and so no Office file, with U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Make a name or title printable on one line, so that it cannot look like several lines."""
    return printable(_BREAKS.sub(" ", text))


def printable_json(value: object, *, indent: int | None = None) -> str:
    """Write a value, including records and paths, as JSON; only characters that a terminal would obey are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_json_value)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _json_value(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(value) if isinstance(value, Mapping) else str(value)


def display_path(path: Path | str) -> str:
    """Shorten a path or location below the working directory to what a user would type."""
    return str(path).removeprefix(f"{Path.cwd()}/")


def names_below(roots: Iterable[Path]) -> Name:
    """Return a function that names a path or location from its indexed folder on, for who knows no other folder."""
    known = sorted(((str(root), f"{str(root.parent).rstrip('/')}/") for root in roots), key=lambda one: -len(one[0]))

    def name(path: Path | str) -> str:
        text = str(path)
        return next((text.removeprefix(parent) for root, parent in known if text.startswith(root)), text)

    return name


def passage_as_dict(passage: Passage, name: Name = display_path) -> dict[str, Any]:
    """Return a passage as a dictionary for JSON, with `name` for its places."""
    return {
        "kind": passage.kind,
        "location": name(passage.location),
        "path": name(passage.path),
        "title": passage.title,
        "url": passage.provenance.url or None,
        "date": passage.provenance.date or None,
        "author": passage.provenance.author or None,
        "tags": passage.provenance.tags or None,
        "headings": passage.headings,
        "page": passage.page,
        "page_label": passage.page_label or None,
        "ocr": passage.ocr is not None,
        "ocr_confidence": passage.ocr,
        "table_header": passage.table_header or None,
        "line": passage.line,
        "end_line": passage.end_line,
        "text": passage.text,
        "best": passage.best if any(passage.best) else None,
        "context": passage.context,
        "context_by": passage.context_by,
        "terms": passage.terms,
        "newest_version": name(passage.newest) if passage.newest else None,
        "also_in": [name(location) for location in passage.also_in],
        "score": passage.score,
        "weak": passage.weak,
        "ranks": {hit.list_name: {"rank": hit.rank, "score": hit.score} for hit in passage.hits},
    }


def provenance_as_text(provenance: Provenance) -> str:
    """Return the known origin of a document as text: `https://example.org/a, 2024-05-01, Ada Byron`."""
    return ", ".join(part for part in (provenance.url, provenance.date, provenance.author) if part)


def answer_as_dict(answer: Answer, name: Name = display_path) -> dict[str, Any]:
    """Return an answer as a dictionary for JSON, with `name` for places."""
    return {
        "question": answer.question,
        "outcome": answer.outcome,
        "answered": answer.answered,
        "answer": answer.text,
        "probability": answer.probability,
        "threshold": answer.threshold,
        "log_odds": answer.log_odds,
        "reason": answer.reason,
        "quotes": [{"text": quote.text, "citation": quote.citation} for quote in answer.quotes],
        "shown": [_json_value(shown) for shown in answer.shown],
        "citations": [
            {"number": citation.number, **passage_as_dict(citation.passage, name)} for citation in answer.citations
        ],
        "read": [passage_as_dict(passage, name) for passage in answer.read],
        "tokens": answer.tokens,
        "seconds": round(answer.seconds, 3),
        "look_alikes": [passage_as_dict(passage, name) for passage in answer.look_alikes],
        "closest": [passage_as_dict(passage, name) for passage in answer.closest],
        "support": [_json_value(support) for support in answer.support],
        "passages": [passage_as_dict(passage, name) for passage in answer.passages],
        "corrections": [_json_value(one) for one in answer.corrections],
        "versions": [_json_value(one) | {"path": name(one.path)} for one in answer.versions],
        "found": found_as_dict(answer.found, name) if answer.found else None,
        "table": table_as_dict(answer.table, name) if answer.table else None,
        "answered_from": answered_from(answer),
        "plan": answer.plan.as_dict() if answer.plan else None,
    }


def answered_from(answer: Answer) -> str:
    """Return from what a question was answered: the rows of tables, a search of all documents, or passages."""
    return "rows" if answer.table else "documents" if answer.found else "passages"


def found_as_dict(found: Found, name: Name = display_path) -> dict[str, Any]:
    """Return what was found in all documents as a dictionary for JSON, with `name` for paths."""
    return {
        "kind": found.kind,
        "rule": found.rule,
        "count": found.count,
        "documents": [
            {
                "path": name(place.passage.path),
                "line": place.passage.line,
                "text": place.passage.text,
                "occurrences": place.occurrences,
            }
            for place in found.places
        ],
        "complete": found.complete,
    }


def found_as_csv(found: Found, name: Name = display_path) -> str:
    """Return what was found in all documents as a table in CSV; no cell can act as a formula of a spreadsheet."""
    passages = ((place.passage, place.occurrences) for place in found.places)
    rows = ([name(one.path), one.line, one.page, often, one.text] for one, often in passages)
    return rows_as_csv(["path", "line", "page", "occurrences", "text"], rows)


def number_as_text(value: str | float | None, unit: str = "") -> str:
    """Return a value as it is shown: 12,345.60 EUR; a text or a date as it is."""
    if value is None:
        return "no value"
    if isinstance(value, str):
        return value
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if abs(value) >= 1 else f"{value:,.4g}"
    return f"{number} {unit}".strip().replace(" %", " %")


def cell_as_text(value: str | float | None) -> str:
    """Return a value of a row as it is shown."""
    if isinstance(value, float):
        return f"{value:.10g}"
    return "" if value is None else str(value)


_MOST_LISTED, _MOST_PLACES = 50, 3  # values of an answer, and tables in its text


def table_lines(table: TableAnswer) -> list[str]:
    """Return what was computed from rows as lines: the value, how it was computed, and what is missing."""
    if table.value is not None:
        shown = number_as_text(table.value, table.unit)
        if len(table.values) == 1 and table.values[0].value != table.value:
            shown += f": {number_as_text(table.values[0].value, table.values[0].unit)}"
        lines = [shown]
        if len(table.values) > 1:
            lines += _value_lines(table)
    elif all(one.label == str(one.value) for one in table.values):
        names = [number_as_text(one.value, one.unit) for one in table.values[:_MOST_LISTED]]
        more = len(table.values) - len(names)
        lines = [f"{', '.join(names)}{f' and {more} more' if more > 0 else ''}"]
    else:
        first, *rest = _value_lines(table)
        lines = [first.removeprefix("- "), *rest] if len(table.values) == 1 else ["By group:", first, *rest]
    places = "; ".join(
        f"{one.path.rpartition('/')[2]}{f', {one.place}' if one.place else ''}" for one in table.sources[:_MOST_PLACES]
    )
    more_places = f"; and {more} more" if (more := len(table.sources) - _MOST_PLACES) > 0 else ""
    said = f"{table.said[:1].upper()}{table.said[1:]} ({places}{more_places})."
    return [*map(one_line, lines), one_line(said), *map(one_line, table.notes)]


def _value_lines(table: TableAnswer) -> list[str]:
    lines = [f"- {one.label}: {number_as_text(one.value, one.unit)}" for one in table.values[:_MOST_LISTED]]
    more = len(table.values) - len(lines)
    return [*lines, f"- and {more} more"] if more > 0 else lines


def row_lines(table: TableAnswer, width: int) -> list[str]:
    """Return the first rows of what was computed as lines with columns below each other."""
    rows = [map(cell_as_text, row) for row in table.rows[:SHOWN_TABLE_ROWS]]
    return lines_of_cells([[shortened(cell, width) for cell in row] for row in (table.columns, *rows)]) if rows else []


def lines_of_cells(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with the cells of a column below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def shortened(text: str, most: int) -> str:
    """Return a text as one line of at most this many characters."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def table_as_dict(table: TableAnswer, name: Name = display_path) -> dict[str, Any]:
    """Return what was computed from rows as a dictionary for JSON, with `name` for paths."""
    return {
        "value": table.value,
        "unit": table.unit or None,
        "said": table.said,
        "values": [{"label": one.label, "value": one.value, "unit": one.unit or None} for one in table.values],
        "columns": table.columns,
        "rows": table.rows,
        "row_count": table.count,
        "sources": [
            {
                "path": name(one.path),
                "table": one.table,
                "sheet": one.sheet or None,
                "cells": one.cells or None,
                "page": one.page,
                "page_label": one.page_label or None,
            }
            for one in table.sources
        ],
        "sql": table.sql,
        "rows_sql": table.rows_sql,
        "notes": table.notes,
    }


def rows_as_csv(columns: Iterable[str], rows: Iterable[Iterable[str | float | None]]) -> str:
    """Return rows as a table in CSV; no cell of text can act as a formula of a spreadsheet."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow([csv_cell(one_line(name)) for name in columns])
    for row in rows:
        writer.writerow([csv_cell(one_line(value)) if isinstance(value, str) else value for value in row])
    return table.getvalue()


def csv_cell(text: str) -> str:
    """Return text for a cell of CSV in which nothing is a formula, whatever a program takes for the end of a cell.

    An apostrophe stands before each sign that could begin a formula there.
    """
    return _FORMULA.sub(r"\1'", text)


def csv_text(cell: str) -> str:
    """Return the text of a cell that `csv_cell` has made."""
    return _MARKED_FORMULA.sub(r"\1", cell)


def found_headline(found: Found) -> str:
    """Say how much was found, and by which rule."""
    documents = found.count if found.by_document else len({place.passage.path for place in found.places})
    rule = found.rule
    if documents == 1:
        verb, _, rest = rule.partition(" ")
        rule = f"{_SINGULAR.get(verb, verb)} {rest}".rstrip()
    named = f"{documents:,} {'document' if documents == 1 else 'documents'} that {rule}"
    return named if found.by_document else f"{found.count:,} {'place' if found.count == 1 else 'places'} in {named}"


def version_lines(versions: Iterable[VersionValue], escape: Callable[[str], str] = str) -> list[str]:
    """Say in one line each what other versions of a quoted document say; `escape` makes their texts safe to show."""
    return [
        f"{'Later' if one.newer else 'Earlier'}: \u201c{escape(one_line(one.text))}\u201d "
        f"({one.date}, {escape(one_line(one.path.rpartition('/')[2]))}) [{one.citation}]"
        for one in versions
    ]


def times(count: int) -> str:
    """Say how often something occurs, if that is more than once."""
    return f"{count:,} times" if count > 1 else ""


def counted(number: int, noun: str) -> str:
    """Write a number with what it counts: no chunks, 1 chunk, 2,000 chunks."""
    return f"{number:,} {noun}{'s' if number > 1 else ''}" if number else f"no {noun}s"


def duration(seconds: float) -> str:
    """Return a duration as it is told to a person: about 1 second, about 40 seconds, about 5 minutes."""
    minutes = seconds >= _LONG_SECONDS
    return f"about {counted(round(seconds / 60), 'minute') if minutes else counted(max(1, round(seconds)), 'second')}"


def found_as_lines(found: Found) -> Iterator[str]:
    """Yield what was found in all documents as lines of text: the headline, and each document or place."""
    yield one_line(f"{found_headline(found)}{':' if found.places else '.'}")
    for place in found.places:
        often = times(place.occurrences)
        where = display_path(place.passage.location) + (f" ({often})" if often else "")
        yield one_line(f"  {where}: {' '.join(place.passage.text.split())}")


def passage_as_lines(passage: Passage, *, explain: bool = False) -> tuple[str, ...]:
    """Return a passage as lines of text: location, headings, origin, a snippet and, with `explain`, its ranks."""
    headings = heading_path(passage.title, passage.headings)
    marks = ["the whole document"] * (passage.kind == "document") + ["weak"] * bool(passage.weak)
    marks += [f"older version; the newest is {display_path(passage.newest)}"] * bool(passage.newest)
    lines = [display_path(passage.location), f"{headings} ({', '.join(marks)})" if marks else headings]
    origin, tags = provenance_as_text(passage.provenance), ", ".join(passage.provenance.tags)
    lines += [line for line in (origin, tags and f"tags: {tags}") if line]
    lines.append(_snippet(passage))
    if explain:
        lines.append(", ".join(f"{hit.list_name} #{hit.rank} ({hit.score:.4g})" for hit in passage.hits))
        said = {"what distinguishes the document": passage.terms, "context by the model": passage.sentence}
        lines += [f"{what}: {text}" for what, text in said.items() if text]
    return tuple(map(one_line, lines))


def _snippet(passage: Passage) -> str:
    """Return the part of a passage around the sentence that fits best, or else its beginning, on one line."""
    text = " ".join(passage.text.split())
    begin, end = (len(" ".join(passage.text[:at].split())) for at in passage.best)
    first = 0
    if end > _SNIPPET_CHARACTERS:
        beside = max(0, _SNIPPET_CHARACTERS - (end - begin)) // 2
        first = min(begin - beside, max(begin, len(text) - _SNIPPET_CHARACTERS))
        first = text.find(" ", first, begin) + 1 or first
    shown = text[first : first + _SNIPPET_CHARACTERS].lstrip()
    if first + _SNIPPET_CHARACTERS < len(text):
        shown = shown.rsplit(" ", 1)[0] + " ..."
    return f"... {shown}" if first else shown


def describe_contexts(counts: Mapping[str, int]) -> list[str]:
    """Describe how many contexts there are of each kind."""
    terms, sentences = counts.get("by_terms"), {"by_model": "by the model", "dropped": "dropped"}
    found = [f"{terms:,} of what distinguishes the document"] if terms else []
    return found + [f"{counted(counts[kind], 'sentence')} {how}" for kind, how in sentences.items() if counts.get(kind)]


def gain_as_text(gain: Mapping[str, Any]) -> str:
    """Describe what contexts gain in a library, on which questions, and whether the gain is significant."""
    if gain["drafted"]:
        asked = "drafted questions"
    else:
        asked = "unreviewed questions" if gain["unreviewed"] else "reviewed questions"
    difference = gain["recall_with"] - gain["recall_without"]
    significant = "significant" if min(gain["recall_p"], gain["mrr_p"]) < _CHANCE else "not significant"
    return (
        f"Gain by contexts: recall@5 {gain['recall_with']:.1f} % with them, {gain['recall_without']:.1f} % without "
        f"({difference:+.1f}, p = {gain['recall_p']:.3f}); MRR@10 {gain['mrr_with']:.3f} and {gain['mrr_without']:.3f} "
        f"(p = {gain['mrr_p']:.3f}); {significant}. {gain['stage'].capitalize()}, {gain['questions']} {asked}; "
        f"{gain['contexts']} of {gain['chunks']} chunks have a context ({gain['context']}, {gain['at'][:10]})."
    )
