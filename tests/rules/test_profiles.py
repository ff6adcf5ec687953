"""The tables of rules: their order, their weights, and what a profile changes."""

import pytest

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import fit_error
from bayplan.model.kubernetes_versions import V1_37
from bayplan.rules import fleet_profile, profiles
from bayplan.rules.balanced_allocation import BalancedAllocationArguments
from bayplan.rules.inter_pod_affinity import InterPodAffinityArguments
from bayplan.rules.profiles import SchedulerProfile
from rules.shorthand import node, pod, situation_of, taints

# kube-scheduler 1.36, without the plugins that do not filter or score.
ORDER = [
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 1),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
]


def test_order_and_weights_are_those_of_kube_scheduler():
    first, *others = profiles.pod_rules()
    assert first.name == "Bayplan"
    assert [(rule.name, rule.weight) for rule in others] == ORDER
    assert all(rule.filters for rule in others)


NAMES = tuple(name for name, _ in ORDER)


def profile(*, without=(), **given):
    """The default profile with other fields, and without some plugins."""
    usual = profiles.default_profile()
    found = {
        "filter": tuple(name for name in usual.filter if name not in without),
        "pre_filter": tuple(name for name in usual.pre_filter if name not in without),
        "pre_score": usual.pre_score - set(without),
        "score": {name: weight for name, weight in usual.score.items() if name not in without},
    }
    return SchedulerProfile(**{**found, **given})


@pytest.mark.parametrize(
    "given, name, filters, weight",
    [
        (profile(score={"NodeAffinity": 7}), "NodeAffinity", True, 7),
        (profile(score={"NodeAffinity": 7}), "TaintToleration", True, 0),
        (profile(filter=("NodeName",)), "NodeAffinity", False, 2),
        (profile(without=["NodeName"]), "NodeAffinity", True, 2),
    ],
)
def test_what_a_profile_changes(given, name, filters, weight):
    (found,) = [rule for rule in profiles.pod_rules(given) if rule.name == name]
    assert (found.filters, found.weight) == (filters, weight)


def test_a_disabled_plugin_is_left_out():
    names = [rule.name for rule in profiles.pod_rules(profile(without=["NodeName", "ImageLocality"]))]
    assert names[1:] == [name for name, _ in ORDER if name not in ("NodeName", "ImageLocality")]


def test_since_1_37_node_name_precedes_node_unschedulable():
    names = [rule.name for rule in profiles.pod_rules(profiles.default_profile(V1_37))]
    assert names[1:] == ["NodeName", "NodeUnschedulable", *NAMES[2:]]


def test_arguments_reach_their_rules():
    arguments = {
        "NodeResourcesBalancedAllocation": BalancedAllocationArguments(("cpu",)),
        "InterPodAffinity": InterPodAffinityArguments(hard_weight=9),
    }
    rules = {rule.name: rule for rule in profiles.pod_rules(profile(arguments=arguments))}
    assert rules["NodeResourcesBalancedAllocation"].arguments.resources == ("cpu",)
    assert rules["InterPodAffinity"].arguments.hard_weight == 9
    assert rules["NodeResourcesFit"].arguments.ignored_resources == frozenset()  # its default


def test_every_rule_takes_its_own_arguments():
    for rule in map(type, (*profiles.pod_rules(), *fleet_profile.fleet_rules())):
        with_defaults, plain = rule(rule.arguments_type()), rule()
        assert vars(with_defaults).keys() == vars(plain).keys()


def test_default_spread_constraints():
    """Both ScheduleAnyway: host name with maxSkew 3, zone with maxSkew 5."""
    (spread,) = [rule for rule in profiles.pod_rules() if rule.name == "PodTopologySpread"]
    assert [(each.topology_key, each.max_skew, each.hard) for each in spread.arguments.defaults] == [
        ("kubernetes.io/hostname", 3, False),
        ("topology.kubernetes.io/zone", 5, False),
    ]


@pytest.mark.parametrize("name, exempt", [
    ("APIEnablement",        True),
    ("TaintToleration",      True),
    ("ClusterAffinity",      False),
    ("SpreadConstraint",     False),
    ("ClusterEviction",      False),
    ("WorkloadAffinity",     True),
    ("WorkloadAntiAffinity", True),
])  # fmt: skip
def test_which_fleet_rules_exempt_clusters_that_have_the_workload(name, exempt):
    found = [rule for rule in fleet_profile.fleet_rules() if rule.name == name]
    assert found
    assert {rule.exempts_assigned for rule in found} == {exempt}


def test_the_first_rule_that_rejects_a_node_gives_the_reason():
    asked = pod("new", nodeSelector={"disk": "ssd"})
    on = [
        node("a", unschedulable=True, taints=taints("x:NoSchedule")),
        node("b", taints=taints("x:NoSchedule")),
        node("c"),
    ]
    situation = situation_of(asked, on)
    verdicts = filtering.run(situation.workload, Engine(situation.index, profiles.pod_rules()))
    names = {name: fit_error.reasons_at(verdicts, slot)[0] for name, slot in situation.index.slots.by_name.items()}
    assert names == {"a": "NodeUnschedulable", "b": "TaintToleration", "c": "NodeAffinity"}
