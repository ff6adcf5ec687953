"""
Frozen values from which decisions are computed: workloads, targets, terms, selectors, quantities.

Does not know files, the API or the index.
"""
