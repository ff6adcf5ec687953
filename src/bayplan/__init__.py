"""
Bayplan is an affinity scheduler for Kubernetes and Karmada that explains its decisions.

    import bayplan

    cluster = bayplan.Cluster.from_files("cluster.json")
    plan = cluster.apply("app.yaml").place()
    print(plan)

The names in `__all__` are the library. They are imported when they are first used: the command line starts here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bayplan.errors import ArgumentError, BayplanError, ClusterError, Fault, InputError
    from bayplan.library.audit_settings import AuditSettings
    from bayplan.library.audits import AuditCheck, AuditReport, ClusterAudit
    from bayplan.library.cluster import Cluster
    from bayplan.library.decisions import decide
    from bayplan.library.explanation import Explanation, FixedManifests, RuleFailure, SuggestedFix, Verdict
    from bayplan.library.fleet import Fleet, load
    from bayplan.library.fleet_plan import FleetPlan, FleetScaling, PlannedBinding
    from bayplan.library.node_labels import NodeLabelChange, NodeLabels, node_labels
    from bayplan.library.plan import Plan, PlannedPod, PlannedRollout, Room, RoomForPod
    from bayplan.library.questions import StateSnapshot
    from bayplan.library.reason_pages import ReasonPage
    from bayplan.library.reasons import Reasons, explain_rule
    from bayplan.library.replays import Replay, ReplayedDecision, explain_decision, replay
    from bayplan.library.running import ChargedNamespace, MovePlan, PlannedMove, QuotaReport, ViolatedRule, Violations
    from bayplan.library.settings import Settings
    from bayplan.library.simulation import (
        ClusterMoment,
        ComparedRuns,
        JudgedExpectation,
        SimulationRun,
        TimelineEvent,
        WorkloadOutcome,
    )
    from bayplan.library.validation import Problem, Validation, validate

_MODULES = {
    "errors": ("ArgumentError", "BayplanError", "ClusterError", "Fault", "InputError"),
    "library.audit_settings": ("AuditSettings",),
    "library.audits": ("AuditCheck", "AuditReport", "ClusterAudit"),
    "library.cluster": ("Cluster",),
    "library.decisions": ("decide",),
    "library.explanation": ("Explanation", "FixedManifests", "RuleFailure", "SuggestedFix", "Verdict"),
    "library.fleet": ("Fleet", "load"),
    "library.fleet_plan": ("FleetPlan", "FleetScaling", "PlannedBinding"),
    "library.node_labels": ("NodeLabelChange", "NodeLabels", "node_labels"),
    "library.plan": ("Plan", "PlannedPod", "PlannedRollout", "Room", "RoomForPod"),
    "library.questions": ("StateSnapshot",),
    "library.reason_pages": ("ReasonPage",),
    "library.reasons": ("Reasons", "explain_rule"),
    "library.replays": ("Replay", "ReplayedDecision", "explain_decision", "replay"),
    "library.running": ("ChargedNamespace", "MovePlan", "PlannedMove", "QuotaReport", "ViolatedRule", "Violations"),
    "library.settings": ("Settings",),
    "library.simulation": (
        "ClusterMoment",
        "ComparedRuns",
        "JudgedExpectation",
        "SimulationRun",
        "TimelineEvent",
        "WorkloadOutcome",
    ),
    "library.validation": ("Problem", "Validation", "validate"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ArgumentError",
    "AuditCheck",
    "AuditReport",
    "AuditSettings",
    "BayplanError",
    "ChargedNamespace",
    "Cluster",
    "ClusterAudit",
    "ClusterError",
    "ClusterMoment",
    "ComparedRuns",
    "Explanation",
    "Fault",
    "FixedManifests",
    "Fleet",
    "FleetPlan",
    "FleetScaling",
    "InputError",
    "JudgedExpectation",
    "MovePlan",
    "NodeLabelChange",
    "NodeLabels",
    "Plan",
    "PlannedBinding",
    "PlannedMove",
    "PlannedPod",
    "PlannedRollout",
    "Problem",
    "QuotaReport",
    "ReasonPage",
    "Reasons",
    "Replay",
    "ReplayedDecision",
    "Room",
    "RoomForPod",
    "RuleFailure",
    "Settings",
    "SimulationRun",
    "StateSnapshot",
    "SuggestedFix",
    "TimelineEvent",
    "Validation",
    "Verdict",
    "ViolatedRule",
    "Violations",
    "WorkloadOutcome",
    "__version__",
    "decide",
    "explain_decision",
    "explain_rule",
    "load",
    "node_labels",
    "replay",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
