"""
The annotation `bayplan.io/placement`: the placement fields that Karmada lacks, as YAML or JSON text.

It stands on a policy, a binding or a resource template and adds to the placement; what Karmada has a field for is not
repeated here, except to say what supplements belong to. A malformed annotation is a cause with its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.validating import causes, fields, placements, shapes, tiers, workload_affinity, yaml_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import placements as wire

PLACEMENT = "bayplan.io/placement"

KARMADAS = "Karmada has a field for this: it belongs into the policy's placement"
_KARMADAS = ("clusterTolerations", "spreadConstraints", "replicaScheduling")
_FIELDS = "the placement fields that Karmada lacks, such as workloadAntiAffinity"
_LISTS = (workload_affinity.REQUIRED, workload_affinity.PREFERRED)

Written = Mapping[str, object]


def causes_of(metadata: Field, placement: Field | None = None) -> list[Cause]:
    """
    What is wrong with the seeds' fields in the annotation and in the placement that it adds to.

    `placement` is None for a resource template, whose placement is written elsewhere.
    """
    annotation, misshapen = _parsed(metadata["annotations"], None if placement is None else _mapping(placement.value))
    if misshapen and annotation is None:
        return misshapen
    return misshapen + _content([source for source in (placement, annotation) if source is not None], placement)


def written(metadata: Field) -> Field | None:
    """The annotation's content at its path; none if there is no annotation or it cannot be read."""
    return _parsed(metadata["annotations"])[0]


def read(text: str) -> dict[str, object]:
    """The annotation's content; raises ValueError, with every cause, if anything is wrong with it alone."""
    wrong = causes_of(Field("metadata", {"annotations": {PLACEMENT: text}}))
    if wrong:
        raise ValueError("; ".join(str(cause) for cause in wrong))
    content = yaml_text.parse(text)
    return content if isinstance(content, dict) else {}


def merged(placement: Written, annotated: Written) -> dict[str, object]:
    """
    The placement with what the annotation adds, neither of them changed.

    Lists of workload terms are joined. Supplements go to the term of their name; where the placement selects no
    clusters at all, the annotation's selection stands.
    """
    whole = {name: value for name, value in placement.items() if value is not None}
    settled = _settled(Field("", annotated), placement)
    if isinstance(settled, Cause):
        raise ValueError(f"metadata.annotations[{PLACEMENT}]{settled}")  # noqa: TRY004 (a value, as `read` raises)
    for name, value in _mapping(settled.value).items():
        if value is None:
            continue
        if name in (workload_affinity.AFFINITY, workload_affinity.ANTI_AFFINITY):
            whole[name] = _joined(_mapping(whole.get(name)), _mapping(value))
        elif name == tiers.SINGLE:
            whole[name] = _overlaid(_mapping(whole.get(name)), _mapping(value))
        elif name == tiers.TERMS:
            whole[name] = _terms(whole.get(name), value)
        else:
            whole.setdefault(name, value)
    return whole


def _settled(annotation: Field, placement: Written | None) -> Field | Cause:
    """
    The annotation with its own `supplements` where they belong: at clusterAffinity, or at the terms they name.

    They are a list, for clusterAffinity or for the only term, or lists by the names of terms. `placement` is None where
    it is written elsewhere.
    """
    content = dict(_mapping(annotation.value))
    supplements = content.pop(tiers.SUPPLEMENTS, None)
    if supplements is None:
        return annotation
    names = [_mapping(term).get("affinityName") for term in _list((placement or content).get(tiers.TERMS))]
    if isinstance(supplements, list) and len(names) == 1:
        supplements = {names[0]: supplements}
    if isinstance(supplements, list) and not names:
        whole = {**_mapping(content.get(tiers.SINGLE)), tiers.SUPPLEMENTS: supplements}
        return Field(annotation.path, {**content, tiers.SINGLE: whole})
    path = fields.child(annotation.path, tiers.SUPPLEMENTS)
    if not isinstance(supplements, Mapping):
        return causes.forbidden(path, "with several terms, give the supplements by the names of terms")
    unknown = [name for name in supplements if placement is not None and name not in names]
    if unknown:
        return causes.forbidden(fields.child(path, str(unknown[0])), "no term of clusterAffinities has this name")
    terms = [{"affinityName": name, tiers.SUPPLEMENTS: listed} for name, listed in supplements.items()]
    return Field(annotation.path, {**content, tiers.TERMS: [*_list(content.get(tiers.TERMS)), *terms]})


