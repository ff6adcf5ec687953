"""
Fleet scenarios: situations and timelines with their expected outcome, from `scenarios/fleet` to questions of `decide fleet`.

`clusters` and `workloads` are shorthand, placements are verbatim. `expect` lists the clusters of workloads, each scheduled by
itself. `steps` continue from there: each changes something and lists the clusters of workloads then, starting from the
previous result. `variants` repeat everything with other fields in a placement, which must give the same result.

A misspelt key, a workload on a cluster that does not exist, or an expectation that no answer could satisfy is rejected. So is
a step that omits a workload which Karmada would schedule again, and one that lists such a workload as `unmoved`.
"""

import copy

import yaml

import fleet_shorthand as shorthand
import scenarios
from scenarios import InvalidScenarioError, check_keys

FOLDER = scenarios.FOLDER / "fleet"

# Ids of the rules, by their names in the reference implementation.
RULE_IDS = {
    "ClusterDeletion": "cluster-leaving",
    "ClusterAffinity": "cluster-affinity",
    "APIEnablement": "api-missing",
    "TaintToleration": "cluster-taint",
    "SpreadConstraint": "spread-property",
    "ClusterEviction": "cluster-evicting",
    "WorkloadAffinity": "workload-affinity",
    "WorkloadAntiAffinity": "workload-anti-affinity",
}
TERM_RULE_IDS = {"WorkloadAffinity": "workload-terms", "WorkloadAntiAffinity": "workload-anti-terms"}
ALL_RULE_IDS = {*RULE_IDS.values(), *TERM_RULE_IDS.values()}
REASONS = {"NoClusterFit", "Unschedulable", "SchedulerError"}

SCENE = {"about", "clusters", "workloads", "namespaces", "options", "variants", "expect", "steps"}
STEP = {"replicas", "fails", "recovers", "clusters", "rebalance", "delete", "evict", "expect", "unmoved"}
OPTIONS = {"semantics", "switches", "affinityLabelKeys", "antiAffinityLabelKeys"}
EXPECTATION = {"clusters", "nowhere", "rejected", "peers", "group", "errors"}

FAILED = [{"key": "cluster.karmada.io/not-ready", "effect": effect} for effect in ("NoSchedule", "NoExecute")]


class Case:
    """One workload in one step under one preset: a question and the expected answer."""

    def __init__(self, claim, question, expected):
        self.claim = claim
        self.question = question
        self.expected = expected

    def check(self, answer):
        """Fail with the claim and the whole answer if the answer is not as expected."""
        for difference in differences(self.expected, answer):
            raise AssertionError(f"{self.claim}: {difference}\n{yaml.safe_dump(answer, sort_keys=False)}")


class TriggerCase:
    """Whether a workload is scheduled again after a change: its binding, and the clusters that are being deleted."""

    def __init__(self, claim, name, binding, leaving, due):
        self.claim = claim
        self.name = name
        self.binding = binding
        self.leaving = leaving
        self.due = due


def all_cases_and_triggers():
    """The cases and the triggers of all scenarios."""
    loaded = [load(path) for path in sorted(FOLDER.rglob("*.yaml"))]
    return [case for cases, _ in loaded for case in cases], [trigger for _, triggers in loaded for trigger in triggers]


def load(path):
    claim = str(path.relative_to(scenarios.FOLDER).with_suffix(""))
    try:
        return cases_of(claim, scenarios.read(path))
    except InvalidScenarioError as problem:
        raise InvalidScenarioError(f"{path}: {problem}") from None


