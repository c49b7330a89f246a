"""Text that a page draws where nobody sees it is left out, and what a script shows later is not."""

import time
from pathlib import Path

import pytest

from local_rag.reading.read import parse

NEW = "<p>New fare 14 crowns for all.</p>"


def shown(sheet: str, style: str = "") -> str:
    page = f"<style>{sheet}</style><h1>Fares</h1><p class=a style='{style}'>Old fare 11</p>{NEW}"
    return parse(Path("a.html"), page.encode()).text


@pytest.mark.parametrize(
    "style",
    [
        "opacity: 0",
        "font-size: 0px",
        "position: absolute; left: -9999px",
        "position: absolute; clip: rect(0, 0, 0, 0)",
        "clip-path: inset(50%)",
        "height: 0; overflow: hidden",
        "content-visibility: hidden",
    ],
)
def test_what_nobody_sees_is_left_out(style: str) -> None:
    assert "Old" not in shown("", style)
    assert "Old" not in shown(f".a{{{style}}}")
    assert "Old fare 11" in shown(f".a{{{style}}}", "transition: all 1s; animation: rise 2s"), "a script shows it"


@pytest.mark.parametrize(
    "sheet",
    [".a{opacity:0} p.a{opacity:1}", ".a{opacity:.5}", ".a{position:absolute;left:-9px}", ".a{height:0}"],
)
def test_what_is_seen_stays(sheet: str) -> None:
    assert "Old fare 11" in shown(sheet)


def test_most_of_a_page_and_what_has_a_size_of_its_own_stay() -> None:
    page = f"<style>.x{{opacity:0}} ul{{font-size:0}}</style><div class=x>{NEW * 3}</div><ul><li>One more</li></ul>"
    text = parse(Path("a.html"), page.encode()).text
    assert "New fare 14" in text
    assert "One more" in text


PAGE = f"<h1>Fares</h1><div class=list><p class=old>Old fare 11</p>{NEW}</div>"


@pytest.mark.parametrize(
    "sheet",
    [
        ".list { .old { display: none } }",
        ".list { color: red; & > .old { display: none } }",
        "p { &.old { display: none } }",
        ".x, .list { .y, .old { visibility: hidden } }",
        ".list { .old { @media screen { display: none } } }",
        ".old { display: none; .x { color: red } }",
        ":root { --shown: none } .old { display: var(--shown) }",
        "html { --off: none; --shown: var( --off ) } .list { .old { display: var(--shown) } }",
        ".old { display: var(--shown, none) }",
        "body { --seen: hidden } .old { visibility: var(--seen) }",
        ":root { --through: 0 } .old { opacity: var(--through) }",
    ],
)
def test_what_a_rule_within_a_rule_or_a_named_value_hides_is_left_out(sheet: str) -> None:
    assert "Old" not in parse(Path("a.html"), f"<style>{sheet}</style>{PAGE}".encode()).text


@pytest.mark.parametrize(
    "sheet",
    [
        ".other { .old { display: none } }",
        ".list { .old { @media print { display: none } } }",
        ".old { &:hover { display: none } }",
        ".list { .old { display: none } } .list { .old { display: block } }",
        ":root { --shown: block } .old { display: var(--shown, none) }",
        ":root { --shown: none } .list { --shown: block } .old { display: var(--shown) }",
        "@media print { :root { --shown: none } } .old { display: var(--shown) }",
        "[data-theme=dark] { --shown: none } .old { display: var(--shown) }",
        "h1 { --shown: none } .old { display: var(--shown) }",
    ],
)
def test_what_no_rule_within_a_rule_and_no_named_value_hides_stays(sheet: str) -> None:
    assert "Old fare 11" in parse(Path("a.html"), f"<style>{sheet}</style>{PAGE}".encode()).text


def test_the_value_of_a_style_of_its_own_may_be_named() -> None:
    page = PAGE.replace("class=old", "style='display: var(--shown)'")
    assert "Old" not in parse(Path("a.html"), f"<style>html {{ --shown: none }}</style>{page}".encode()).text


@pytest.mark.parametrize(
    "deep", ["a{" * 40_000 + "}" * 40_000, "a,b,i{" * 5000, f"{'.a,' * 500}p{{" + "& & &{}" * 9000]
)
def test_rules_within_many_rules_are_read_in_no_time(deep: str) -> None:
    started = time.thread_time()
    assert "Old fare 11" in parse(Path("a.html"), f"<style>{deep} x{{display:none}}</style>{PAGE}".encode()).text
    assert time.thread_time() - started < 5


def test_hidden_elements_in_markdown_are_left_out() -> None:
    hidden = '<div class="a" style="color: red; display:none"><div>one</div> two</div> and <p hidden>three</p>'
    kept = (
        'Kept <p aria-hidden="true">a</p> <p title="a hidden one">b</p> `<p hidden>c</p>` <p hidden="until-found">d</p>'
    )
    read = parse(Path("a.md"), f"# F\n\n{hidden}\n\n{kept}\n\n<p hidden>never ends\n".encode())
    assert read.text.split("\n\n")[1].strip() == "and"
    assert kept in read.text
    assert "never ends" in read.text
    assert read.notes == ("3 hidden words are left out",)
