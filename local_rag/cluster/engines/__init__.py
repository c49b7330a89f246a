"""Search engines: here is the setting `search_engine`, give me the indexes of the library in it."""
