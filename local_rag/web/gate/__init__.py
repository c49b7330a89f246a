"""Who may come in, from where, how often, and over which connections."""
