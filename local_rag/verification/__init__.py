"""Here are a sentence and the text that it stands on: tell me which of its numbers and names that text lacks."""
