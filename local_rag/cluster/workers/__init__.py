"""Workers on the machines of a Ray cluster: here are my files, chunks or texts, read, situate or embed them."""
