"""Give the elements of a page the few properties that change what its text means, as its style sheets say.

Those are whether an element is shown, whether it is raised or lowered, and whether it is struck out. What is drawn
where nobody sees it gets `opacity: 0`. A rule that holds only in print, on small screens or while the pointer is above
an element holds for nobody who reads the page.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bs4 import Tag

# Each with what is looked for in its value.
_PROPERTIES = {
    "display": "display",
    "visibility": "visibility",
    "vertical-align": "vertical-align",
    "text-decoration": "text-decoration",
    "text-decoration-line": "text-decoration",
}
_OF_SIGHT = {  # by which an element is drawn and not seen
    name: name
    for name in [
        *("opacity", "font-size", "position", "left", "right", "top", "clip", "clip-path", "height", "max-height"),
        *("overflow", "content-visibility", "transition", "animation", "animation-name"),
    ]
}
_FORM = r"(?:^|[;\s])({})\s*:\s*([^;{{}}]{{1,80}})"
_DECLARATION = re.compile(_FORM.format("|".join(_PROPERTIES)), re.IGNORECASE)
_DECLARATION_OF_SIGHT = re.compile(_FORM.format("|".join(_OF_SIGHT)), re.IGNORECASE)
_NOTHING = re.compile(r"[-+]?(?:0|0?\.0{1,9})(?:px|pt|r?em|%)?")
_FAR_AWAY = re.compile(r"-(?:999|\d{4,9})(?:\.\d{1,9})?(?:px|pt)|-\d{3,9}(?:\.\d{1,9})?(?:r?em|v[wh]|%)")
_CLIPPED = re.compile(
    r"rect\((?:[\s,]{0,9}[01](?:px)?){4}\s{0,9}\)|inset\(\s{0,9}(?:50|100)%.{0,40}\)|circle\(\s{0,9}0\D.{0,40}\)"
)
_NOT_TEXT = ["math", "input", "select", "textarea"]  # read where another element is seen in their place
_SAYS = re.compile(r"none|hidden|visible|collapse|super|sub\b|line-through", re.IGNORECASE)
_BRACE = re.compile(r"[{}]")
_VALUE = re.compile(r"(?:^|[;\s{])(--[\w-]{1,60})\s*:\s*([^;{}]{1,80})")  # which other rules name
_NAMED_VALUE = re.compile(r"var\(\s*(--[\w-]{1,60})\s*(?:,\s*+([\w -]{1,40}))?\)")
_MOST_STEPS, _LONGEST_VALUE = 5, 80  # from a name to a value, by names that stand for names; characters
_ALWAYS = re.compile(r"@layer\b[^;]*|@supports\b(?![^;]*(?:\bnot\b|\(\s*-))[^;]*", re.IGNORECASE)
_MEDIA = re.compile(r"@media\b\s*", re.IGNORECASE)
_SCREEN = re.compile(r"(?:only\s+)?(?:all|screen)", re.IGNORECASE)
_SCREEN_WIDTH = re.compile(r"\(\s*(min|max)-width\s*:\s*(\d{1,5}(?:\.\d{1,4})?)(px|r?em)\s*\)", re.IGNORECASE)
_WIDTH, _PIXELS_OF_EM = 1280, 16  # of the window of a computer, in pixels
_PSEUDO = re.compile(r"::|:(?!not\b|is\b|where\b|first|last|nth|only|root)")  # of a state, or of no element
_PARTS = {  # of a selector, by how much they decide
    10_000: re.compile(r"#[\w-]+"),
    100: re.compile(r"\.[\w-]+|\[[^][]*\]|:(?!not|is|where)[\w-]+"),
    1: re.compile(r"(?:^|[\s>+~(])[a-z][\w-]*", re.IGNORECASE),
}
_IMPORTANT = 1_000_000
_MOST_SELECTORS, _LONGEST_SELECTOR, _MOST_MATCHED = 1000, 300, 20_000  # of a sheet; characters; tags with rules
_MOST_NESTED, _MOST_SIGNS = 20_000, 3  # selectors within others, of a sheet; & in one
_NAME, _NOT = re.compile(r"[.#][A-Za-z_][\w-]*"), re.compile(r":not\([^()]*\)|\[[^][]*\]")


def apply_styles(page: "Tag", sheet: str) -> None:
    """Add what a sheet says of elements to their own styles, which come first; of several rules the strongest holds."""
    sheet = _with_values(page, _without_comments(sheet))
    for tag, own in _matched(page, sheet, _DECLARATION, _PROPERTIES, _tells):
        inline = str(tag.get("style", ""))
        written = _declared(_DECLARATION, _PROPERTIES, inline)
        said = [
            f"{name}: {value}"
            for name, (worth, value) in own.items()
            if _SAYS.search(value) and (name not in written or worth >= _IMPORTANT)
        ]
        if said:
            tag["style"] = "; ".join(filter(None, [inline.rstrip("; "), *said]))
    for tag, own in _matched(page, sheet, _DECLARATION_OF_SIGHT, _OF_SIGHT, _hides):
        inline = str(tag.get("style", ""))
        declared = {name: value for name, (_, value) in own.items()}
        if _is_unseen(tag, declared | _declared(_DECLARATION_OF_SIGHT, _OF_SIGHT, inline)):
            tag["style"] = "; ".join(filter(None, [inline.rstrip("; "), "opacity: 0"]))


def _with_values(page: "Tag", sheet: str) -> str:
    """Put values in the place of their names, `var(--shown)`, in a sheet and in the styles of elements.

    A name stays unless the whole page has its value, and no part of it another one.
    """
    styled = [tag for tag in page.select("[style]") if "var(" in str(tag["style"])]
    if "var(" not in sheet and not styled:
        return sheet
    values = _values(page, sheet, [str(tag["style"]) for tag in styled])

    def value_of(named: re.Match[str]) -> str:
        return values.get(named[1], named[2] or "") or named[0]

    for _ in range(_MOST_STEPS):
        values = {name: _NAMED_VALUE.sub(value_of, value)[:_LONGEST_VALUE] for name, value in values.items()}
    for tag in styled:
        tag["style"] = _NAMED_VALUE.sub(value_of, str(tag["style"]))
    return _NAMED_VALUE.sub(value_of, sheet)


def _values(page: "Tag", sheet: str, styles: Sequence[str]) -> dict[str, str]:
    """Return the values of the names that tell something; an empty one for a name that means another thing elsewhere.

    Frameworks give hundreds of names, each to many elements, of which few tell what is shown.
    """
    blocks = [(selectors, body) for selectors, body in _blocks(sheet) if "--" in body]
    written = [
        one[2]
        for body in (*(body for _, body in blocks), *styles)
        for pattern in (_DECLARATION, _DECLARATION_OF_SIGHT)
        for one in pattern.finditer(body)
    ]
    given = [(selectors, *found) for selectors, body in blocks for found in _VALUE.findall(body)]
    used = {name for value in written for name, _ in _NAMED_VALUE.findall(value)}
    for _ in range(_MOST_STEPS):
        used |= {other for _, name, value in given if name in used for other, _ in _NAMED_VALUE.findall(value)}
    known, left = _names_in(page), iter(range(_MOST_SELECTORS))
    fitting = (
        (compiled.select(page), name, value)
        for selectors, name, value in given
        if name in used
        for selector, _ in zip(selectors, left, strict=False)
        if _may_fit(known, selector) and (compiled := _compiled(page, selector))
    )
    own = (
        ([tag], name, value)
        for tag in page.select("[style*='--']")
        for name, value in _VALUE.findall(str(tag["style"]))
        if name in used
    )
    said, of_all = dict[str, set[str]](), set[str]()
    for tags, name, value in (*fitting, *own):
        if tags:
            said.setdefault(name, set()).add(value.strip())
            of_all |= {name} if tags[0].name in {"html", "body"} else set()
    return {name: next(iter(some)) if len(some) == 1 and name in of_all else "" for name, some in said.items()}


def is_out_of_sight(tag: "Tag") -> bool:
    """Return whether an element is drawn by its own style where nobody sees it: clear, tiny, cut off, far away."""
    return _is_unseen(tag, _declared(_DECLARATION_OF_SIGHT, _OF_SIGHT, str(tag.get("style", ""))))


def _is_unseen(tag: "Tag", declared: Mapping[str, str]) -> bool:
    if not _hides(declared) or tag.name in _NOT_TEXT or tag.find(_NOT_TEXT):
        return False
    # What an element holds may have a size of its own: lists have none to stand close together.
    return tag.find(True) is None or _hides({**declared, "font-size": ""})


def _hides(declared: Mapping[str, str]) -> bool:
    """Return whether an element is not seen, unless it moves: a script shows that later."""
    said = {name: value.lower().replace("!important", "").strip() for name, value in declared.items()}
    if any(said.get(name, "none") != "none" for name in ("transition", "animation", "animation-name")):
        return False
    is_placed = said.get("position") in {"absolute", "fixed"}
    is_low = any(_NOTHING.fullmatch(said.get(name, "")) for name in ("height", "max-height"))
    return (
        any(_NOTHING.fullmatch(said.get(name, "")) for name in ("opacity", "font-size"))
        or said.get("content-visibility") == "hidden"
        or (is_low and said.get("overflow") == "hidden")
        or (is_placed and any(_FAR_AWAY.fullmatch(said.get(name, "")) for name in ("left", "right", "top")))
        or (is_placed and bool(_CLIPPED.fullmatch(said.get("clip", ""))))
        or bool(_CLIPPED.fullmatch(said.get("clip-path", "")))
    )


def _tells(declared: Mapping[str, str]) -> bool:
    return any(map(_SAYS.search, declared.values()))


def _declared(declaration: re.Pattern[str], names: Mapping[str, str], style: str) -> dict[str, str]:
    return {names[one[1].lower()]: one[2].strip() for one in declaration.finditer(style)}


def _matched(
    page: "Tag",
    sheet: str,
    declaration: re.Pattern[str],
    names: Mapping[str, str],
    tells: Callable[[Mapping[str, str]], bool],
) -> "list[tuple[Tag, dict[str, tuple[int, str]]]]":
    """Return the elements for which a rule of a sheet tells something, each with what all rules say of it."""
    found: dict[int, tuple[Tag, dict[str, tuple[int, str]]]] = {}
    rules = list(_rules(sheet, declaration, names))
    if not any(tells(said) for _, said in rules):
        return []
    known = _names_in(page)
    fitting = [
        (selector, compiled, said)
        for selector, said in rules
        if _may_fit(known, selector) and (compiled := _compiled(page, selector))
    ]
    for _, compiled, properties in fitting:
        if tells(properties):
            for tag in compiled.select(page):
                found.setdefault(id(tag), (tag, {}))
    left = _MOST_MATCHED
    for selector, compiled, properties in fitting if found else ():
        strength = sum(weight * len(part.findall(selector)) for weight, part in _PARTS.items())
        for tag, own in found.values() if left > 0 else ():
            left -= 1
            if not compiled.match(tag):
                continue
            for name, value in properties.items():
                worth = strength + _IMPORTANT * ("!important" in value.lower())
                if name not in own or worth >= own[name][0]:
                    own[name] = worth, value
    return list(found.values())


def _rules(sheet: str, declaration: re.Pattern[str], names: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the selectors of a sheet with those of their properties that are named."""
    left = _MOST_SELECTORS
    for selectors, body in _blocks(sheet):
        declared = _declared(declaration, names, body)
        for selector in selectors if declared else ():
            if left <= 0:
                return
            left -= 1
            yield selector, declared


