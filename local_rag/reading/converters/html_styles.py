"""Give the elements of a page the few properties that change what its text means, as its style sheets say.

Those are whether an element is shown, whether it is raised or lowered, and whether it is struck out. A rule that holds
only in print, on small screens or while the pointer is above an element holds for nobody who reads the page.
"""

import re
from collections.abc import Iterator
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
_DECLARATION = re.compile(rf"(?:^|[;\s])({'|'.join(_PROPERTIES)})\s*:\s*([^;{{}}]{{1,80}})", re.IGNORECASE)
_SAYS = re.compile(r"none|hidden|visible|collapse|super|sub\b|line-through", re.IGNORECASE)
_BRACE = re.compile(r"[{}]")
_ALWAYS = re.compile(r"@layer\b[^;]*|@supports\b(?!\s*not\b)[^;]*", re.IGNORECASE)
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
_NAME, _NOT = re.compile(r"[.#][A-Za-z_][\w-]*"), re.compile(r":not\([^()]*\)|\[[^][]*\]")


def apply_styles(page: "Tag", sheet: str) -> None:
    """Add what a sheet says of elements to their own styles, which come first; of several rules the strongest holds."""
    found: dict[int, tuple[Tag, dict[str, tuple[int, str]]]] = {}
    rules = list(_rules(sheet))
    known = _names_in(page) if rules else frozenset()
    fitting = [
        (selector, compiled, said)
        for selector, said in rules
        if known.issuperset(_NAME.findall(_NOT.sub("", selector))) and (compiled := _compiled(page, selector))
    ]
    for _, compiled, properties in fitting:
        if any(map(_SAYS.search, properties.values())):
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
    for tag, own in found.values():
        inline = str(tag.get("style", ""))
        written = {_PROPERTIES[name[1].lower()] for name in _DECLARATION.finditer(inline)}
        said = [
            f"{name}: {value}"
            for name, (worth, value) in own.items()
            if _SAYS.search(value) and (name not in written or worth >= _IMPORTANT)
        ]
        if said:
            tag["style"] = "; ".join(filter(None, [inline.rstrip("; "), *said]))


def _rules(sheet: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the selectors of a sheet with their properties, if a sheet hides, raises or strikes out anything."""
    left = _MOST_SELECTORS
    for selectors, body in _blocks(_without_comments(sheet)) if _SAYS.search(sheet) else ():
        declared = {_PROPERTIES[one[1].lower()]: one[2].strip() for one in _DECLARATION.finditer(body)}
        for selector in filter(None, map(str.strip, selectors.split(","))) if declared else ():
            if left <= 0:
                return
            if len(selector) <= _LONGEST_SELECTOR and not _PSEUDO.search(selector):
                left -= 1
                yield selector, declared


def _without_comments(sheet: str) -> str:
    first, *others = sheet.split("/*")
    return " ".join([first, *(one.partition("*/")[2] for one in others)])


def _blocks(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and between the braces of the rules that hold on a screen."""
    opened, end = list[str](), 0
    for brace in _BRACE.finditer(sheet):
        text = sheet[end : brace.start()]
        end = brace.end()
        if brace[0] == "{":
            opened.append(text.rpartition(";")[2].strip())
        elif opened:
            selectors = opened.pop()
            if not selectors.startswith("@") and all(map(_holds, opened)):
                yield selectors, text


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


def _compiled(page: "Tag", selector: str) -> Any:
    """Return a selector that selects and matches tags; None for one that the library does not know."""
    from soupsieve import SelectorSyntaxError

    try:
        return page.css.compile(selector)
    except (SelectorSyntaxError, NotImplementedError):  # the latter of at-rules
        return None
