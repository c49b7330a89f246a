"""The page and its server: one warm process that answers from a library and shows the evidence."""
