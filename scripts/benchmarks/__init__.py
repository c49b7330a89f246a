"""Measurements, one per module; `python -m scripts.benchmarks --list` names them."""
