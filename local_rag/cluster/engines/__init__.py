"""Search engines: here is the setting `search_engine.address`, give me the indexes of the library in it."""
