"""Why a workload is placed where it is, on demand, from the same index. Decides nothing itself."""
