"""The generated pages and tables of the documentation; `scripts/write_docs.py` writes them."""
