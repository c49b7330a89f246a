"""Tell a text that grows, and may lose its end, in pieces."""

from collections.abc import Callable

from local_rag.records import Written


class Telling:
    """Tell what was added to a text since it was last told; if something was taken back, tell it anew."""

    def __init__(self, tell: Callable[[Written], None]) -> None:
        self._tell, self._told = tell, ""

    def __call__(self, text: str) -> None:
        """Tell the text that stands now."""
        if text == self._told:
            return
        goes_on = text.startswith(self._told)
        self._tell(Written(text[len(self._told) :] if goes_on else text, replaces=not goes_on))
        self._told = text
