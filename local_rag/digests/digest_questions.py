"""Recognise questions that code answers from whole documents: what changed between two, what some are about.

The rules know the common wordings only, and what they name must be documents of the library: any other question is
searched and answered as usual.
"""

import re
from dataclasses import dataclass
from typing import Literal

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
    rf"{_POLITE}{_GIVE}{_CHANGES} (?:in|of|to|between the versions of|since the (?:last|previous|old) version of) "
    r"(?P<named>.{1,200})",
    re.IGNORECASE,
)
# "in the leave policy between 2024 and 2026"
_VERSIONS_FROM_TO = re.compile(
    r"(?P<named>.{1,150}?) (?:between|from) (?P<first>\S{1,30}) (?:and|to) (?P<second>\S{1,30})", re.IGNORECASE
)
# "in the new version of the lease", "in the latest lease": the family of the lease is meant.
_VERSION_OF = re.compile(
    r"(?:the |our |this )*(?:(?:new|newest|latest|last|current|updated|revised|two|different) )*"
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
    if found := _PAIR.fullmatch(text):
        first, second = found["first"] or found["one"], found["second"] or found["other"]
        return DigestQuestion("changes", (_bare(first), _bare(second)))
    if found := _VERSIONS.fullmatch(text):
        if two := _VERSIONS_FROM_TO.fullmatch(found["named"]):
            named = _bare(two["named"])
            return DigestQuestion("changes", (f"{named} {two['first']}", f"{named} {two['second']}"))
        return DigestQuestion("changes of versions", (_bare(_VERSION_OF.sub("", found["named"], count=1)),))
    if found := _BRIEF.fullmatch(text):
        named = found["named"] or found["about"]
        return DigestQuestion("brief", () if _EVERYTHING.fullmatch(named) else (_bare(named),))
    if found := _TELL.fullmatch(text):
        named = found["named"]
        return (
            DigestQuestion("brief")
            if _EVERYTHING.fullmatch(named)
            else DigestQuestion("brief if named so", (_bare(named),))
        )
    return DigestQuestion("changes of a subject", (text,)) if _SUBJECT.match(text) else None


def _bare(name: str) -> str:
    """Return a name without the articles before it and the marks around it."""
    name = name.strip(" \"'\u201c\u201d\u2018\u2019`?.,")
    return _ARTICLES.sub("", name, count=1) or name
