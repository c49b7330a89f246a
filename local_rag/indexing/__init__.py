"""Here are folders of documents: bring the library up to date with them."""
