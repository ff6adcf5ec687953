"""Preemption: which workloads of lower priority to evict so that a workload fits. Leaves the index unchanged."""
