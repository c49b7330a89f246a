"""What people do to documents through the page."""
