"""Builders of the objects under test, and the causes for rejecting them."""

import copy

import yaml

from bayplan.validating import admission

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINERS = [{"name": "c", "image": "x"}]


def read(text):
    """YAML as written on one line of a table."""
    return yaml.safe_load(text) if isinstance(text, str) else text


def pod(spec=None, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", **metadata},
        "spec": {"containers": CONTAINERS, **(spec or {})},
    }


def workload(kind, api_version, spec, labels=None):
    """An object of this kind whose pods have the spec."""
    template = {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": CONTAINERS, **spec}}
    inner = {"template": template}
    if kind in ("Job", "CronJob"):
        template["spec"].setdefault("restartPolicy", "Never")
    elif kind != "ReplicationController":  # which takes the labels of its template
        inner["selector"] = {"matchExpressions": [{"key": "none-of-mine", "operator": "DoesNotExist"}]}
    if kind == "CronJob":
        inner = {"schedule": "@daily", "jobTemplate": {"spec": inner}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": inner}


def with_term(term, affinity_kind="podAffinity", when=REQUIRED):
    """A spec with one affinity term; the term may be YAML."""
    item = {"weight": 1, "podAffinityTerm": read(term)} if when == PREFERRED else read(term)
    return {"affinity": {affinity_kind: {when: [item]}}}


def causes_of(obj, below=""):
    """Every cause as `field: message`, without regular expressions and without the prefix `below`."""
    before = copy.deepcopy(obj)
    found = [str(cause).split(" (e.g.")[0].removeprefix(below) for cause in admission.validate(obj)]
    assert obj == before, "validation changed the object"
    return found


def policy(placement=None, *, kind="PropagationPolicy", annotation=None, **spec):
    """A policy with this placement; placement and annotation may be YAML."""
    metadata = {"name": "p"}
    if kind == "PropagationPolicy":
        metadata["namespace"] = "default"
    if annotation is not None:
        metadata["annotations"] = {"bayplan.io/placement": annotation}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    written = {"resourceSelectors": [selector], "placement": read(placement or {}), **spec}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": written}


def binding(spec, kind="ResourceBinding", **annotations):
    """A binding with this spec; the annotations' names are those of Karmada or Bayplan, in full."""
    metadata = {"name": "web-deployment", "namespace": "default", "annotations": annotations}
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": kind, "metadata": metadata, "spec": read(spec)}
