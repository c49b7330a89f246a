"""Here are questions that were asked, and marks of their answers: fit the gate to them, and tell what is missing."""
