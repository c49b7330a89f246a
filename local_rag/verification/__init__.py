"""Here is a text that somebody has written: tell me which of its statements the documents support, and which not."""
