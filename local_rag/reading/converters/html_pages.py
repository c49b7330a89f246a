"""Convert web pages."""

import re

from local_rag.reading.converters.converted import NO_ESCAPES, Converted, without_images
from local_rag.reading.decode import clean, declared_in_html, decode_with_notes
from local_rag.reading.provenance import web_provenance


def convert_html(data: bytes, *declared: str | None) -> Converted:
    """Convert the element that the page marks as its main content; without one, let trafilatura find it.

    `declared` are the encodings that its sender named.
    """
    from bs4 import BeautifulSoup
    from markitdown.converters import HtmlConverter

    text, notes = decode_with_notes(data, *declared, declared_in_html(data))
    page = BeautifulSoup(text, "lxml")
    title = page.title.get_text() if page.title else None
    provenance = web_provenance(page)
    for noise in page.select("script, style, noscript, template, nav, a.headerlink"):
        noise.decompose()
    articles = page.find_all("article")
    main = page.select_one("main, [role=main]") or (articles[0] if len(articles) == 1 else None)
    if main is None:
        text = _extract_main_content(str(page))
        # trafilatura reduces short pages to bare lines. The whole page without header and footer is better then.
        if re.search(r"^#", text, re.MULTILINE) or (text and not page.select("h1, h2, h3")):
            return Converted(title=title, text=clean(text), kind="markdown", notes=notes, provenance=provenance)
        main = page.body or page
        for noise in main.select("header:not(:has(h1)), footer, aside"):
            noise.decompose()
    markdown = HtmlConverter().convert_string(str(main), strip=["a"], **NO_ESCAPES).markdown
    text = clean(without_images(markdown))
    return Converted(title=title, text=text, kind="markdown", notes=notes, provenance=provenance)


def _extract_main_content(page: str) -> str:
    import trafilatura

    return trafilatura.extract(page, output_format="markdown", favor_recall=True, include_comments=False) or ""
