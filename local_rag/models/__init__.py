"""Here is the name of a model, or a profile: download it, find it, load it."""
