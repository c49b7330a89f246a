"""What the pages show, as records and as HTML."""
