"""Skip the thoughts that a model writes before its answer: they are no part of it, and are never counted or kept."""

OPENING, CLOSING = "<think>", "</think>"


class Thoughts:
    """Take a text piece by piece; give back what is no thought. Only a thought at the very beginning is one."""

    def __init__(self) -> None:
        self._held, self.inside = "", False
        self._begun = self._said = False

    def skip(self, text: str) -> str:
        """Return what of the text so far is now known to belong to the answer."""
        if self._begun and not self.inside:
            text = text if self._said else text.lstrip()  # thought and answer are some empty lines apart
            self._said |= bool(text)
            return text
        self._held += text
        if not self.inside:
            beginning = self._held.lstrip()
            if OPENING.startswith(beginning[: len(OPENING)]) and len(beginning) < len(OPENING):
                return ""  # it may still become the mark
            self._begun = True
            if not beginning.startswith(OPENING):
                answer, self._held, self._said = self._held, "", True
                return answer
            self.inside, self._held = True, beginning[len(OPENING) :]
        _, closed, answer = self._held.partition(CLOSING)
        if not closed:
            self._held = self._held[-len(CLOSING) :]
            return ""
        self.inside, self._held = False, ""
        return self.skip(answer)

    def rest(self) -> str:
        """Return what was held back when the text ended: an unfinished mark is text, an unfinished thought is none."""
        return "" if self.inside else self._held
