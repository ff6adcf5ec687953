"""
Enforcement scenarios: timelines of rules that break while pods run, from `scenarios/enforcement`.

`nodes`, `pods` and `namespaces` are shorthand as in other scenarios, and every pod is on a node. Each of the `steps` changes
something at a time in seconds and lists what is broken then, which pods are evicted, and which are spared and why. What is
not listed is expected not to be: a step without `broken` expects that no rule is broken. An evicted pod is terminating until
it is in the `ends` of a step. `withheld` lists the pods that a rule may not evict, by its owner. With the setting `dryRun` nothing is evicted, and `wouldGo` lists the victims.

A misspelt key, a pod that does not exist or a time that decreases is rejected.
"""

import copy

import msgspec

import scenarios
from bayplan.enforcing import enforcer
from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import equals
from bayplan.model.semantics import PRESETS
from bayplan.rules import profiles
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod
from reference import violations as reference_implementation
from scenarios import InvalidScenarioError, check_keys

FOLDER = scenarios.FOLDER / "enforcement"
SCENE = {"about", "nodes", "pods", "namespaces", "budgets", "options", "settings", "steps"}
OPTIONS = {"semantics", "daemonNamespaces"}
SETTINGS = {
    "affinityGrace",
    "antiAffinityGrace",
    "perMinute",
    "atOnce",
    "retryAfter",
    "onlyIfPlaceable",
    "dryRun",
    "granted",
}
CHANGES = {
    "starts",
    "ends",
    "relabel",
    "annotate",
    "relabelNodes",
    "relabelNamespaces",
    "nodesGone",
    "budgets",
    "enforce",
}
EXPECTATION = {"broken", "evicted", "wouldGo", "spared", "waiting", "withheld"}
BUDGET = {"selector", "allowed"}


def all_timelines():
    """(name, preset, scenario) of all files, once for each preset."""
    found = []
    for path in sorted(FOLDER.rglob("*.yaml")):
        scene = scenarios.read(path)
        try:
            check(scene)
        except InvalidScenarioError as problem:
            raise InvalidScenarioError(f"{path}: {problem}") from None
        presets = (scene.get("options") or {}).get("semantics") or "upstream"
        found += [(path.stem, preset, scene) for preset in (presets if isinstance(presets, list) else [presets])]
    return found


def check(scene):
    check_keys("scenario", scene, SCENE)
    for needed in ("about", "nodes", "pods", "steps"):
        if not scene.get(needed):
            raise InvalidScenarioError(f"{needed!r} is missing or empty")
    check_keys("options", scene.get("options") or {}, OPTIONS)
    check_keys("settings", scene.get("settings") or {}, SETTINGS)
    for name, budget in (scene.get("budgets") or {}).items():
        check_keys(f"budget {name}", budget, BUDGET)
    known, before = set(scene["pods"]), -1
    for step in scene["steps"]:
        check_keys("step", step, {"at", *CHANGES, *EXPECTATION})
        known |= set(step.get("starts") or {})
        if step.get("at", -1) <= before:
            raise InvalidScenarioError(f"step at {step.get('at')}: time must be after {before}")
        before = step["at"]
        for each in named(step):
            if each not in known:
                raise InvalidScenarioError(f"step at {before}: pod {each!r} is not there")


def named(step):
    broken = {**(step.get("broken") or {}), **(step.get("withheld") or {})}
    lists = [step.get(key) or [] for key in ("ends", "relabel", "annotate", "evicted", "wouldGo", "spared", "waiting")]
    return [
        *(each for names in lists for each in names),
        *broken,
        *(each for peers in broken.values() for each in peers),
    ]


