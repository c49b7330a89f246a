"""Here is a question: read it once, and give me what it asks for, in one record."""
