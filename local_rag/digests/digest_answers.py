"""Answer questions about whole documents by code: what changed between two of them, what they are about.

What the plan of a question names must be documents of the library: any other question is searched and answered as
usual.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import product

from local_rag.answer_records import Answer, Citation, Quote
from local_rag.catalogue.contents import WholeDocument
from local_rag.digests.brief import DEFAULT_LINES, LISTS, Brief, write_brief
from local_rag.digests.differences import Change, compare
from local_rag.digests.named_documents import NamedDocuments
from local_rag.digests.output import headings_of, headline
from local_rag.digests.statements import DocumentText, Place
from local_rag.passage_records import Passage
from local_rag.plan_records import Plan
from local_rag.store.database import StoredDocument
from local_rag.text.quantities import find_numbers
from local_rag.text.tokens import keyword_tokens

_MOST_CHANGES = 20  # that an answer names
_MOST_BRIEFED = 20  # documents that a question may sum up
_LISTED = 3  # lines of each list of a brief that an answer shows
_CORRESPONDS = 0.3  # the share of statements in common from which two documents are compared
_MOST_FAMILIES, _MOST_CHARACTERS = 10, 2_000_000  # that are compared for a question that names no document


def answer_digest(question: str, plan: Plan, named: NamedDocuments) -> Answer | None:
    """Answer a question by the changes or the summary that its plan asks for; None if it names no such documents."""
    answering = _Answering(question, named)
    return answering.changes(plan) if plan.kind == "changes" else answering.brief(plan)


class _Answering:
    """Answer one question; the passages that it cites are numbered as they come."""

    def __init__(self, question: str, named: NamedDocuments) -> None:
        self._question, self._named = question, named
        self._documents: dict[str, WholeDocument] = {}
        self._citations: list[Citation] = []
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._quotes: list[Quote] = []

    def changes(self, plan: Plan) -> Answer | None:
        """Say what changed between two documents, or between the two newest versions of one."""
        aspect = set(keyword_tokens(plan.aspect))
        if not plan.documents:
            return self._of_subject(aspect)
        first, *others = plan.documents
        if others and (found := self._of_pair(first, others[0], aspect)):
            return found
        family = self._named.family(self._named.meant(" ".join(plan.documents)))
        return self._compared(family[1].id, family[0].id, aspect, is_family=True) if family else None

    def brief(self, plan: Plan) -> Answer | None:
        """Sum up documents; one with versions by the newest. What is asked of one subject in them is not summed up."""
        if plan.aspect:
            return None
        if not plan.documents and self._named.has_words_of(self._question):
            return None  # it names a document that its plan has missed
        found = [one for name in plan.documents for one in self._newest(name)] if plan.documents else self._named.all
        lengths = [value for number in find_numbers(plan.length) for value in number.values]
        return self._brief(found, min(int(lengths[0]), DEFAULT_LINES) if lengths and lengths[0] >= 1 else DEFAULT_LINES)

    def _newest(self, name: str) -> Sequence[StoredDocument]:
        found = self._named.meant(name)
        if family := self._named.family(found):
            return [one for one in found if one.path == family[0].path] or found[:1]
        return found

    def _brief(self, documents: Sequence[StoredDocument], lines: int) -> Answer | None:
        if not 0 < len(documents) <= _MOST_BRIEFED:
            return None
        brief = write_brief([self._open(one.id) for one in documents], lines)
        return self._done("\n".join(self._brief_lines(brief))) if brief.lines else None

    def _brief_lines(self, brief: Brief) -> Iterator[str]:
        listed = [(name, brief.lists[kind][:_LISTED]) for kind, name in LISTS.items()]
        for heading, lines in (*headings_of(brief), *listed):
            if lines:
                yield f"{heading}:"
                yield from (f"- {self._cited(line.place)}" for line in lines)

    def _of_pair(self, first: str, second: str, aspect: AbstractSet[str]) -> Answer | None:
        """Compare the two documents that are named so; one may be named by what tells its version only."""
        before, after = self._named.meant(first), self._named.meant(second)
        if len(before) != 1 or len(after) != 1:
            some = product(before[:_MOST_BRIEFED], after[:_MOST_BRIEFED])
            pairs = [pair for pair in some if pair[0].id != pair[1].id and self._named.family(pair)]
            if len(pairs) != 1:
                return None
            before, after = [pairs[0][0]], [pairs[0][1]]
        if before[0].id == after[0].id:
            return None
        is_family = bool(self._named.family([before[0], after[0]]))
        return self._compared(before[0].id, after[0].id, aspect, is_family=is_family)

    def _compared(self, before: int, after: int, aspect: AbstractSet[str], *, is_family: bool) -> Answer | None:
        """Say the changes between two documents, of an aspect only those that have all its words, if any does."""
        texts = self._open(before), self._open(after)
        difference = compare(*texts)
        if not is_family and difference.common < _CORRESPONDS:
            return None
        if aspect and (some := [one for one in difference.changes if aspect <= _words_of(one)]):
            difference = replace(difference, changes=tuple(some))
        lines = [headline(difference, self._named.place_names)]
        lines += [f"- {self._change(one)}" for one in difference.changes[:_MOST_CHANGES]]
        if len(difference.changes) > _MOST_CHANGES:
            lines.append(f"And {len(difference.changes) - _MOST_CHANGES} more; `local-rag diff` lists all.")
        if not difference.changes:
            self._cited(texts[1].place(0, min(len(texts[1].text), 200)))
        return replace(self._done("\n".join(lines)), named=(difference.before, difference.after))

    def _of_subject(self, wanted: AbstractSet[str]) -> Answer | None:
        """Answer from the changed statements of the newest versions that have all words of a subject."""
        families = self._named.families(_MOST_FAMILIES + 1)
        if not wanted or not 0 < len(families) <= _MOST_FAMILIES:
            return None
        size, found = 0, list[Change]()
        for newest, before in (family[:2] for family in families):
            texts = self._open(before.id), self._open(newest.id)
            size += sum(len(one.text) for one in texts)
            if size > _MOST_CHARACTERS:
                return None
            found += [one for one in compare(*texts).changes if one.values and wanted <= _words_of(one)]
        return self._done("\n".join(f"- {self._change(one)}" for one in found[:_MOST_CHANGES])) if found else None

    def _change(self, change: Change) -> str:
        places = [place for place in (change.before, change.after) if place]
        return f"{change.summary} {' -> '.join(map(self._cited, places))}"

    def _open(self, document_id: int) -> DocumentText:
        whole = self._named.whole(document_id)
        self._documents[whole.path] = whole
        return self._named.text(whole)

    def _cited(self, place: Place) -> str:
        number = self._numbers.setdefault((place.path, place.start, place.end), len(self._citations) + 1)
        if number > len(self._citations):
            self._citations.append(Citation(number, _passage(self._documents[place.path], place)))
            self._quotes.append(Quote(place.text, number, 0, len(place.text)))
        return f"\u201c{' '.join(place.text.split())}\u201d [{number}]"

    def _done(self, text: str) -> Answer:
        passages = tuple(one.passage for one in self._citations)
        return Answer(self._question, text, "answered", tuple(self._citations), tuple(self._quotes), passages=passages)


def _passage(document: WholeDocument, place: Place) -> Passage:
    """Return a quotation as a passage of the chunk that it begins in."""
    chunk = next((one for one in reversed(document.passages) if one.start <= place.start), document.passages[0])
    return replace(
        chunk,
        text=place.text,
        start=place.start,
        end=place.end,
        page=place.page,
        page_label=place.page_label,
        line=place.line,
        end_line=place.line and place.line + place.text.count("\n"),
        table_header="",
    )


def _words_of(change: Change) -> set[str]:
    places = [place for place in (change.before, change.after) if place]
    return set(keyword_tokens(" ".join([change.about, *(f"{one.text} {one.section} {one.title}" for one in places)])))
