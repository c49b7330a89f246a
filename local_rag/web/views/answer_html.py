"""Render an answer of a model: its Markdown becomes HTML, everything else stays text.

The result contains paragraphs, lists, tables, headings, quotations, code and emphasis, and links to the sources that
the answer may cite. No address, attribute or element is ever taken from the text.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

_RULES = ["blockquote", "code", "fence", "heading", "list", "hr", "table"]
_RULES += ["backticks", "emphasis", "strikethrough", "newline", "escape"]
_CITATION = re.compile(r"\[(\d{1,3}(?:(?:, ?| ?[-\u2013] ?)\d{1,3}){0,20})\]")  # [1], [1, 2], [1-3]
_LENTICULAR = re.compile(r"\u3010(\d{1,3})\u3011")  # as some models write a citation
_MOST_CITED = 50
_HEADING = "h3"  # of any level: the page itself has those above


def show_answer(text: str, sources: Collection[int] = (), *, anchor: str = "source") -> Markup:
    """Return an answer as markup; `[n]` of one of the `sources` leads to the card of that number."""
    environment = {"sources": frozenset(sources), "anchor": anchor}
    shown = _MARKDOWN.render(_LENTICULAR.sub(r"[\1]", text), environment).rstrip("\n")
    return Markup(shown)  # noqa: S704  elements of the rules above, with all text escaped


def _cite(state: StateInline, silent: bool) -> bool:
    """Read a citation; one of anything but the sources stays text."""
    match = _CITATION.match(state.src, state.pos)
    numbers = _numbers(match[1]) if match else []
    if match is None or not numbers or not state.env["sources"].issuperset(numbers):
        return False
    if not silent:
        state.push("citation", "", 0).meta = {"numbers": numbers}
    state.pos = match.end()
    return True


def _numbers(text: str) -> list[int]:
    """Return the numbers of a citation, of which a dash stands for those between."""
    numbers = list[int]()
    for part in text.split(","):
        first, *last = map(int, re.split(r"[-\u2013]", part))
        numbers += range(first, min(last[0], first + _MOST_CITED) + 1) if last else [first]
    return numbers if len(numbers) <= _MOST_CITED else []


def _show_citation(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:
    link = Markup('<a class="cite" href="#{1}-{0}" aria-label="source {0}">[{0}]</a>')
    return Markup(" ").join(link.format(number, env["anchor"]) for number in tokens[index].meta["numbers"])


def _show_fence(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return Markup("<pre><code>{}</code></pre>\n").format(tokens[index].content)


def _show_heading(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    opens, element = tokens[index].nesting == 1, _HEADING
    if index == (
        0 if opens else 2
    ):  # a passage that the answer repeats may begin so: nothing is headed by its first line
        element = "p"
    return f"<{element}>" if opens else f"</{element}>\n"


def _plain_element(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Render an element without its attributes, such as the first number of a list or the alignment of a cell."""
    tokens[index].attrs = {}
    return renderer.renderToken(tokens, index, options, env)


def _make() -> MarkdownIt:
    markdown = MarkdownIt("zero", {"html": False}).enable(_RULES)
    markdown.inline.ruler.before("escape", "citation", _cite)
    for name, rule in (
        ("citation", _show_citation),
        ("fence", _show_fence),
        ("code_block", _show_fence),
        ("heading_open", _show_heading),
        ("heading_close", _show_heading),
        ("ordered_list_open", _plain_element),
        ("th_open", _plain_element),
        ("td_open", _plain_element),
    ):
        markdown.add_render_rule(name, rule)
    return markdown


_MARKDOWN = _make()
