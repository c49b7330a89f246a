"""Turn a file into a Document, and a Document into Chunks. Knows no model and no store."""
