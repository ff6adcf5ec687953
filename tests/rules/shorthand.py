"""
Shorthand for tables about one rule: nodes, pods and clusters in a line each, and the outcome that a user notices.

`nodes("a1 zone=a; b1 zone=b")`, `pod("shop/web@a1 app=web")` is a pod on a node, `pod("web")` a pending one. Selectors have
kubectl's grammar. A term is `SELECTOR by TOPOLOGYKEY`, then `in NAMESPACE,...` or `where NAMESPACESELECTOR`; a preferred
one starts with its weight. A toleration is written as a taint is: without `=` its operator is Exists.
"""

import re

import msgspec

import fleet_shorthand
import scenarios
from bayplan.engine import filtering, scoring
from bayplan.engine.engine import Engine
from bayplan.model.reasons import StatusCode
from bayplan.reading import questions

CODES = {StatusCode.UNSCHEDULABLE: "U", StatusCode.UNRESOLVABLE: "UU"}
NODE_OPTIONS = ("labels", "taints", "unschedulable", "allocatable", "images")

# Labels, selectors, taints


def labels(text):
    """`zone=a disk=` is two labels, the second with an empty value."""
    return dict(word.split("=", 1) for word in text.split())


def requirements(text):
    """kubectl's grammar, and `cores>8` for Gt, `cores<8` for Lt."""
    found = []
    for one in (word.strip() for word in re.findall(r"[^,(]+(?:\([^)]*\))?", text)):
        listed = re.fullmatch(r"(\S+) (in|notin) \(([^)]*)\)", one)
        compared = re.fullmatch(r"([^=!<>]+)(!=|=|<|>)(.*)", one)
        if listed:
            key, operator, values = listed.groups()
            values = [value.strip() for value in values.split(",")] if values else []
            found.append({"key": key, "operator": {"in": "In", "notin": "NotIn"}[operator], "values": values})
        elif compared:
            key, sign, value = compared.groups()
            operator = {"=": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}[sign]
            found.append({"key": key, "operator": operator, "values": [value]})
        elif one.startswith("!"):
            found.append({"key": one[1:], "operator": "DoesNotExist"})
        elif one:
            found.append({"key": one, "operator": "Exists"})
    return found


def selector(text):
    """None stays null; "" selects everything."""
    return None if text is None else {"matchExpressions": requirements(text)} if text else {}


def taints(text):
    """`dedicated=db:NoSchedule, spot:NoExecute`."""
    found = []
    for one in filter(None, (word.strip() for word in text.split(","))):
        pair, effect = one.rsplit(":", 1)
        key, _, value = pair.partition("=")
        found.append({"key": key, "value": value, "effect": effect})
    return found


