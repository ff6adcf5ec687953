"""
The running scheduler: watches a cluster, decides with the shared engine and writes to the API server.

- `running` is the life of the process: sync, leader election, scheduling, shutdown. `assembly` builds its parts, which
  share one `context`.
- `scheduler` is the loop. `deciding` chooses a node, `binding` carries the choice out, `preemption` deletes victims.
- `enforcement` evicts pods that break execution-time rules; `moving` and `pod_moves` carry out rebalancing moves.
- `cluster_writer` has every write, to an API server or as a dry run.
- `events`, `conditions`, `metrics`, `logs` and `serving` report what happens; `event_loop` keeps iterations short.

No scheduling logic: rules, scores, the queue and the choice of victims are in the rooms below.
"""
