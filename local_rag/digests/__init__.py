"""Here are documents: quote what changed between two, or what they say."""
