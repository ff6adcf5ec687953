"""Frozen values of what a decision needs. Knows nothing of files, the API or the index."""
