"""Here is a question: give me the passages most likely to answer it."""
