"""Where model files come from: a hub, wheels of a package index, files of the user."""
