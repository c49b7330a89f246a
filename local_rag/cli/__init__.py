"""Here is a command line: run it and print the result. One file per command."""
