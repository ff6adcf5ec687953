"""Bayplan: where pods and workloads run, when it matters what stands beside what."""

__version__ = "0.1.0"
