"""Check an answer against the passages the model has read: citations, then facts. Pure functions."""
