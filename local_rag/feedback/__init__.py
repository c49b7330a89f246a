"""Here are questions and marks of their answers: fit the gate, and tell what is missing."""
