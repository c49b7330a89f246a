"""One module per page: its routes, and what its template shows."""
