"""Bayplan is an affinity scheduler for Kubernetes and Karmada that explains its decisions."""

__version__ = "0.1.0"
