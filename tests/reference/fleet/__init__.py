"""
Workloads onto clusters as plain loops: `decide fleet`, question in, answer out.

Without options it decides as karmada-scheduler v1.18.2 does (gate WorkloadAffinity on, general estimator); what the
design documents add has its own modules (`tiers`, `workload_terms`, `every_field_spread`) and, where it changes an
answer of Karmada's, a switch in `semantics`.
"""

from reference.fleet.terms import answer

__all__ = ["answer"]