def tolerations(text):
    """As taints; `:` alone tolerates everything, `spot` and `spot:` any effect."""
    found = []
    for one in filter(None, (word.strip() for word in text.split(","))):
        pair, _, effect = one.partition(":")
        key, equals, value = pair.partition("=")
        written = {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
        found.append({name: value for name, value in written.items() if value})
    return found


def node_term(text):
    """A node selector term; `@a1` and `!@a1` are metadata.name In and NotIn; "" is an empty term."""
    words = [word for word in re.findall(r"[^,(]+(?:\([^)]*\))?", text) if "@" in word]
    fields = [
        {
            "key": "metadata.name",
            "operator": "NotIn" if word.strip()[0] == "!" else "In",
            "values": [word.split("@")[1]],
        }
        for word in words
    ]
    rest = [word for word in re.findall(r"[^,(]+(?:\([^)]*\))?", text) if "@" not in word]
    return {"matchExpressions": requirements(",".join(rest)), "matchFields": fields}


# Nodes and pods


def node(text, **options):
    """Allocatable resources are keywords: `cpu="2"`, `pods="1"`."""
    name, _, rest = text.strip().partition(" ")
    short = {key: value for key, value in options.items() if key in NODE_OPTIONS}
    room = {key: value for key, value in options.items() if key not in NODE_OPTIONS}
    return scenarios.node(name, {"labels": labels(rest), "allocatable": room, **short})


def nodes(text):
    return [node(one) for one in text.split(";")]


def pod(text, *, near=(), away=(), prefers=(), avoids=(), terminating=False, uid=None, **spec):
    """Each of the four lists of terms is one text or several; other keywords are fields of the spec."""
    name, _, rest = text.strip().partition(" ")
    name, _, on = name.partition("@")
    namespace, slash, name = name.rpartition("/")
    metadata = {
        "name": name,
        "namespace": namespace if slash else "default",
        "uid": uid or name,
        "labels": labels(rest),
    }
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    affinity = {
        **spec.pop("affinity", {}),
        "podAffinity": {REQUIRED: each(pod_term, near), PREFERRED: each(weighted, prefers)},
        "podAntiAffinity": {REQUIRED: each(pod_term, away), PREFERRED: each(weighted, avoids)},
    }
    spec = {"containers": [container()], "affinity": affinity, **spec}
    if on:
        spec["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def each(read, texts):
    return [read(text) for text in ((texts,) if isinstance(texts, str) else texts)]


def pod_term(text):
    """`nothing by zone` has a null selector."""
    selected, _, rest = text.partition(" by ")
    key, *scope = re.split(r" (in|where) ", rest)
    chosen = {"nothing": None, "everything": ""}.get(selected, selected)
    term = {"labelSelector": selector(chosen), "topologyKey": key}
    for word, value in zip(scope[::2], scope[1::2], strict=True):
        if word == "in":
            term["namespaces"] = value.split(",")
        else:
            term["namespaceSelector"] = selector("" if value == "everything" else value)
    return term


def weighted(text):
    weight, _, term = text.partition(" ")
    return {"weight": int(weight), "podAffinityTerm": pod_term(term)}


def container(*, ports=(), image="registry.example/main:1", **requests):
    return {"name": "main", "image": image, "ports": list(ports), "resources": {"requests": requests}}


def namespace(text):
    name, _, rest = text.partition(" ")
    return {"metadata": {"name": name, "labels": labels(rest)}}


# Storage


def claim(text, volume="", *, bound=None, storage_class="fast", size="1Gi", modes=("ReadWriteOnce",), **more):
    """A claim with a volume is bound to it unless `bound` is False."""
    annotations = dict(more.pop("annotations", {}))
    if volume and bound is not False:
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
    namespace, slash, name = text.rpartition("/")
    namespace = namespace if slash else "default"
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "annotations": annotations}
    if more.pop("terminating", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": more.pop("phase", "Bound" if volume else "Pending")}
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, "storageClassName": storage_class}
    spec |= {"volumeName": volume, **more}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def volume(
    name, rest="", *, at=None, storage_class="fast", size="1Gi", modes=("ReadWriteOnce",), phase="Available", **more
):
    """`at` are the node selector terms of its node affinity, `rest` its labels."""
    metadata = {"name": name, "labels": labels(rest)}
    if more.pop("terminating", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage_class, **more}
    if at is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": each(node_term, at)}}
    if "driver" in spec:
        spec["csi"] = {"driver": spec.pop("driver"), "volumeHandle": f"handle-{name}"}
    return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def storage_class(name="fast", provisioner="csi.example", mode="WaitForFirstConsumer", allowed=()):
    """`allowed` are topologies such as `zone in (a,b)`."""
    found = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner}
    if mode:
        found["volumeBindingMode"] = mode
    terms = [[{"key": r["key"], "values": r["values"]} for r in requirements(text)] for text in allowed]
    return {**found, "allowedTopologies": [{"matchLabelExpressions": term} for term in terms]}


def uses(*claims):
    """The volumes of a pod that uses these claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


# Clusters and bindings


def cluster(text, **more):
    """`c1 region=eu zones=a,b provider=aws tier=gold`: the first three are fields, the rest labels."""
    name, _, rest = text.strip().partition(" ")
    found = labels(rest)
    fields = {key: found.pop(key) for key in ("region", "provider") if key in found}
    if "zones" in found:
        fields["zones"] = found.pop("zones").split(",")
    return fleet_shorthand.cluster(name, {"labels": found, **fields, **more}, {})


def clusters(text):
    return [cluster(one) for one in text.split(";")]


def binding(text, *, runs=(), **short):
    """`shop/web app=web` with `runs="c1 c2"`; the labels are the template's."""
    name, _, rest = text.strip().partition(" ")
    namespace, slash, name = name.rpartition("/")
    short = {"namespace": namespace if slash else "default", "labels": labels(rest), **short}
    if runs:
        short["runs"] = dict.fromkeys(runs.split(), 1)
    return name, short


# Outcomes


class Outcome(msgspec.Struct):
    """
    `rejected` maps a target to `U TEXT` or `UU TEXT`, several texts joined by " + ". `all` is a rejection of every target.

    `raw` and `scores` are None if the rule does not score; `scores` are normalised, of feasible targets only.
    """

    rejected: dict[str, str]
    all: str = ""
    only: list[str] | None = None
    raw: dict[str, object] | None = None
    scores: dict[str, int] | None = None
    failures: dict[str, list[object]] = {}


def run(rule, asked, on, *scene, explained=True, **options):
    """The outcome of one rule for a pending pod on these nodes; `explained`: the evidence names every reason."""
    situation = situation_of(asked, on, *scene, **options)
    found = checked(rule, situation.workload, situation.index)
    if explained:
        check_evidence(rule, found)
    return found


