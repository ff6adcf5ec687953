"""
The state of a cluster as its API server reports it, kept in the placement index.

- `resources` lists the watched resources and what an object of each changes.
- `cluster_state` applies the changes to the index and to the scheduling queue.
- `fetching` reads a cluster once, for commands that do not watch.
- `pod_watch` follows the pods of a few namespaces while evicted pods are replaced.
- `background_tasks` runs the watches as tasks whose failures are never lost.

Nothing here writes to the cluster or decides where a pod runs.
"""