class Timeline:
    """The cluster of a scenario, step by step: in an index under enforcement, and as manifests for the reference implementation."""

    def __init__(self, scene, preset):
        options = {key: value for key, value in (scene.get("options") or {}).items() if key != "semantics"}
        self.options = {**options, "semantics": preset}
        semantics = PRESETS[preset]
        if "daemonNamespaces" in options:
            semantics = msgspec.structs.replace(semantics, daemon_namespaces=tuple(options["daemonNamespaces"]))
        self.scene = copy.deepcopy(scene)
        self.index = PlacementIndex(semantics)
        self.engine = Engine(self.index, profiles.pod_rules())
        self.manifests = {}
        for name, labels in (scene.get("namespaces") or {}).items():
            self.index.set_namespace(name, labels or {})
        for name in scene["nodes"]:
            self.index.add_target(self.target(name))
        for name in scene["pods"]:
            self.start(name)
        given = {snake(key): value for key, value in (scene.get("settings") or {}).items()}
        self.dry_run = given.pop("dry_run", False)
        self.settings = EnforcementSettings(**{**given, "granted": frozenset(given.get("granted", ()))})
        self.enforcer = Enforcer(self.settings)
        self.tracker = ViolationTracker(self.index, self.settings.granted)

    def run(self):
        """(time, expectation, violations by the reference implementation, result) for each step."""
        for step in self.scene["steps"]:
            self.change(step)
            by_reference = self.violations_by_reference()  # before the evictions of this step
            expected = {
                key: step.get(key) or ({} if key in ("broken", "spared", "withheld") else []) for key in EXPECTATION
            }
            yield step["at"], expected, by_reference, self.evaluate(step["at"])

    # Changing

    def change(self, step):
        for name, short in (step.get("starts") or {}).items():
            self.scene["pods"][name] = short
            self.start(name)
        for name in step.get("ends") or ():
            key = pod_key(self.manifests.pop(name))
            self.index.remove(key)
            self.enforcer.gone(key)
        for name, labels in (step.get("relabel") or {}).items():
            self.scene["pods"][name]["labels"] = labels
            self.manifests[name]["metadata"]["labels"] = labels
            self.index.replace(workload(self.manifests[name]))
        for name, annotations in (step.get("annotate") or {}).items():
            self.manifests[name]["metadata"]["annotations"] = annotations
            self.index.replace(workload(self.manifests[name]))
        for name, labels in (step.get("relabelNodes") or {}).items():
            self.scene["nodes"][name]["labels"] = labels
            self.index.update_target(self.target(name))
        for name, labels in (step.get("relabelNamespaces") or {}).items():
            self.scene["namespaces"][name] = labels
            self.index.set_namespace(name, labels)
        for name in step.get("nodesGone") or ():
            del self.scene["nodes"][name]
            self.index.remove_target(name)
        for name, allowed in (step.get("budgets") or {}).items():
            self.scene["budgets"][name]["allowed"] = allowed
        if "enforce" in step:
            (self.enforcer.switch_on if step["enforce"] else self.enforcer.switch_off)()

    def start(self, name):
        manifest = scenarios.pod(name, self.scene["pods"][name] or {}, self.scene)
        if "nodeName" not in manifest["spec"]:
            raise InvalidScenarioError(f"pod {name} is on no node")
        self.manifests[name] = manifest
        self.index.add(workload(manifest), manifest["spec"]["nodeName"])

    def target(self, name):
        return targets.target_of_node(msgspec.convert(scenarios.node(name, self.scene["nodes"][name] or {}), Node))

    # Evaluating

    def evaluate(self, now):
        violations, precedence = self.tracker.violations(), self.tracker.precedence()
        broken = {}
        for violation in violations:
            broken.setdefault(short(violation.owner), set()).update(map(short, violation.peers))
        self.enforcer.observe(violations, now)
        with enforcer.checking_other_targets(self.engine, EMPTY_SPREAD_CONTEXT) as has_another:
            plan = self.enforcer.due(now, precedence, has_another)
        evicted, spared = [], {short(delay.victim): delay.why for delay in plan.spared}
        budgets = EvictionBudgets(self.budgets())
        for eviction in () if self.dry_run else plan.evict:
            asked = self.index.records[eviction.victim].workload
            rejection = budgets.rejection(asked)
            if rejection:
                self.enforcer.rejected(eviction.victim, rejection, now)
                spared[short(eviction.victim)] = rejection
                continue
            budgets.charge(asked)
            self.enforcer.evicted(eviction.victim, now)
            evicted.append(short(eviction.victim))
            self.terminate(short(eviction.victim))
        waiting = [short(delay.victim) for delay in plan.waiting]
        return {
            "broken": {owner: sorted(peers) for owner, peers in broken.items()},
            "evicted": evicted,
            "wouldGo": [short(eviction.victim) for eviction in plan.evict] if self.dry_run else [],
            "spared": spared,
            "waiting": waiting,
            "withheld": {short(one.violation.owner): sorted(map(short, one.peers)) for one in plan.withheld},
        }

    def terminate(self, name):
        self.manifests[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.index.replace(workload(self.manifests[name]))

    def budgets(self):
        return [
            DisruptionBudget(
                namespace="default", name=name, selector=equals(short["selector"]), allowed=short["allowed"]
            )
            for name, short in (self.scene.get("budgets") or {}).items()
        ]

    def violations_by_reference(self):
        """Owner → peers, by the reference implementation."""
        question = {
            "nodes": [scenarios.node(name, short or {}) for name, short in self.scene["nodes"].items()],
            "namespaces": [
                {"metadata": {"name": name, "labels": labels or {}}}
                for name, labels in (self.scene.get("namespaces") or {}).items()
            ],
            "pods": list(self.manifests.values()),
            "options": self.options,
        }
        found = {}
        for owner, *_, peers in reference_implementation.broken(question):
            found.setdefault(short(owner), set()).update(map(short, peers))
        return {owner: sorted(peers) for owner, peers in found.items()}


def workload(manifest):
    return pods.workload_of(msgspec.convert(manifest, Pod))


def pod_key(manifest):
    return workload(manifest).key


def short(key):
    return key.partition("/")[2]


def snake(name):
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
