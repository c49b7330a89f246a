"""Generators of parts of corpus/, with their sources."""
