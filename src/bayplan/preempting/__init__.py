"""Whom to ask to go so that a more important workload may come. Reads the index and leaves it as it was."""
