"""Check what an answer says against the passages that were shown. Pure functions."""
