"""What every rule of the tables declares about itself."""

import msgspec
import pytest

from bayplan.indexing.journal import ChangeType
from bayplan.rules import fleet_profile, profiles
from bayplan.rules.arguments import Arguments
from bayplan.rules.node_ports import NodePorts
from bayplan.rules.rule import LiftedBy, PartRule, Rule

RULES = list(dict.fromkeys(map(type, (*profiles.pod_rules(), *fleet_profile.fleet_rules()))))
FILTERING = [rule for rule in RULES if rule.reject is not Rule.reject]


def test_the_ids_are_unique():
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_that_rejects_declares_what_lifts_it(rule):
    rejects = rule.reject is not Rule.reject or rule.pre_filter is not Rule.pre_filter
    assert hasattr(rule, "lifted_by") == rejects


@pytest.mark.parametrize("rule", FILTERING, ids=lambda rule: rule.__name__)
def test_only_rules_that_follow_workloads_are_lifted_by_them(rule):
    assert rule.follows_workloads or rule.lifted_by is LiftedBy.TARGET


@pytest.mark.parametrize("rule", FILTERING, ids=lambda rule: rule.__name__)
def test_a_rule_that_rejects_a_target_has_reasons_and_evidence(rule):
    assert rule.documented
    assert rule.evidence is not Rule.evidence
    assert rule.reasons_by_code or rule.reasons is not Rule.reasons


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_arguments_that_are_read_have_a_type_of_their_own_as_written(rule):
    """Without it, a mistyped argument is not reported before it is validated."""
    arguments = rule.arguments_type
    is_read = arguments.read.__func__ is not Arguments.read.__func__
    assert (arguments.written_type is not Arguments.written_type) == is_read
    assert bool(msgspec.structs.fields(arguments)) == is_read


@pytest.mark.parametrize("method", ["reject", "pre_filter"])
def test_a_rule_that_rejects_cannot_leave_out_what_lifts_it(method):
    with pytest.raises(TypeError, match="Silent rejects targets: it must declare `lifted_by`"):
        type("Silent", (PartRule,), {method: lambda *_: None})


def test_a_rule_that_rejects_nothing_need_not_declare_it_and_a_subclass_inherits_it():
    type("Scoring", (PartRule,), {"score": lambda *_: None})
    inheriting = type("Inheriting", (NodePorts,), {"reject": lambda *_: None})
    assert inheriting.lifted_by is LiftedBy.RESOURCES


@pytest.mark.parametrize("kind, changes", [("TARGET", ""), ("RESOURCES", "R"), ("NEIGHBOURS", "RA"), ("PEERS", "RA")])
def test_what_lifts_a_rejection(kind, changes):
    types = {"R": ChangeType.WORKLOAD_REMOVED, "A": ChangeType.WORKLOAD_ADDED}
    assert LiftedBy[kind].changes == tuple(types[each] for each in changes)
