"""Here is my document id, give me the document: its text, chunks, contexts and vectors.

The only package that uses SQLite.
"""
