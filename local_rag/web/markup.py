"""Render an answer of a model: a little Markdown becomes HTML, everything else stays text.

The result contains only these elements: p, ul, ol, li, pre, code, strong, links to the sources that the answer may
cite, and notes. No address, attribute or element is ever taken from the text.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_BULLET, _NUMBER = re.compile(r"\s{0,8}[-*\u2022]\s+(.*)"), re.compile(r"\s{0,8}\d{1,3}[.)]\s+(.*)")
_INLINE = re.compile(r"`([^`\n]{1,500})`|\*\*([^*\n]{1,500})\*\*|\[(\d{1,3}(?:, \d{1,3})*)\]")
_NOTE = Markup('<span class="note">{}</span>')
# They mark the position of a note until the text is rendered: private-use characters, which are removed from the text.
_OPEN, _CLOSE = "\ue000", "\ue001"
_PRIVATE = str.maketrans({_OPEN: "\ufffd", _CLOSE: "\ufffd"})


@dataclass(frozen=True, slots=True)
class _Sources:
    """The numbers that an answer may cite, and the beginning of the ids of their cards."""

    numbers: frozenset[int]
    anchor: str


def show_answer(
    text: str, sources: Collection[int] = (), *, anchor: str = "source", notes: Sequence[tuple[int, Markup]] = ()
) -> Markup:
    """Return an answer as markup; `[n]` of one of the `sources` leads to the card of that number.

    Each of the `notes` has the offset in the text after which it stands; they are in order.
    """
    text, done, parts = text.translate(_PRIVATE), 0, list[str]()
    for number, (end, _) in enumerate(notes):
        parts += [text[done:end], f"{_OPEN}{number}{_CLOSE}"]
        done = end
    shown = str(Markup("\n").join(_blocks("".join([*parts, text[done:]]), _Sources(frozenset(sources), anchor))))
    for number, (_, note) in enumerate(notes):
        mark, whole = f"{_OPEN}{number}{_CLOSE}", _NOTE.format(note.translate(_PRIVATE))
        shown = shown.replace(mark, f" {whole}") if mark in shown else f"{shown}\n<p>{whole}</p>"
    return Markup(shown)  # noqa: S704  own blocks and notes, with all text escaped


def _blocks(text: str, sources: _Sources) -> Iterator[Markup]:
    parts = text.split("```")
    for number, part in enumerate(parts):
        if number % 2 and number < len(parts) - 1:
            language, newline, code = part.partition("\n")
            yield Markup("<pre><code>{}</code></pre>").format(code.strip("\n") if newline else language)
        else:
            yield from _text_blocks(part if number % 2 == 0 else f"```{part}", sources)


def _text_blocks(text: str, sources: _Sources) -> Iterator[Markup]:
    kind, lines = "p", list[Markup]()
    for line in (*text.splitlines(), ""):
        bullet, number = _BULLET.fullmatch(line), _NUMBER.fullmatch(line)
        now = "ul" if bullet else "ol" if number else "p"
        if lines and (now != kind or not line.strip()):
            yield _block(kind, lines)
            lines = []
        kind = now
        if line.strip():
            item = bullet or number
            lines.append(_inline(item[1] if item else line.strip(), sources))


def _block(kind: str, lines: list[Markup]) -> Markup:
    if kind == "p":
        return Markup("<p>{}</p>").format(Markup("\n").join(lines))
    items = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<ul>{}</ul>").format(items) if kind == "ul" else Markup("<ol>{}</ol>").format(items)


def _inline(line: str, sources: _Sources) -> Markup:
    shown, done = Markup(""), 0
    for found in _INLINE.finditer(line):
        shown += escape(line[done : found.start()])
        code, strong, numbers = found.groups()
        if code is not None:
            shown += Markup("<code>{}</code>").format(code)
        elif strong is not None:
            shown += Markup("<strong>{}</strong>").format(strong)
        else:
            shown += _citation(found[0], [int(number) for number in numbers.split(", ")], sources)
        done = found.end()
    return shown + escape(line[done:])


def _citation(text: str, numbers: list[int], sources: _Sources) -> Markup:
    if not sources.numbers.issuperset(numbers):
        return escape(text)
    link = Markup('<a class="cite" href="#{1}-{0}" aria-label="source {0}">[{0}]</a>')
    return Markup(" ").join(link.format(number, sources.anchor) for number in numbers)
