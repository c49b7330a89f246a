"""Here is a web address: give me the page's main content as Markdown."""
