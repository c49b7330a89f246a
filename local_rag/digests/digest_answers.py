"""Answer questions about whole documents by code: what changed between two of them, what they are about.

The rules know the common wordings only, and what they name must be documents of the library: any other question is
searched and answered as usual.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from local_rag.catalogue.contents import WholeDocument
from local_rag.digests.brief import DEFAULT_LINES, LISTS, Brief, write_brief
from local_rag.digests.differences import Change, compare
from local_rag.digests.named_documents import NamedDocuments
from local_rag.digests.output import headline
from local_rag.digests.statements import DocumentText, Place
from local_rag.records import Answer, Citation, Passage, Quote
from local_rag.store.database import StoredDocument
from local_rag.text.tokens import keyword_tokens

DigestKind = Literal["changes", "changes of versions", "changes of a subject", "brief", "brief if named so"]
_LONGEST = 400  # characters of a question that is looked at
_POLITE = r"(?:please |can you |could you |would you ){0,3}+"
_GIVE = r"(?:(?:give|show|list|tell|write|make) (?:me |us )?)?"
_CHANGES = (
    r"(?:what(?: has| have| was| were| is| are|['\u2019]s)? (?:all )?(?:changed|changes|the changes|"
    r"different|the differences?|new)|(?:all |what are )?(?:the )?(?:changes|differences?)|"
    r"how (?:do|does|did)(?= .{1,300} (?:differ|change)\b))"
)
_PAIR = re.compile(
    rf"{_POLITE}{_GIVE}{_CHANGES} (?:between|from) (?P<first>.{{1,200}}?) (?:and|to|vs\.?|versus) "
    r"(?P<second>.{1,200})"
    rf"|{_POLITE}compare (?P<one>.{{1,200}}?) (?:with|to|and|against) (?P<other>.{{1,200}})",
    re.IGNORECASE,
)
_VERSIONS = re.compile(
    rf"{_POLITE}{_GIVE}{_CHANGES} (?:in|of|to|between the versions of|since the (?:last|previous|old) version of"
    r"|between(?= (?:(?:the|our|both|these) )*(?:two|both|(?:old|first) and (?:the )?(?:new|second|latest|current)) )) "
    r"(?P<named>.{1,200})",
    re.IGNORECASE,
)
# "in the leave policy between 2024 and 2026"
_VERSIONS_FROM_TO = re.compile(
    r"(?P<named>.{1,150}?) (?:between|from) (?P<first>\S{1,30}) (?:and|to) (?P<second>\S{1,30})", re.IGNORECASE
)
# "in the new version of the lease", "in the latest lease": the family of the lease is meant.
_VERSION_OF = re.compile(
    r"(?:the |our |this |these )*(?:(?:old|first) and (?:the )?)?"
    r"(?:(?:new|newest|second|latest|last|current|updated|revised|two|both|different) )*"
    r"(?:(?:version|edition|revision|release)s? of )?(?:the |our |my )*",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:is|are|does|do|has|have|can|must|what|when|how|who|which)\b.{0,300}"
    r"\b(?:still|now|new|any ?more|any longer|changed?)\b",
    re.IGNORECASE,
)
_BRIEF = re.compile(
    rf"{_POLITE}{_GIVE}(?:an? )?(?:short |brief |quick )?(?:summari[sz]e|sum up|summary of|brief (?:of|on)|"
    r"overview of) (?P<named>.{1,200})|what(?: is| are|['\u2019]s) (?P<about>.{1,200}?) (?:all )?about",
    re.IGNORECASE,
)
_TELL = re.compile(rf"{_POLITE}tell (?:me|us) about (?P<named>.{{1,200}})", re.IGNORECASE)
_BRIEFS: dict[DigestKind, re.Pattern[str]] = {"brief": _BRIEF, "brief if named so": _TELL}
_EVERYTHING = re.compile(
    r"(?:this|these|it|everything|all(?: of (?:this|it|them))?|(?:this|these|the|all|all the|my|our) "
    r"(?:documents?|files?|library|folder|collection|texts?|papers?))",
    re.IGNORECASE,
)
_ARTICLES = re.compile(r"(?:(?:the|our|my|this|that|a|an|document|file) )*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DigestQuestion:
    """What a question asks of whole documents: one name, or two to be compared; none stands for all documents."""

    kind: DigestKind
    names: tuple[str, ...] = ()


def digest_question(question: str) -> DigestQuestion | None:
    """Return what a question asks of whole documents; None if it may ask for anything else."""
    text = " ".join(question.split()).rstrip(" ?.!")
    if len(text) > _LONGEST:
        return None
    if found := _VERSIONS.fullmatch(text):
        if two := _VERSIONS_FROM_TO.fullmatch(found["named"]):
            named = _bare(two["named"])
            return DigestQuestion("changes", (f"{named} {two['first']}", f"{named} {two['second']}"))
        return DigestQuestion("changes of versions", (_bare(_VERSION_OF.sub("", found["named"], count=1)),))
    if found := _PAIR.fullmatch(text):
        first, second = found["first"] or found["one"], found["second"] or found["other"]
        return DigestQuestion("changes", (_bare(first), _bare(second)))
    for kind, pattern in _BRIEFS.items():
        if found := pattern.fullmatch(text):
            named = next(filter(None, found.groups()))
            return DigestQuestion("brief") if _EVERYTHING.fullmatch(named) else DigestQuestion(kind, (_bare(named),))
    return DigestQuestion("changes of a subject", (text,)) if _SUBJECT.match(text) else None


def _bare(name: str) -> str:
    """Return a name without the articles before it and the marks around it."""
    name = name.strip(" \"'\u201c\u201d\u2018\u2019`?.,")
    return _ARTICLES.sub("", name, count=1) or name


_MOST_CHANGES = 20  # that an answer names
_MOST_BRIEFED = 20  # documents that a question may sum up
_LISTED = 3  # lines of each list of a brief that an answer shows
_CORRESPONDS = 0.3  # the share of statements in common from which two documents are compared
_MOST_FAMILIES, _MOST_CHARACTERS = 10, 2_000_000  # that are compared for a question with "still" or "now"
_ASKS = frozenset(
    keyword_tokens("still now new any more longer changed change what when how who which can must long much")
)


def answer_digest(question: str, asked: DigestQuestion, named: NamedDocuments) -> Answer | None:
    """Answer a question by what it asks of whole documents; None if it names none."""
    return _Answering(question, named).answer(asked)


class _Answering:
    """Answer one question; the passages that it cites are numbered as they come."""

    def __init__(self, question: str, named: NamedDocuments) -> None:
        self._question, self._named = question, named
        self._documents: dict[str, WholeDocument] = {}
        self._citations: list[Citation] = []
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._quotes: list[Quote] = []

    def answer(self, asked: DigestQuestion) -> Answer | None:
        """Answer what is asked, if it names documents."""
        if asked.kind == "changes":
            return self._of_pair(*asked.names)
        if asked.kind == "changes of versions":
            family = self._named.family(self._named.called(asked.names[0]))
            return self._compared(family[1].id, family[0].id, is_family=True) if family else None
        if asked.kind == "changes of a subject":
            return self._of_subject(asked.names[0])
        return self._brief(self._briefed(asked))

    def _briefed(self, asked: DigestQuestion) -> Sequence[StoredDocument]:
        if not asked.names:
            return self._named.all
        found = self._named.called(asked.names[0]) if asked.kind == "brief" else self._named.at(asked.names[0])
        if family := self._named.family(found):
            return [one for one in found if one.path == family[0].path] or found[:1]
        return found

    def _brief(self, documents: Sequence[StoredDocument]) -> Answer | None:
        if not 0 < len(documents) <= _MOST_BRIEFED:
            return None
        brief = write_brief([self._open(one.id) for one in documents], DEFAULT_LINES)
        return self._done("\n".join(self._brief_lines(brief))) if brief.lines else None

    def _brief_lines(self, brief: Brief) -> Iterator[str]:
        titles = dict(zip(brief.documents, brief.titles, strict=True))
        before = ""
        for line in brief.lines:
            place = line.place
            heading = " > ".join(filter(None, (titles[place.path], place.section)))
            if heading != before:
                yield f"{heading}:"
                before = heading
            yield f"- {self._cited(place)}"
        for kind, name in LISTS.items():
            if lines := brief.lists[kind][:_LISTED]:
                yield f"{name}:"
                yield from (f"- {self._cited(line.place)}" for line in lines)

    def _of_pair(self, first: str, second: str) -> Answer | None:
        """Compare the two documents that are named so; one may be named by what tells its version only."""
        before, after = self._named.called(first), self._named.called(second)
        if len(before) != 1 or len(after) != 1:
            some = product(before[:_MOST_BRIEFED], after[:_MOST_BRIEFED])
            pairs = [pair for pair in some if pair[0].id != pair[1].id and self._named.family(pair)]
            if len(pairs) != 1:
                return None
            before, after = [pairs[0][0]], [pairs[0][1]]
        if before[0].id == after[0].id:
            return None
        return self._compared(before[0].id, after[0].id, is_family=bool(self._named.family([before[0], after[0]])))

    def _compared(self, before: int, after: int, *, is_family: bool) -> Answer | None:
        texts = self._open(before), self._open(after)
        difference = compare(*texts)
        if not is_family and difference.common < _CORRESPONDS:
            return None
        lines = [headline(difference, self._named.place_names)]
        lines += [f"- {self._change(one)}" for one in difference.changes[:_MOST_CHANGES]]
        if len(difference.changes) > _MOST_CHANGES:
            lines.append(f"And {len(difference.changes) - _MOST_CHANGES} more; `local-rag diff` lists all.")
        if not difference.changes:
            self._cited(texts[1].place(0, min(len(texts[1].text), 200)))
        return self._done("\n".join(lines))

    def _of_subject(self, question: str) -> Answer | None:
        """Answer from the changed statements of the newest versions that have all words of a question."""
        wanted = set(keyword_tokens(question)) - _ASKS
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
        line=place.line,
        end_line=place.line and place.line + place.text.count("\n"),
        table_header="",
    )


def _words_of(change: Change) -> set[str]:
    places = [place for place in (change.before, change.after) if place]
    return set(keyword_tokens(" ".join([change.about, *(f"{one.text} {one.section} {one.title}" for one in places)])))
