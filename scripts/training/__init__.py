"""How what is shipped in models/ was trained: a reader, adapters, and the calibration of answers."""
