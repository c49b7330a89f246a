"""The search index: vectors and postings in segments. The only package that knows FAISS and bm25s."""
