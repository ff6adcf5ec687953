"""
Pending pods between two scheduling attempts: active, in backoff, unschedulable, gated or nominated.

`scheduling_queue` has every transition between these. It orders the pods that may be tried by `pod_heap`, finds those
that a change has made schedulable by `unschedulable_pods`, and keeps the nodes of nominated pods in `nominations`,
beside which `deciding` chooses. The clock and the `evaluator` are passed in; `pod_evaluator` is the one that asks the
engine. Knows nothing of API servers.
"""
