"""Here is a request from a browser: give me a page that shows the answer and its evidence."""
