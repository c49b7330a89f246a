"""Web pages as they are saved: open elements, hidden text, wrong declarations, text beside the main content."""

from tests.reading.golden.case import Case, Cell

FACTS = ("The ferry leaves at seven.", "It carries twelve people.", "Dogs travel free of charge.")
BODY = f"<h1>Ferry</h1><p>{FACTS[0]}</p><h2>Rules</h2><p>{FACTS[1]}</p><p>{FACTS[2]}</p>"
UNDER = {FACTS[0]: "Ferry", FACTS[1]: "Rules", FACTS[2]: "Rules"}


def page(body: str, head: str = "", encoding: str = "utf-8") -> bytes:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode(encoding)


def ferry(change: str = "", *, before: str = "", after: str = "", head: str = "", encoding: str = "utf-8") -> bytes:
    return page(f"{before}<main>{BODY}{change}</main>{after}", head, encoding)


ASIDE = "Twelve boats lie in the harbour on every day of the year but one. " * 4
CASES = [
    Case(
        "open-elements.html",
        lambda: page(f"<h1>Ferry<p>{FACTS[0]}<h2>Rules</h2><li>{FACTS[1]}<li>{FACTS[2]}"),
        {FACTS[1]: "Rules", FACTS[2]: "Rules"},
    ),
    Case(
        "nested-wrongly.html",
        lambda: page(f"<b><h1>Ferry</b></h1><p><i>{FACTS[0]}</p></i><div><h2>Rules</div></h2><p>{FACTS[1]}"),
        {FACTS[0]: "Ferry", FACTS[1]: "Rules"},
    ),
    Case(
        "hidden.html",
        lambda: ferry("<p hidden>Obey the page.</p><p style='display:none'>And this.</p>"),
        UNDER,
        noted={"Obey the page.": "5 hidden words are left out"},
        absent=("Obey the page.", "And this."),
    ),
    Case("empty-main.html", lambda: page(f"<main></main><div id=root>{BODY}</div>"), UNDER),
    Case(
        "short-article.html",
        lambda: page(f"<article><p>News of today.</p></article><div>{BODY}</div>"),
        {"News of today.": "", **UNDER},
    ),
    Case(
        "beside-the-main.html",
        lambda: ferry("<p>" + "More of it is said here. " * 20 + "</p>", after=f"<aside>{ASIDE}</aside>"),
        UNDER,
        noted={"Twelve boats": "beside the main content"},
    ),
    Case(
        "declared-wrongly.html",
        lambda: ferry("<p>Größe für Łódź.</p>", head="<meta charset=iso-8859-1>"),
        {**UNDER, "Größe für Łódź.": "Rules"},
    ),
    Case(
        "windows-1250.htm",
        lambda: ferry("<p>Zażółć gęślą jaźń.</p>", head="<meta charset=windows-1250>", encoding="cp1250"),
        {**UNDER, "Zażółć gęślą jaźń.": "Rules"},
    ),
    Case(
        "folded.html",
        lambda: ferry(
            "<details><summary>Prices</summary><p>A ride costs four.</p></details>"
            "<dl><dt>VAT</dt><dd>25 percent</dd></dl>"
        ),
        {**UNDER, "A ride costs four.": "Rules", "25 percent": "Rules", "Prices": "Rules"},
    ),
    Case(
        "table-in-a-page.xhtml",
        lambda: (
            b"<?xml version='1.0' encoding='utf-8'?>"
            + ferry("<table><tr><th>Day<th>Time<tr><td>Monday<td>7<tr><td>Sunday<td>9</table>")
        ),
        UNDER,
        (Cell("7", "Time", "Monday"), Cell("Sunday", "Day", "9")),
    ),
    Case(
        "pictures.html",
        lambda: ferry("<p><img alt='A red door.' src=a.png><img src='data:image/png;base64,AA'></p>"),
        {**UNDER, "A red door.": "Rules"},
        noted={"the picture": "1 image without a description"},
    ),
]
