"""Measure retrieval on questions whose passages are known."""
