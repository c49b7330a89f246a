"""Here is a command line: run it and print the result. A file holds a command, or several of one subject."""