def cases_of(claim, scene):
    """(cases, triggers) of one scenario."""
    check_keys("scenario", scene, SCENE)
    for needed in ("about", "clusters", "workloads"):
        if not scene.get(needed):
            raise InvalidScenarioError(f"{needed!r} is missing or empty")
    options = scene.get("options") or {}
    check_keys("options", options, OPTIONS)
    if not scene.get("expect") and not scene.get("steps"):
        raise InvalidScenarioError("nothing is expected")
    presets = options.get("semantics") or "upstream"
    cases, triggers = [], []
    for preset in presets if isinstance(presets, list) else [presets]:
        for variant, placements in (scene.get("variants") or {"": {}}).items():
            timeline = Timeline(scene, {**options, "semantics": preset}, variant, placements)
            for step, question, expected in timeline.questions():
                name = full_name(claim, variant, step, question["name"], preset)
                cases.append(Case(claim, {**question, "name": name}, expected))
            for step, workload, binding, leaving, due in timeline.triggers:
                name = full_name(claim, variant, step, workload, preset)
                triggers.append(TriggerCase(claim, name, binding, leaving, due))
    return cases, triggers


def full_name(*parts):
    return ":".join(part for part in parts if part)


class Timeline:
    """A fleet that changes from step to step, kept in shorthand."""

    def __init__(self, scene, options, variant, placements):
        self.scene, self.options, self.variant = scene, options, variant
        self.triggers = []
        # Copied one by one: a YAML alias is the same object twice.
        self.workloads = {name: copy.deepcopy(short or {}) for name, short in scene["workloads"].items()}
        self.clusters = {name: copy.deepcopy(short or {}) for name, short in scene["clusters"].items()}
        for name, fields in placements.items():
            short = self.workload(name)
            short["placement"] = {**(short.get("placement") or {}), **copy.deepcopy(fields)}
        for name, short in self.clusters.items():
            shorthand.check_cluster(name, short)
        for name, short in self.workloads.items():
            shorthand.check_workload(name, short, self.clusters)
            if shorthand.has_replicas(short):
                short["replicas"] = shorthand.replicas(short)
        self.clusters = {
            name: shorthand.with_free_resources(short, name, self.workloads) for name, short in self.clusters.items()
        }
        self.namespaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}
            for name, labels in (scene.get("namespaces") or {}).items()
        ]

    def questions(self):
        """(step, question, expectation), in order; the next step starts from what is expected."""
        pending = {name for name, short in self.workloads.items() if not short.get("runs")}
        pending -= set(self.scene.get("expect") or {})
        if self.scene.get("expect"):
            yield from self.ask("", self.scene["expect"])
        for number, step in enumerate(self.scene.get("steps") or [], 1):
            check_keys(f"step {number}", step, STEP)
            if not (step.get("expect") or step.get("unmoved")):
                raise InvalidScenarioError(f"step {number}: nothing is expected")
            self.change(step)
            self.check_expected_moves(number, step)
            pending -= set(step.get("expect") or {}) | set(step.get("delete") or ())
            yield from self.ask(f"step {number}", step.get("expect") or {})
        if pending:
            raise InvalidScenarioError(f"nothing is expected of {sorted(pending)}")

    def ask(self, step, expected):
        asked = []
        for name, outcome in expected.items():
            self.check_expectation(name, outcome)
            wanted = {**outcome, "group": self.group(outcome)}
            asked.append((step, {**self.question(name), "name": name}, wanted))
        for name, outcome in expected.items():
            self.record_result(self.workload(name), outcome)
        return asked

    def question(self, asked):
        return {
            "clusters": [shorthand.cluster(name, short, self.workloads) for name, short in self.clusters.items()],
            "bindings": [shorthand.binding(name, short) for name, short in self.workloads.items() if name != asked],
            "binding": shorthand.binding(asked, self.workloads[asked]),
            "resources": [
                *self.namespaces,
                *(shorthand.template(name, short) for name, short in self.workloads.items() if "labels" in short),
            ],
            "options": self.options,
        }

    def record_result(self, short, outcome):
        """What Karmada writes: NoClusterFit clears the previous result, other failures keep it."""
        if "clusters" in outcome:
            short["runs"] = outcome["clusters"]
            short["observed"] = self.group(outcome) or short.get("observed")
            short["fresh"] = False
        elif outcome["nowhere"] == "NoClusterFit":
            short["runs"] = {}

    def group(self, outcome):
        """The observed affinity name; where variants differ in it, by variant."""
        group = outcome.get("group") or ""
        return group.get(self.variant, "") if isinstance(group, dict) else group

    def workload(self, name):
        if name not in self.workloads:
            raise InvalidScenarioError(f"workload {name!r} does not exist")
        return self.workloads[name]

    def cluster(self, name):
        if name not in self.clusters:
            raise InvalidScenarioError(f"cluster {name!r} does not exist")
        return self.clusters[name]

    # Changes

    def change(self, step):
        """Before the change, all workloads are healthy on their clusters, so evictions are complete."""
        for short in self.workloads.values():
            if short.get("runs"):
                short.pop("evicting", None)
        for name, number in (step.get("replicas") or {}).items():
            self.workload(name)["replicas"] = number
        for name in step.get("fails") or ():
            self.cluster(name)["taints"] = FAILED
            for short in self.workloads.values():
                self.evict(short, name)
        for name in step.get("recovers") or ():
            if self.cluster(name).pop("taints", None) is None:
                raise InvalidScenarioError(f"cluster {name} cannot recover: it has not failed")
        for name, changes in (step.get("clusters") or {}).items():
            shorthand.check_cluster(name, changes)
            self.cluster(name).update(copy.deepcopy(changes))
        for name, where in (step.get("evict") or {}).items():
            for each in where:
                self.evict(self.workload(name), each)
        for name in step.get("rebalance") or ():
            self.workload(name)["fresh"] = True
            shorthand.check_workload(name, self.workload(name), self.clusters)
        for name in step.get("delete") or ():
            self.workload(name)
            del self.workloads[name]

    def evict(self, short, cluster):
        runs = dict(shorthand.targets(short))
        if cluster in runs:
            del runs[cluster]
            short["runs"] = runs if shorthand.has_replicas(short) else list(runs)
            short.setdefault("evicting", []).append(cluster)

    def check_expected_moves(self, number, step):
        expected, unmoved = set(step.get("expect") or {}), set(step.get("unmoved") or ())
        for name in unmoved:
            self.workload(name)
        leaving = {name for name, short in self.clusters.items() if short.get("deleting")}
        for name, short in self.workloads.items():
            reason = self.scheduled_again_because(short)
            if name in unmoved or (reason and name in expected):
                self.triggers.append((f"step {number}", name, shorthand.binding(name, short), leaving, bool(reason)))
            if reason and name in unmoved:
                raise InvalidScenarioError(f"step {number}: {name} does not stay unmoved: {reason}")
            if reason and name not in expected and (short.get("runs") or short.get("evicting")):
                raise InvalidScenarioError(f"step {number}: an expectation for {name} is missing: {reason}")
        if expected & unmoved:
            raise InvalidScenarioError(f"step {number}: {min(expected & unmoved)} is expected to move and not to")

    def scheduled_again_because(self, short):
        """Why Karmada would schedule it again (doScheduleBinding), for the changes that a step can make."""
        running = dict(shorthand.targets(short))
        if short.get("fresh"):
            return "a rebalance was requested"
        if short.get("evicting"):
            return "it is evicted"
        if shorthand.is_divided(short) and sum(running.values()) != shorthand.replicas(short):
            return "its replicas do not add up"
        if any(self.clusters[name].get("deleting") for name in running):
            return "its cluster is being deleted"
        return ""

    # Checks of expectations

    def check_expectation(self, name, expected):
        what = f"expectation for {name}"
        short = self.workload(name)
        check_keys(what, expected, EXPECTATION)
        if sum(key in expected for key in ("clusters", "nowhere")) != 1:
            raise InvalidScenarioError(f"{what}: say clusters or nowhere")
        chosen, rejected = expected.get("clusters") or {}, expected.get("rejected") or {}
        for each in [*chosen, *rejected]:
            if each not in self.clusters:
                raise InvalidScenarioError(f"{what}: cluster {each!r} does not exist")
        for each, rule in rejected.items():
            if rule not in ALL_RULE_IDS:
                raise InvalidScenarioError(f"{what}: no rule {rule!r}")
            if each in chosen:
                raise InvalidScenarioError(f"{what}: {each} cannot be rejected and chosen")
        for each in expected.get("peers") or ():
            if each not in rejected:
                raise InvalidScenarioError(f"{what}: {each} is not rejected, so it has no conflicting peers")
        if isinstance(chosen, list) and shorthand.has_replicas(short):
            raise InvalidScenarioError(f"{what}: say how many replicas each cluster gets")
        if chosen and shorthand.is_divided(short) and sum(chosen.values()) != shorthand.replicas(short):
            raise InvalidScenarioError(f"{what}: {shorthand.replicas(short)} replicas are to be placed")
        if "nowhere" in expected:
            self.check_failure(what, expected)
        if self.group(expected) and self.group(expected) not in group_names(short):
            raise InvalidScenarioError(f"{what}: no group {self.group(expected)!r} in its placement")

    def check_failure(self, what, expected):
        if expected["nowhere"] not in REASONS:
            raise InvalidScenarioError(f"{what}: nowhere is one of {', '.join(sorted(REASONS))}")
        if expected["nowhere"] == "NoClusterFit" and set(expected.get("rejected") or {}) != set(self.clusters):
            raise InvalidScenarioError(f"{what}: NoClusterFit needs a rejection for every cluster")
        if "group" in expected:
            raise InvalidScenarioError(f"{what}: a workload that is not scheduled observes no group")


