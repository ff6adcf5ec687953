"""
The placement of a binding with the fields that Karmada lacks: typed, or from `bayplan.io/placement`.

A field of `spec.placement` comes before the binding's annotation, and that before the template's. The annotation is
YAML or JSON of `workloadAffinity`, `workloadAntiAffinity`, `affinityStrategy`, `preferredClusterAffinities` and
`supplements`: a list of tiers for `clusterAffinity` or for the only term of `clusterAffinities`, or lists by the name
of the term. Anything else in it is rejected: the workload is unplaceable, with that reason.
"""

import yaml

from reference.fleet.failures import SchedulerError
from reference.objects import annotations_of

ANNOTATION = "bayplan.io/placement"
LISTS = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


def read(fleet, binding):
    """The placement with every field in its place; raises if an annotation is invalid."""
    placement = dict(binding.placement)
    template = fleet.template(binding)
    sources = [binding.annotations, annotations_of(template) if template is not None else {}]
    added = {}
    for written in reversed([parsed(annotations) for annotations in sources]):
        added.update(written)
    for sign in ("workloadAffinity", "workloadAntiAffinity"):
        typed = placement.get(sign) or {}
        if not any(name in typed for name in LISTS):  # Karmada's own `workloadAffinity` may be there
            placement[sign] = {**typed, **(added.get(sign) or {})}
    for name in ("affinityStrategy", "preferredClusterAffinities"):
        if placement.get(name) is None:
            placement[name] = added.get(name)
    if added.get("supplements") is not None:
        place_supplements(placement, added["supplements"])
    return placement


def parsed(annotations):
    text = annotations.get(ANNOTATION)
    if not text:
        return {}
    try:
        written = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise unreadable("", f"expected YAML or JSON, got {text!r}") from error
    if not isinstance(written, dict):
        raise unreadable("", "expected a mapping of placement fields")
    shapes = {
        "workloadAffinity": dict,
        "workloadAntiAffinity": dict,
        "affinityStrategy": dict,
        "preferredClusterAffinities": list,
        "supplements": (list, dict),
    }
    for name, value in written.items():
        if name not in shapes:
            raise unreadable(name, "no such field")
        if not isinstance(value, shapes[name]):
            raise unreadable(name, "has the wrong shape")
    return written


def unreadable(name, message):
    path = f"metadata.annotations[{ANNOTATION}]" + (f".{name}" if name else "")
    return SchedulerError(f"{path}: {message}")


def place_supplements(placement, supplements):
    """Typed supplements stay where they are."""
    terms = placement.get("clusterAffinities")
    if isinstance(supplements, list):
        if placement.get("clusterAffinity") is not None:
            placement["clusterAffinity"] = {"supplements": supplements, **placement["clusterAffinity"]}
            return
        if not terms or len(terms) != 1:
            raise unreadable("supplements", "a list needs clusterAffinity, or a single term of clusterAffinities")
        supplements = {terms[0].get("affinityName") or "": supplements}
    names = [term.get("affinityName") or "" for term in terms or []]
    for name in supplements:
        if name not in names:
            raise unreadable(f"supplements.{name}", "no term of clusterAffinities has that name")
    placement["clusterAffinities"] = [
        {"supplements": supplements[name], **term} if name in supplements else term
        for name, term in zip(names, terms, strict=True)
    ]
