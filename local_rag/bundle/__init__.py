"""Carry the program, its models and a library across an air gap: pack, check, install, roll back, uninstall.

`verify.py`, `install.py` and `install.sh` are also copied beside the parts of a bundle. There they run without the
program, so they import nothing of it.
"""