def _without_comments(sheet: str) -> str:
    first, *others = sheet.split("/*")
    return " ".join([first, *(one.partition("*/")[2] for one in others)])


def _blocks(sheet: str) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the selectors of the rules that hold on a screen, each with a part of what the rule declares.

    A rule within another one is about what is within the elements of that one; `&` stands for these.
    """
    opened, end, left = list[_Opened](), 0, iter(range(_MOST_NESTED))
    for brace in _BRACE.finditer(sheet):
        text = sheet[end : brace.start()]
        end = brace.end()
        around = opened[-1] if opened else _Opened((), is_rule=False, holds=True)
        declared, _, begins = text.rpartition(";") if brace[0] == "{" else (text, "", "")
        if around.is_rule and around.holds and declared.strip():
            yield around.selectors, declared
        if brace[0] == "}":
            del opened[-1:]
        elif (begins := begins.strip()).startswith("@"):
            opened.append(replace(around, holds=around.holds and _holds(begins)))
        else:
            own = [one for one in map(str.strip, begins.split(",")) if 0 < len(one) <= _LONGEST_SELECTOR]
            pairs = ((outer, inner) for inner in own for outer in around.selectors)
            nested = (_within(*pair) for pair, _ in zip(pairs, left, strict=False))
            selectors = nested if around.is_rule else own
            kept = tuple(one for one in selectors if len(one) <= _LONGEST_SELECTOR and not _PSEUDO.search(one))
            opened.append(_Opened(kept, is_rule=True, holds=around.holds))


@dataclass(frozen=True, slots=True)
class _Opened:
    """Selectors before a brace that is not closed yet, none outside of all rules; `holds` on a screen."""

    selectors: tuple[str, ...]
    is_rule: bool
    holds: bool


def _within(outer: str, inner: str) -> str:
    """Return the selector of a rule within another one."""
    return inner.replace("&", f":is({outer})", _MOST_SIGNS) if "&" in inner else f"{outer} {inner}"


def _holds(rule: str) -> bool:
    """Return whether the rules within another one hold on the screen of a computer."""
    if not (media := _MEDIA.match(rule)):
        return bool(_ALWAYS.fullmatch(rule))
    queries = " ".join(rule[media.end() :].lower().split()).split(",")
    return any(all(map(_is_of_screen, one.strip().split(" and "))) for one in queries)


def _is_of_screen(condition: str) -> bool:
    if not (width := _SCREEN_WIDTH.fullmatch(condition)):
        return bool(_SCREEN.fullmatch(condition))
    pixels = float(width[2]) * (1 if width[3].lower() == "px" else _PIXELS_OF_EM)
    return pixels <= _WIDTH if width[1].lower() == "min" else pixels >= _WIDTH


def _names_in(page: "Tag") -> frozenset[str]:
    """Return the classes and ids of a page, with the signs that selectors put before them."""
    names = set[str]()
    for tag in page.find_all(True):
        names.update(f".{one}" for one in tag.get_attribute_list("class") if one)
        if identity := tag.get("id"):
            names.add(f"#{identity}")
    return frozenset(names)


def _may_fit(known: frozenset[str], selector: str) -> bool:
    return known.issuperset(_NAME.findall(_NOT.sub("", selector)))


def _compiled(page: "Tag", selector: str) -> Any:
    """Return a selector that selects and matches tags; None for one that the library does not know."""
    from soupsieve import SelectorSyntaxError

    try:
        return page.css.compile(selector)
    except (SelectorSyntaxError, NotImplementedError):  # the latter of at-rules
        return None