def group_names(short):
    """The names of the terms in the placement and in its annotation."""
    annotation = yaml.safe_load((short.get("annotations") or {}).get("bayplan.io/placement") or "{}")
    lists = [
        written.get(field) or ()
        for written in (short.get("placement") or {}, annotation)
        for field in ("clusterAffinities", "preferredClusterAffinities")
    ]
    return {term.get("affinityName") for terms in lists for term in terms}


def differences(expected, answer):
    """
    The differences between expectation and answer.

    `rejected` is the whole list of rejected clusters of the chosen group (else the first that failed), each with the first
    rule that rejects it. No `group` means that none is observed; `errors` and the conflicting `peers` on a cluster are
    compared where they are given.
    """
    chosen = expected.get("clusters") or {}
    wanted = dict.fromkeys(chosen, 0) if isinstance(chosen, list) else chosen
    placed = {target["name"]: target.get("replicas") or 0 for target in answer.get("clusters") or []}
    if placed != wanted:
        yield f"expected {wanted or 'no cluster'}, got {placed or 'no cluster'}"
    if (answer.get("reason") or "") != expected.get("nowhere", ""):
        yield f"expected the reason {expected.get('nowhere', '')!r}, got {answer.get('reason')!r}"
    if (answer.get("observedAffinityName") or "") != (expected.get("group") or ""):
        yield f"expected the group {expected.get('group') or ''!r}, got {answer.get('observedAffinityName')!r}"
    rejected = rejected_clusters(answer)
    if rejected != (expected.get("rejected") or {}):
        yield f"expected rejections {expected.get('rejected') or {}}, got {rejected}"
    for name, wanted in (expected.get("peers") or {}).items():
        failures = answer["verdicts"][name]["failures"]
        peers = sorted({peer for failure in failures for peer in failure.get("peers") or ()})
        if peers != sorted(wanted):
            yield f"expected the peers {wanted} on {name}, got {peers}"
    if "errors" in expected and list(answer.get("errors") or ()) != expected["errors"]:
        yield f"expected the errors {expected['errors']}, got {answer.get('errors')}"


def rejected_clusters(answer):
    """{cluster: first rule that rejects it}, without the rule for workloads whose own rules cannot be read."""
    found = {
        name: rule_id(verdict["failures"][0])
        for name, verdict in (answer.get("verdicts") or {}).items()
        if not verdict["fits"]
    }
    return {name: rule for name, rule in found.items() if rule != "placeable"}


def rule_id(failure):
    """The id of a rule; a failure with a term is of the design document's terms, one without of Karmada's groups."""
    named = {**RULE_IDS, **TERM_RULE_IDS} if failure.get("term") else RULE_IDS
    return named.get(failure["rule"], failure["rule"])
