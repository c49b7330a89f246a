"""All that knows llama.cpp."""
