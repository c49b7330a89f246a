"""Say what belongs to an answer beside its text, in the same words in every interface: warnings, and its sources."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from local_rag.answer_records import CORRECTED, Answer, Quote, TableAnswer
from local_rag.answering.translations import translated
from local_rag.answering.units import split_units
from local_rag.display import Name, display_path, one_line, provenance_as_text
from local_rag.passage_records import Passage
from local_rag.text.sheet_rows import ROW

_SURE, _HALF = 0.85, 0.5  # a probability below the first is told, one below the second makes an answer doubtful
_MOST_LINES, _LONGEST_LINE, _LONGEST_QUOTE = 10, 300, 4000  # of a quotation; the last two in characters
_SNIPPET, _LONGEST_HEADING = 200, 120  # characters


@dataclass(frozen=True, slots=True)
class SourceLines:
    """A source below an answer: its number (None if it is not cited), its place, and the lines of each quotation."""

    number: int | None
    place: str
    quotes: tuple[tuple[str, ...], ...]


def is_doubtful(answer: Answer) -> bool:
    """Return whether an answer is less probable than those that are given; without a calibration, the model decides."""
    if answer.probability is not None:
        return answer.probability < (_HALF if answer.threshold is None else answer.threshold)
    return answer.log_odds is not None and answer.log_odds < 0


def remarks(answer: Answer, name: Name, changed: Sequence[str] = ()) -> list[str]:
    """Return what a reader must know of an answer, one line each, in the language of the question.

    `changed` are the paths of cited documents whose files are no longer as they were indexed; `name` shortens paths.
    """
    return [one_line(remark) for remark in _remarks(answer, name, changed)]


def _remarks(answer: Answer, name: Name, changed: Sequence[str]) -> Iterator[str]:
    asked = answer.question
    for correction in answer.corrections:
        yield translated(CORRECTED, asked, searched=correction.searched, typed=correction.typed)
    if answer.reason:
        yield answer.reason
    if answer.answered and is_doubtful(answer):
        yield translated("Doubtful; read the quotation before you rely on this.", asked)
    elif answer.answered and answer.probability is not None and answer.probability < _SURE:
        yield translated("Probably right; read the quotation.", asked)
    for one in answer.support:
        if not one.supported and one.missing:
            words = ", ".join(one.missing)
            yield translated(
                "Not in what it cites: {words}, in “{sentence}”", asked, words=words, sentence=one.sentence
            )
        elif not one.supported:
            yield translated("Not in any source: “{sentence}”", asked, sentence=one.sentence)
    if answer.look_alikes and answer.citations:
        others = "; ".join(f"{one.title} ({name(one.location)})" for one in answer.look_alikes)
        said = "This answer is about {about}. Similar passages are in {others}."
        yield translated(said, asked, about=answer.citations[0].passage.title, others=others)
    newest = dict.fromkeys(one.passage.newest for one in answer.citations if one.passage.newest)
    if newest and answer.answered and not answer.versions:
        said = "This stands in an older version; the newest is {places}."
        yield translated(said, asked, places=", ".join(map(name, newest)))
    if changed:
        places = ", ".join(map(name, changed))
        yield translated("Changed or gone since it was indexed: {places}.", asked, places=places)


def sources_title(answer: Answer) -> str:
    """Return the words above the sources of an answer, or above what came closest to one."""
    return translated("Sources:" if answer.citations else "Closest:", answer.question)


def sources_of(answer: Answer, name: Name = display_path) -> list[SourceLines]:
    """Return the places that an answer cites, with what it stands on word for word; of a refusal, what came closest.

    A text that only quotes or lists needs no quotation below it.
    """
    if not answer.citations:
        return [SourceLines(None, place_of(one, name), _snippet(one)) for one in answer.closest]
    if answer.table:
        return list(_tables_of(answer.table, name))
    text, only_quotes = " ".join(answer.text.split()), not answer.answered or answer.found is not None
    found = []
    for citation in answer.citations:
        own = [one for one in answer.quotes if one.citation == citation.number]
        told = [one for one in own if not (only_quotes or _is_quoted_in(one, text))]
        quotes = tuple(_quote_lines(citation.passage, one) for one in told)
        place = place_of(citation.passage, name, own[0].start if own else 0)
        found.append(SourceLines(citation.number, place, quotes))
    return found


def _tables_of(table: TableAnswer, name: Name) -> Iterator[SourceLines]:
    for number, one in enumerate(table.sources, start=1):
        yield SourceLines(number, one_line(", ".join(filter(None, (name(one.path), one.place)))), ())


def sources_as_lines(answer: Answer, name: Name = display_path) -> Iterator[str]:
    """Yield the sources of an answer as lines of text: their title, and each place with its quotations below it."""
    sources = sources_of(answer, name)
    if sources:
        yield sources_title(answer)
    for source in sources:
        yield f"  {'' if source.number is None else f'[{source.number}] '}{source.place}"
        yield from (f"      {line}" for quote in source.quotes for line in quote)


def place_of(passage: Passage, name: Name = display_path, start: int = 0) -> str:
    """Return where to look a passage up, from the offset `start` of its text on, as one line.

    It holds the path with line or page, the heading or sheet, the row of a sheet, the document's origin, and copies.
    """
    before = passage.text[:start]
    line = None if passage.line is None else passage.line + before.count("\n")
    heading = one_line(_heading_at(passage, start))
    if len(heading) > _LONGEST_HEADING:
        heading = f"{heading[:_LONGEST_HEADING]}..."
    row = ROW.match(passage.text, before.rfind("\n") + 1)
    parts = [name(replace(passage, line=line).location), heading and f'"{heading}"', f"row {row['row']}" if row else ""]
    place = ", ".join(filter(None, parts))
    origin = provenance_as_text(passage.provenance)
    copies = f"; also in {', '.join(map(name, passage.also_in))}" if passage.also_in else ""
    return one_line(f"{place} ({origin}){copies}" if origin else f"{place}{copies}")


def _heading_at(passage: Passage, start: int) -> str:
    """Return the nearest heading above a place in a passage, empty if it is only the title."""
    above = [unit.heading for unit in split_units([passage]) if unit.start <= start]
    found = (above[-1] if above else "") or next(iter(passage.headings[-1:]), "")
    return "" if found == passage.title else found


def _quote_lines(passage: Passage, quote: Quote) -> tuple[str, ...]:
    """Return the lines of a quotation; a row of a table stands below the header."""
    head = ""
    if quote.text.lstrip().startswith("|"):
        head = passage.table_header.partition("\n")[0]
        for line in reversed(passage.text[: quote.start].split("\n")[:-1]):
            if not line.lstrip().startswith("|"):
                break
            head = line
    return _lines(f"{head}\n{quote.text}" if head else quote.text)


def _lines(text: str) -> tuple[str, ...]:
    """Return quoted text between quotation marks in its own lines, at most as many and as long as people read."""
    whole = textwrap.dedent(_shortened(text, _LONGEST_QUOTE).expandtabs(4)).splitlines()
    lines = [_shortened(one_line(line.rstrip()), _LONGEST_LINE) for line in whole if line.strip()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], "..."]
    # Behind the quotation mark of the first line, so that all begin below each other.
    first, *others = lines or [""]
    lines = [f'"{first.lstrip()}', *(f" {line}" for line in others)]
    return (*lines[:-1], f'{lines[-1]}"')


def _snippet(passage: Passage) -> tuple[tuple[str, ...], ...]:
    """Return the sentence of a passage that fits best, or else its beginning, as a quotation of one line."""
    start, end = passage.best if any(passage.best) else (0, len(passage.text))
    text = " ".join(passage.text[start : min(end, start + _LONGEST_QUOTE)].split())
    return (_lines(_shortened(text, _SNIPPET)),) if text else ()


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} ..."


def _is_quoted_in(quote: Quote, text: str) -> bool:
    """Return whether a quotation is one in a text as well, in which white space is one blank."""
    said = " ".join(quote.text.split())
    marked = (f"\u201c{said}\u201d", f"- {said} [")
    return ("\n" in quote.text.strip() and said in text) or any(one in text for one in marked)
