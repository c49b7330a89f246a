"""Here is a question with its passages: give me an answer that cites them, or a refusal."""
