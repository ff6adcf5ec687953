"""KubeSchedulerConfiguration."""

import gzip
import json
import pathlib

import pytest

from bayplan.model.node_selectors import NodeAffinity, NodeRequirement, NodeTerm
from bayplan.model.workloads import SpreadConstraint
from bayplan.reading import scheduler_config
from bayplan.rules import profiles
from bayplan.rules.resources_fit import ScoringStrategy
from bayplan.rules.topology_spread.arguments import SYSTEM_DEFAULTS
from validating import objects

RECORDED = pathlib.Path(__file__).parents[1] / "upstream" / "pods.jsonl.gz"
ARGS = "profiles[0].pluginConfig[0].args"


def with_args(plugin, args):
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": objects.read(args)}]}]}


@pytest.mark.parametrize("config, wrong", [
    ("{}", []),
    ("{profiles: [{}]}", []),
    ("{parallelism: 1, percentageOfNodesToScore: 0, podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 1}", []),
    ("{percentageOfNodesToScore: 100, podInitialBackoffSeconds: 10}", []),
    ("{podInitialBackoffSeconds: 11}", ["podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds"]),
    ("{podMaxBackoffSeconds: 1}", []),
    ("{podMaxBackoffSeconds: 0}", ["podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds"]),
    ("{profiles: [{schedulerName: a, percentageOfNodesToScore: 0}, {schedulerName: b, percentageOfNodesToScore: 100}]}", []),
    ("{profiles: [{percentageOfNodesToScore: 101}]}", ["profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]),
    ("{profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 0}]}}}]}", []),
    ("{parallelism: 0}", ["parallelism: Invalid value: 0: should be an integer value greater than zero"]),
    ("{percentageOfNodesToScore: 101}", ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]),
    ("{podInitialBackoffSeconds: 0}", ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"]),
    ("{podInitialBackoffSeconds: 20}", ["podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds"]),
    ("{profiles: [{schedulerName: a}, {schedulerName: a}]}", ["profiles[1].schedulerName: Duplicate value: profiles[0].schedulerName"]),
    ("{profiles: [{schedulerName: a}, {}]}", ["profiles[1].schedulerName: Required value"]),
    ("{profiles: [{percentageOfNodesToScore: -1}]}", ["profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"]),
    ("{profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]}", ["profiles[0].plugins.score.enabled[0].weight: Invalid value: -1: not in valid range [0, inf)"]),
    ("{profiles: [{plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: heavy}]}}}]}", ['profiles[0].plugins.multiPoint.enabled[0].weight: Invalid value: "heavy": expected a whole number']),
    ("{profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}}]}", []),
    ("{profiles: [{pluginConfig: [{name: x}, {name: x}]}]}", ['profiles[0].pluginConfig[1]: Duplicate value: "x"']),
])  # fmt: skip
def test_profile(config, wrong):
    assert scheduler_config.validate_scheduler_config(objects.read(config)) == wrong


@pytest.mark.parametrize("plugins, path, got", [
    ("{score: {enabled: [{name: NodeAffinity}, {name: NodeAfinity}]}}", "score.enabled[1].name", '"NodeAfinity"'),
    ("{multiPoint: {enabled: [{name: Coscheduling}]}}", "multiPoint.enabled[0].name", '"Coscheduling"'),
    ("{preBind: {enabled: [{name: '*'}]}}", "preBind.enabled[0].name", '"*"'),  # all can only be switched off
    ("{permit: {enabled: [{weight: 1}]}}", "permit.enabled[0].name", "null"),
    ("{filters: {disabled: [{name: InterPodAffinity}]}}", "filters", '"filters"'),  # no such point
])  # fmt: skip
def test_unknown_plugins_and_extension_points_are_rejected(plugins, path, got):
    (fault,) = scheduler_config.validate_scheduler_config(objects.read(f"{{profiles: [{{plugins: {plugins}}}]}}"))
    assert fault.startswith(f"profiles[0].plugins.{path}: Unsupported value: {got}: supported values: ")


RATIO = "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: %s}}"
SHAPE = ".scoringStrategy.requestedToCapacityRatio.shape"


@pytest.mark.parametrize("plugin, args, wrong", [
    ("InterPodAffinity", "hardPodAffinityWeight: 100", []),
    ("InterPodAffinity", "hardPodAffinityWeight: 101", [".hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"]),
    ("InterPodAffinity", "hardPodAffinityWeight: -1", [".hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"]),
    ("NodeResourcesFit", "scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}", []),
    ("NodeResourcesFit", "scoringStrategy: {type: Best}", ['.scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"']),
    ("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}]}", [".scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]"]),
    ("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {}}", [".scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"]),
    ("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio}", [".scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio"]),
    ("NodeResourcesFit", RATIO % "[]", [f"{SHAPE}: Required value: at least one point must be specified"]),
    ("NodeResourcesFit", RATIO % "[{utilization: 0, score: 10}, {utilization: 100}]", []),
    ("NodeResourcesFit", RATIO % "[{utilization: 5, score: 1}, {utilization: 5, score: 2}]", [f"{SHAPE}[1].utilization: Invalid value: 5: values must be sorted in increasing order"]),
    ("NodeResourcesFit", RATIO % "[{utilization: 101, score: 11}]", [f"{SHAPE}[0].utilization: Invalid value: 101: not in valid range [0, 100]", f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]"]),
    ("NodeResourcesFit", "ignoredResourceGroups: [a/b]", ['.ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can\'t contain \'/\'']),
    ("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 1}, {name: cpu, weight: 2}]", ['.resources[1].name: Duplicate value: "cpu"', ".resources[1].weight: Invalid value: 2: must be 1"]),
    ("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}", []),
    ("PodTopologySpread", "defaultingType: Some", ['.defaultingType: Unsupported value: "Some": supported values: "System", "List"']),
    ("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}", ['.defaultingType: Invalid value: "System": when .defaultConstraints are not empty']),
    ("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{labelSelector: {}}]}", [".defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)", ".defaultConstraints[0].topologyKey: Required value: can not be empty", ".defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty", ".defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod"]),
    ("DefaultPreemption", "{minCandidateNodesPercentage: 0}", []),
    ("DefaultPreemption", "{minCandidateNodesAbsolute: 0}", []),
    ("DefaultPreemption", "{minCandidateNodesPercentage: 100}", []),
    ("DefaultPreemption", "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}", [".minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]", ".minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"]),
    ("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}", [".minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute", ".minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage"]),
    ("NodeAffinity", "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}", [".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("OutOfTreePlugin", "x: 1", []),
])  # fmt: skip
def test_arguments(plugin, args, wrong):
    found = scheduler_config.validate_scheduler_config(with_args(plugin, args))
    assert [fault.removeprefix(ARGS) for fault in found] == wrong


def configured(config, scheduler_name=""):
    """The rules of the profile, by plugin."""
    profile = scheduler_config.profile_of(config, scheduler_name)
    return {rule.name: rule for rule in profiles.pod_rules(profile)}


@pytest.mark.parametrize("plugin, args, attribute, value", [
    ("InterPodAffinity", "{}", "hard_weight", 1),
    ("InterPodAffinity", "hardPodAffinityWeight: 0", "hard_weight", 0),
    ("InterPodAffinity", "ignorePreferredTermsOfExistingPods: true", "ignore_preferred_terms_of_existing_pods", True),
    ("NodeResourcesFit", "ignoredResources: [a/b]", "ignored_resources", {"a/b"}),
    ("NodeResourcesFit", "ignoredResourceGroups: [a]", "ignored_resource_groups", {"a"}),
    ("NodeResourcesFit", "{}", "strategy", ScoringStrategy()),
    ("NodeResourcesFit", "scoringStrategy: {type: MostAllocated}", "strategy", ScoringStrategy("MostAllocated")),
    ("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, resources: [{name: cpu}, {name: a/b, weight: 3}]}", "strategy", ScoringStrategy(resources=(("cpu", 1), ("a/b", 3)))),
    ("NodeResourcesFit", RATIO % "[{score: 2}, {utilization: 90}]", "strategy", ScoringStrategy("RequestedToCapacityRatio", shape=((0, 20), (90, 0)))),
    ("NodeResourcesBalancedAllocation", "resources: []", "resources", ("cpu", "memory")),
    ("NodeResourcesBalancedAllocation", "resources: [{name: a/b}]", "resources", ("a/b",)),
    ("PodTopologySpread", "{defaultingType: List}", "defaults", ()),
    ("PodTopologySpread", "{defaultingType: List}", "system", False),
    ("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}", "defaults", (SpreadConstraint(2, "zone", hard=True, selector=None),)),
    ("PodTopologySpread", "{defaultingType: System}", "defaults", SYSTEM_DEFAULTS),
    ("PodTopologySpread", "{defaultingType: System}", "system", True),
    ("NodeAffinity", "{}", "added", None),
    ("NodeAffinity", "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}", "added", NodeAffinity(required=(NodeTerm((NodeRequirement("a", "Exists"),)),))),
])  # fmt: skip
def test_arguments_reach_their_rule(plugin, args, attribute, value):
    assert getattr(configured(with_args(plugin, args))[plugin].arguments, attribute) == value


def test_null_arguments_are_the_defaults():
    config = {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": None}]}]}
    assert configured(config)["NodeResourcesFit"].arguments.strategy == ScoringStrategy()


@pytest.mark.parametrize("plugins, weights", [
    ("{}", {"TaintToleration": 3, "ImageLocality": 1}),
    ("{score: {enabled: [{name: TaintToleration}]}}", {"TaintToleration": 1}),  # not its default weight
    ("{multiPoint: {enabled: [{name: TaintToleration, weight: 7}]}}", {"TaintToleration": 7}),
    ("{multiPoint: {enabled: [{name: TaintToleration, weight: 7}]}, score: {enabled: [{name: TaintToleration, weight: 4}]}}", {"TaintToleration": 4}),
    ("{score: {disabled: [{name: TaintToleration}]}}", {"TaintToleration": 0, "NodeAffinity": 2}),
    ("{score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 5}]}}", {"TaintToleration": 0, "NodeAffinity": 5}),
])  # fmt: skip
def test_weights(plugins, weights):
    rules = configured({"profiles": [{"plugins": objects.read(plugins)}]})
    assert {name: rules[name].weight for name in weights} == weights


@pytest.mark.parametrize("profile", [
    "{plugins: {multiPoint: {disabled: [{}]}}}",
    "{plugins: {score: {disabled: [{}]}}}",
    "{plugins: {filter: {disabled: [{name: null}]}}}",
])  # fmt: skip
def test_a_disabled_entry_without_a_name_has_no_effect(profile):
    """As in kube-scheduler."""
    rules, default = configured({"profiles": [objects.read(profile)]}), configured(None)
    assert [(name, rule.weight) for name, rule in rules.items()] == [
        (name, rule.weight) for name, rule in default.items()
    ]


def test_disabling_all_leaves_what_is_enabled_and_the_rule_that_is_no_plugin():
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodePorts"}]}}
    assert list(configured({"profiles": [{"plugins": plugins}]})) == ["Bayplan", "NodePorts"]


def test_the_profile_of_a_scheduler_name_or_else_the_first():
    args = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}}]
    config = {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "pluginConfig": args}]}
    weights = [configured(config, name)["InterPodAffinity"].arguments.hard_weight for name in ("b", "a", "other")]
    assert weights == [5, 1, 1]


def test_the_supported_plugins_are_all_of_kube_scheduler_in_order():
    rules, others = {plugin.name for plugin in profiles.POD_PLUGINS}, set(scheduler_config.OTHER_PLUGINS)
    assert list(scheduler_config.PLUGINS) == sorted(rules | others)
    assert len(others) == 9


def test_a_configuration_that_kube_scheduler_ran_with_is_valid():
    with gzip.open(RECORDED, "rt") as lines:
        options = [json.loads(line).get("options", {}) for line in lines]
    configs = [option["config"] for option in options if "config" in option]
    assert configs
    for config in configs:
        assert scheduler_config.validate_scheduler_config(config) == []
