"""Here is a machine without a network: pack, verify, install, update and remove all that local-rag needs there.

`archive.py`, `verify.py`, `prefix.py`, `install.py` and `install.sh` are also copied into every bundle. There they run
without the program, so they import nothing else of it.
"""