def situation_of(asked, on, pods=(), objects=(), namespaces=(), semantics="upstream"):
    """The index of these nodes, placed pods, storage objects and namespaces, and the pending pod as a workload."""
    question = {"nodes": nodes(on) if isinstance(on, str) else on, "pod": asked, "objects": list(objects)}
    question |= {"pods": placed(pods), "namespaces": each(namespace, namespaces), "options": {"semantics": semantics}}
    return questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))


def placed(pods):
    texts = pods.split(";") if isinstance(pods, str) else pods
    return [pod(one) if isinstance(one, str) else one for one in texts if one]


def run_fleet(rule, asked, on, others=(), resources=(), group=0, semantics="upstream"):
    """The outcome of one rule for a binding, under the given group of its placement."""
    written = [fleet_shorthand.binding(*one) for one in (asked, *others)]
    templates = [fleet_shorthand.template(*one) for one in (asked, *others)]
    question = {
        "clusters": clusters(on) if isinstance(on, str) else on,
        "binding": written[0],
        "bindings": written[1:],
        "resources": [*templates, *resources],
        "options": {"semantics": semantics},
    }
    situation = questions.fleet_situation_of(msgspec.convert(question, questions.FleetQuestion))
    workload = situation.workload
    chosen = msgspec.structs.replace(workload.binding, group=workload.binding.placement.groups[group])
    found = checked(rule, msgspec.structs.replace(workload, binding=chosen), situation.index)
    check_evidence(rule, found)
    return found


def check_evidence(rule, found):
    """Every reason that the message counts has an entry of this rule."""
    for name, text in found.rejected.items():
        reasons = set(text.partition(" ")[2].split(" + "))
        assert reasons <= {failure.reason for failure in found.failures[name]}
        assert {failure.rule for failure in found.failures[name]} == {rule.id}


def checked(rule, workload, index):
    """
    The outcome, the same when it is asked again after changes that cancel out.

    Each placed workload, target and storage object is removed and added again. An evaluation that follows these changes
    must equal a new one at each step.
    """
    rule.weight = 1
    engine = Engine(index, [rule])
    first = outcome(workload, engine)

    def asked_again():
        fresh = Engine(index, [rule])
        assert outcome(workload, engine) == outcome(workload, fresh)
        fresh.release()

    for key, record in list(index.records.items()):
        index.remove(key)
        asked_again()
        index.add_shares(record.workload, record.shares)
        asked_again()
    for name in list(index.slots.by_name):
        target = index.slots.at(index.slots.by_name[name])
        index.remove_target(name)
        asked_again()
        index.add_target(target)
        asked_again()
        index.update_target(msgspec.structs.replace(target, labels={}, further_labels=(), taints=()))
        asked_again()
        index.update_target(target)
        asked_again()
    for table, stored in index.storage.tables.items():
        for name, value in list(stored.items()):
            index.set_stored(table, name, None)
            asked_again()
            index.set_stored(table, name, value)
            asked_again()
    assert outcome(workload, engine) == first
    return first


def outcome(workload, engine):
    index, verdicts = engine.index, filtering.run(workload, engine)
    names = sorted(index.slots.by_name.items())
    if verdicts.pre_filter_rejection is not None:
        _, reason = verdicts.pre_filter_rejection
        return Outcome({}, all=f"{CODES[reason.status]} {reason.text}")
    if not verdicts.results:
        return Outcome({})
    (result,) = verdicts.results
    found = Outcome({}, only=None if verdicts.excluded is None else [n for n, s in names if not verdicts.excluded[s]])
    rejected = result.rejected()
    for name, slot in names:
        if found.only is not None and name not in found.only:
            continue  # excluded beforehand, so it is not filtered
        if rejected is not None and rejected[slot]:
            reasons = result.reasons(int(result.evaluation.codes[slot]))
            (status,) = {reason.status for reason in reasons}
            found.rejected[name] = f"{CODES[status]} {' + '.join(reason.text for reason in reasons)}"
            found.failures[name] = result.evidence(workload, slot, index)
    raw = result.evaluation.raw
    if raw is not None:
        found.raw = {name: raw[..., slot].tolist() for name, slot in names}
    if verdicts.feasible.any():
        normalised = scoring.run(verdicts, index).by_rule.get(result.rule.name)
        if normalised is not None:
            found.scores = {name: int(normalised[slot]) for name, slot in names if verdicts.feasible[slot]}
    return found


def peers(failures):
    """(domain, peers) of each failure."""
    return [(failure.domain, failure.peers) for failure in failures]
