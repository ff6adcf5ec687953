"""
A thin client of Kubernetes API servers on aiohttp and msgspec: the only place that knows a URL.

Finds the server and the credentials (`connect`), asks (`connection`, `writes`), lists in pages (`listing`), watches
(`watching`), keeps a view of one resource true for ever (`reflector`) and elects a leader (`leader_election`). Knows
nothing of scheduling.
"""
