"""
A cluster in memory under a virtual clock: what the live controllers and the cluster's own would do, before it happens.

The scheduler, its queue and the enforcement are those of `live`, unchanged; around them is what a cluster does by
itself. Does not read files and writes no reports.
"""
