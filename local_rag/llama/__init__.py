"""Here are prompts, many with the same beginning: give me the text or the probabilities that a model generates.

The only package that uses llama.cpp.
"""
