"""Answer from a library as programs for OpenAI's models expect it: a chat whose model is the library."""
