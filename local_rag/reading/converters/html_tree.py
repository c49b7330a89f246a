"""The tree of a web page, as deep as what reads it can follow."""

from typing import Any

from bs4 import BeautifulSoup, Tag

DEEPEST = 200  # elements within each other; browsers keep to 512, and pages that people write to fewer than 100


class Page(BeautifulSoup):
    """A web page; an element that is nested too deeply stands beside the one that it is in, as in browsers.

    What looks at each element and all within it would otherwise take quadratic time, and whoever writes a page may
    nest 2,000 tables in 40 KB.
    """

    _open: int  # elements, those that stand beside another one included

    def reset(self) -> None:
        """Begin with an empty tree."""
        self._open = 0
        super().reset()

    def handle_starttag(self, *given: Any, **more: Any) -> Tag | None:
        """Open an element."""
        self._open += 1
        if self._open > DEEPEST:
            self._close_deepest()
        return super().handle_starttag(*given, **more)

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        """Close an element, unless a deeper one has taken its place."""
        self._open -= 1
        if self._open + 1 < DEEPEST:
            super().handle_endtag(name, nsprefix)
        else:
            self._close_deepest()

    def _close_deepest(self) -> None:
        self.endData()
        if len(self.tagStack) > DEEPEST:  # the page itself is the first of them
            self.popTag()
