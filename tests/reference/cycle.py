"""One scheduling cycle of one pod: the input of every rule. Knows nothing of any rule."""

import msgspec

from bayplan.model.semantics import PRESETS
from reference.objects import Cluster, Pod
from reference.profile import Profile

SUCCESS = "Success"
UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
EXCLUDED = "PreFilterExcluded"

SKIP = "skip"  # a rule says: nothing of mine to check, or to score


class Rejected:
    def __init__(self, code, *reasons):
        self.code = code
        self.reasons = list(reasons)


class Cycle:
    def __init__(self, question):
        options = question.get("options") or {}
        self.cluster = Cluster(question)
        self.pod = Pod(question["pod"])
        self.profile = Profile(options.get("config"), self.pod.spec.get("schedulerName"))
        self.semantics = semantics_of(options, self.cluster)
        self.notes = {}  # what a rule wrote down before filtering or scoring, by rule

    def args(self, plugin):
        return self.profile.args.get(plugin) or {}


def semantics_of(options, cluster):
    """The switches. Without default topology keys, those are all label keys that a node of the cluster has."""
    semantics = PRESETS[options.get("semantics") or "upstream"]
    changes = dict(options.get("switches") or {})
    if options.get("daemonNamespaces") is not None:
        changes["daemonNamespaces"] = options["daemonNamespaces"]
    switches = {**msgspec.to_builtins(semantics), **changes}
    of_nodes = sorted({key for node in cluster.nodes for key in node.labels})
    switches["defaultTopologyKeys"] = switches["defaultTopologyKeys"] or of_nodes
    return msgspec.convert(switches, type(semantics))


def normalise_by_maximum(scores, *, reverse=False):
    """kube-scheduler's DefaultNormalizeScore, by node."""
    highest = max(scores.values(), default=0)
    if highest == 0:
        return dict.fromkeys(scores, 100) if reverse else scores
    scaled = {name: 100 * score // highest for name, score in scores.items()}
    return {name: 100 - score for name, score in scaled.items()} if reverse else scaled