def _parsed(annotations: Field, placement: Written | None = None) -> tuple[Field | None, list[Cause]]:
    """The annotation's content, none if it cannot be read, and what is wrong with its form."""
    if PLACEMENT not in annotations.names():
        return None, []
    text = annotations.entry(PLACEMENT)
    if not isinstance(text.value, str):
        return None, [shapes.wrong_type(text, "text")]
    try:
        field = Field(text.path, yaml_text.parse(text.value))
    except ValueError as broken:
        return None, [causes.malformed(text.path, str(broken))]
    if not field.present:
        return None, [shapes.wrong_type(field, f"a mapping with {_FIELDS}")]
    settled = _settled(field, placement)
    if isinstance(settled, Cause):
        return None, [settled]
    field = settled
    misshapen = shapes.causes_of(field, wire.WirePlacement, closed=True)
    readable = not any(cause.reason == causes.TYPE_INVALID for cause in misshapen)
    return field if readable else None, misshapen


def _content(sources: list[Field], placement: Field | None) -> list[Cause]:
    whole: dict[str, object] = {}
    for source in sources:
        whole = merged(whole, _mapping(source.value))
    found = tiers.one_form(sources)
    for source in sources:
        found += [*tiers.alone(source), *workload_affinity.terms_causes(source)]
        if source is not placement:
            found += _annotated(source)
    if placement is None:
        return found
    found += tiers.together(sources, Field("", whole))
    return found + [cause for source in sources[1:] for cause in _against(source, placement)]


def _annotated(annotation: Field) -> Iterator[Cause]:
    """What only an annotation can get wrong on its own."""
    yield from (causes.forbidden(field.path, KARMADAS) for field in _karmadas(annotation) if field.present)
    yield from placements.cluster_affinity(annotation[tiers.SINGLE])
    yield from placements.affinity_terms(annotation[tiers.TERMS])
    for term in annotation[tiers.TERMS].items():
        yield from tiers.name_length(term["affinityName"])


def _karmadas(annotation: Field) -> Iterator[Field]:
    yield from (annotation[name] for name in _KARMADAS)
    yield from (annotation[workload_affinity.AFFINITY][sign] for sign in ("affinity", "antiAffinity"))
    for listed in (tiers.TERMS, tiers.PREFERRED):
        yield from (term[tiers.OVERFLOW] for term in annotation[listed].items())


def _against(annotation: Field, placement: Field) -> Iterator[Cause]:
    """Where the annotation contradicts the placement that it adds to."""
    single, terms = placement[tiers.SINGLE], placement[tiers.TERMS]
    if (annotation[tiers.SINGLE].present and terms.present) or (annotation[tiers.TERMS].present and single.present):
        yield causes.forbidden(annotation.path, placements.BOTH_AFFINITIES)
    if single.present:
        yield from _differing(annotation[tiers.SINGLE], single)
    by_name = {term["affinityName"].text(): term for term in terms.items()}
    for term in annotation[tiers.TERMS].items() if terms.present else ():
        name = term["affinityName"]
        if name.text() in by_name:
            yield from _differing(term, by_name[name.text()])
        else:
            yield causes.forbidden(name.path, f"{terms.path} has no term of this name")
    for form in (tiers.STRATEGY, tiers.PREFERRED):
        if annotation[form].present and placement[form].present:
            yield _twice(annotation[form], placement[form])


def _differing(said: Field, stands: Field) -> Iterator[Cause]:
    """What is selected in one place and otherwise in the other, and supplements that stand in both."""
    for name in placements.SELECTING:
        if said[name].present and said[name].value != stands[name].value:
            yield causes.forbidden(said[name].path, f"differs from {stands[name].path}")
    if said[tiers.SUPPLEMENTS].present and stands[tiers.SUPPLEMENTS].present:
        yield _twice(said[tiers.SUPPLEMENTS], stands[tiers.SUPPLEMENTS])


def _twice(said: Field, stands: Field) -> Cause:
    return causes.forbidden(said.path, f"{stands.path} is set already")


def _joined(first: Written, second: Written) -> dict[str, object]:
    lists = {name: [*_list(first.get(name)), *_list(second.get(name))] for name in _LISTS}
    return {**first, **{name: items for name, items in lists.items() if items}}


def _overlaid(stands: Written, said: Written) -> dict[str, object]:
    """What stands, with what else was said."""
    return {**said, **{name: value for name, value in stands.items() if value is not None}}


def _terms(stand: object, said: object) -> list[object]:
    if stand is None:
        return _list(said)
    by_name = {_mapping(term).get("affinityName"): _mapping(term) for term in _list(said)}
    return [_overlaid(_mapping(term), by_name.get(_mapping(term).get("affinityName"), {})) for term in _list(stand)]


def _mapping(value: object) -> Written:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
