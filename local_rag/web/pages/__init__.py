"""One module a page: its routes, and what its template shows."""
