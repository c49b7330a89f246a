"""Here are an answer and the passages that the model read: tell me which sentences they support.

Pure functions: citations are checked first, then facts.
"""
