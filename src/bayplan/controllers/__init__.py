"""
What the controllers of Kubernetes and Karmada would do: desired state in, next actions out.

The pods that workload controllers would create, and the bindings that Karmada's detector would create and its scheduler
would take up. Nothing here runs in the background: there is no clock, no queue and no API server.
"""
