"""Here are questions whose passages are known: tell me how many of them retrieval finds."""
