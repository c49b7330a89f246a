"""Here is a library: tell me what it holds, and in what state that is."""
