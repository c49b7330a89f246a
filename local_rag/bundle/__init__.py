"""Here is a machine without a network: pack, verify, install, update and remove all that local-rag needs there.

`verify.py`, `install.py` and `install.sh` are also copied beside the parts of a bundle. There they run without the
program, so they import nothing of it.
"""
