"""
How a pod runs once it is on its node: volumes, probes, environment, security. None of it decides where that is.

Only who asks for every rule of an API server comes here: `bayplan validate` and `decide admission`. Whoever places pods
need not, and what a webhook sees an API server has checked already.
"""
