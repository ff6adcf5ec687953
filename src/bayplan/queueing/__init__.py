"""
Pending pods between two scheduling attempts: active, in backoff, unschedulable, gated or nominated.

`scheduling_queue` orders the pods that may be tried, `unschedulable_pods` finds those of the others that a change may
have made schedulable, and `nominations` keeps the nodes that preemption has nominated pods to. A clock is passed in.
Knows nothing of API servers.
"""
