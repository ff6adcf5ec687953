"""
Place workloads one after another and put each into the index: pods (`place_pods`) and bindings (`place_bindings`).

`recreating` places running pods again as their controllers recreate them. The decision for one workload is made below,
in `schedule_pod` and `schedule_binding`. Knows nothing of files, terminals or API servers.
"""
