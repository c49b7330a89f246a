"""Ask the same questions of every document, and give each answer as a value that its quotation contains."""
