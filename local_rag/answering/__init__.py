"""Answer from the passages that were found, or say that they do not hold the answer."""
