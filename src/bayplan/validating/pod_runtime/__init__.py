"""
How a pod runs on its node: volumes, probes, environment, security. None of it decides which node that is.

Only `bayplan validate` and `decide admission`, which apply every rule of an API server, use these modules. Placing pods
does not need them, and the objects that a webhook receives have passed these rules in the API server.
"""
