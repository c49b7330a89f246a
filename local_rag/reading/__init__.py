"""Here is a file: give me its text as a document, and the document's chunks."""
