"""
The placement index: which workload is on which target, kept correct change by change.

`placement_index` is the whole; the other modules are its parts. It is the only mutable thing between reading and
writing: rules read it, and only its own methods change it, between decisions. Knows nothing of rules or scores.
"""
