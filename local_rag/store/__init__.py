"""What lies in a library folder. The only room that knows SQLite, FAISS and bm25s."""
