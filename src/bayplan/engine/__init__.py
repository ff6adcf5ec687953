"""
The engine: run the rules over the index. Knows no rule by name.

`filtering` finds the feasible targets and `scoring` adds up what the rules give each of them. `equivalence` groups
workloads by signature, so that all workloads of one equivalence class share the results of their rules. `ranking` keeps
the order of all targets for one equivalence class and corrects it where a change touched it; it gives the same result
as `filtering.run` followed by `scoring.run`, which the tests compare. `node_partitions` groups the targets that the
rules score alike. `node_order` keeps the order of the targets for all classes with the same requests, tolerations and
so on, and `domain_choice` finds the target for the first workloads of a class in it, before there is a ranking.
"""
