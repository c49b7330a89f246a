"""Here is a question about rows: choose a query for the tables of the documents, run it, and show the rows."""
