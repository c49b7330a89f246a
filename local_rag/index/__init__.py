"""Here is a query vector, or words: give me the ids of the chunks that match best.

The only package that uses FAISS.
"""
