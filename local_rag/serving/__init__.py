"""Here is a job for a library that stays open: run it and give me its events."""
