"""Find passages for a question and answer from them."""
