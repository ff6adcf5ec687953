"""Why a workload goes where it goes, on demand, from the same index. Decides nothing itself."""
