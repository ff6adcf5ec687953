"""
The annotation `bayplan.io/placement`: the placement fields that Karmada lacks, as YAML or JSON text.

It is set on a policy, a binding or a resource template and adds to the placement. Fields that Karmada has are not
repeated in it, except to say which term supplements belong to. A malformed annotation is a cause with its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.validating import affinity, fields, placements, tiers, type_checks
from bayplan.validating.fields import Cause, Field
from bayplan.wire import placements as wire

PLACEMENT_ANNOTATION = "bayplan.io/placement"

# Several hundred clusters by name. Any user who may write a policy can have this text parsed, which blocks all else.
MAX_LENGTH = 16384
KARMADA_HAS_FIELD = "Karmada has a field for this: it belongs into the policy's placement"
_KARMADA_FIELDS = ("clusterTolerations", "spreadConstraints", "replicaScheduling")
_FIELDS = "the placement fields that Karmada lacks, such as workloadAntiAffinity"
_NAME = "affinityName"

Written = Mapping[str, object]


def validate_extensions(metadata: Field, placement: Field | None = None) -> list[Cause]:
    """
    The causes for rejecting the fields that Karmada lacks, in the annotation and in the placement that it adds to.

    `placement` is None for a resource template, whose placement is another object's.
    """
    annotation, found = _parse(metadata["annotations"], None if placement is None else _mapping(placement.value))
    if found and annotation is None:
        return found
    sources = [source for source in (placement, annotation) if source is not None]
    return found + _validate_sources(sources, placement)


def annotated_placement(metadata: Field) -> Field | None:
    """The annotation's content at its path; None if there is no annotation or it cannot be decoded."""
    return _parse(metadata["annotations"])[0]


def read_annotation(text: str) -> dict[str, object]:
    """The annotation's content; raises ValueError, with every cause, if the annotation alone is invalid."""
    found = validate_extensions(Field("metadata", {"annotations": {PLACEMENT_ANNOTATION: text}}))
    if found:
        raise ValueError("; ".join(str(cause) for cause in found))
    from bayplan.validating import yaml_text  # imports PyYAML, which most inputs do not need

    content = yaml_text.parse(text)
    return content if isinstance(content, dict) else {}


def merge(placement: Written, annotated: Written) -> dict[str, object]:
    """
    The placement with the annotation's fields added; neither of them is changed.

    Lists of workload affinity terms are joined. Supplements are added to the term of their name. Where the placement
    selects no clusters at all, the annotation's selection counts.
    """
    whole = {name: value for name, value in placement.items() if value is not None}
    resolved = _with_resolved_supplements(Field("", annotated), placement)
    if isinstance(resolved, Cause):
        raise ValueError(f"metadata.annotations[{PLACEMENT_ANNOTATION}]{resolved}")  # noqa: TRY004 (a value, as read_annotation raises)
    for name, value in _mapping(resolved.value).items():
        if value is None:
            continue
        if name in (placements.WORKLOAD_AFFINITY, placements.WORKLOAD_ANTI_AFFINITY):
            own, added = _mapping(whole.get(name)), _mapping(value)
            lists = {when: [*_list(own.get(when)), *_list(added.get(when))] for when in _TERM_LISTS}
            whole[name] = {**own, **{when: terms for when, terms in lists.items() if terms}}
        elif name == tiers.SINGLE:
            whole[name] = _overlaid(_mapping(whole.get(name)), _mapping(value))
        elif name == tiers.TERMS and whole.get(name) is not None:
            by_name = {_name(term): _mapping(term) for term in _list(value)}
            whole[name] = [_overlaid(_mapping(term), by_name.get(_name(term), {})) for term in _list(whole[name])]
        else:
            whole.setdefault(name, value)
    return whole


_TERM_LISTS = (affinity.REQUIRED_DURING_EXECUTION, affinity.REQUIRED, affinity.PREFERRED)


def _with_resolved_supplements(annotation: Field, placement: Written | None) -> Field | Cause:
    """
    The annotation with its top-level `supplements` moved to clusterAffinity, or to the terms that they name.

    They are a list, for clusterAffinity or for the only term, or a map of lists by term name. `placement` is None where
    it is another object's.
    """
    content = dict(_mapping(annotation.value))
    supplements = content.pop(tiers.SUPPLEMENTS, None)
    if supplements is None:
        return annotation
    names = [_name(term) for term in _list((placement or content).get(tiers.TERMS))]
    if isinstance(supplements, list) and len(names) == 1:
        supplements = {names[0]: supplements}
    if isinstance(supplements, list) and not names:
        single = {**_mapping(content.get(tiers.SINGLE)), tiers.SUPPLEMENTS: supplements}
        return Field(annotation.path, {**content, tiers.SINGLE: single})
    written = annotation[tiers.SUPPLEMENTS]
    if not isinstance(supplements, Mapping):
        return written.forbidden("with several terms, give the supplements by the names of terms")
    unknown = [name for name in supplements if placement is not None and name not in names]
    if unknown:
        return written[str(unknown[0])].forbidden("no term of clusterAffinities has this name")
    terms = [{_NAME: name, tiers.SUPPLEMENTS: listed} for name, listed in supplements.items()]
    return Field(annotation.path, {**content, tiers.TERMS: [*_list(content.get(tiers.TERMS)), *terms]})


def _parse(annotations: Field, placement: Written | None = None) -> tuple[Field | None, list[Cause]]:
    """The annotation's content, None if it cannot be decoded, and the causes for rejecting its types."""
    if PLACEMENT_ANNOTATION not in annotations.names():
        return None, []
    text = annotations.entry(PLACEMENT_ANNOTATION)
    if not isinstance(text.value, str):
        return None, [type_checks.wrong_type(text, "text")]
    if len(text.value) > MAX_LENGTH:
        return None, [text.malformed(f"longer than {MAX_LENGTH} characters")]
    from bayplan.validating import yaml_text

    try:
        field = Field(text.path, yaml_text.parse(text.value))
    except ValueError as error:
        return None, [text.malformed(str(error))]
    if not field.present:
        return None, [type_checks.wrong_type(field, f"a mapping with {_FIELDS}")]
    resolved = _with_resolved_supplements(field, placement)
    if isinstance(resolved, Cause):
        return None, [resolved]
    found = type_checks.validate_types(resolved, wire.WirePlacement, closed=True)
    decodable = not any(cause.reason == fields.TYPE_INVALID for cause in found)
    return resolved if decodable else None, found


def _validate_sources(sources: list[Field], placement: Field | None) -> list[Cause]:
    """The causes for rejecting the placement and the annotation, each of them alone and both together."""
    # Only an annotation has supplements beside the terms; in a placement they are an unknown field.
    whole: dict[str, object] = {} if placement is None else dict(_mapping(placement.value))
    for source in sources:
        if source is not placement:
            whole = merge(whole, _mapping(source.value))
    found = tiers.validate_one_form(sources)
    for source in sources:
        found += [*tiers.validate_tiers(source), *placements.validate_workload_terms(source)]
        if source is not placement:
            found += _validate_annotation(source)
    if placement is None:
        return found
    found += tiers.validate_tier_bases(sources, Field("", whole))
    return found + [cause for source in sources[1:] for cause in _contradictions(source, placement)]


def _validate_annotation(annotation: Field) -> Iterator[Cause]:
    """The causes that only an annotation can have, whatever the placement contains."""
    listed = [*annotation[tiers.TERMS].items(), *annotation[tiers.PREFERRED].items()]
    karmada_fields = [
        *(annotation[name] for name in _KARMADA_FIELDS),
        *(annotation[placements.WORKLOAD_AFFINITY][kind] for kind in ("affinity", "antiAffinity")),
        *(term[tiers.OVERFLOW] for term in listed),
    ]
    yield from (field.forbidden(KARMADA_HAS_FIELD) for field in karmada_fields if field.present)
    yield from placements.validate_cluster_affinity(annotation[tiers.SINGLE])
    yield from placements.validate_affinity_terms(annotation[tiers.TERMS])
    for term in annotation[tiers.TERMS].items():
        yield from tiers.validate_name_length(term[_NAME])


def _contradictions(annotation: Field, placement: Field) -> Iterator[Cause]:
    """The causes for an annotation that contradicts the placement that it adds to."""
    single, terms = placement[tiers.SINGLE], placement[tiers.TERMS]
    if (annotation[tiers.SINGLE].present and terms.present) or (annotation[tiers.TERMS].present and single.present):
        yield annotation.forbidden(placements.BOTH_AFFINITIES)
    if single.present:
        yield from _differences(annotation[tiers.SINGLE], single)
    by_name = {term[_NAME].text(): term for term in terms.items()}
    for term in annotation[tiers.TERMS].items() if terms.present else ():
        name = term[_NAME]
        if name.text() in by_name:
            yield from _differences(term, by_name[name.text()])
        else:
            yield name.forbidden(f"{terms.path} has no term of this name")
    for form in (tiers.STRATEGY, tiers.PREFERRED):
        if annotation[form].present and placement[form].present:
            yield annotation[form].forbidden(f"{placement[form].path} is set already")


def _differences(annotated: Field, existing: Field) -> Iterator[Cause]:
    """The causes for a selection that differs between the two, and for supplements that both have."""
    for name in placements.SELECTING_FIELDS:
        if annotated[name].present and annotated[name].value != existing[name].value:
            yield annotated[name].forbidden(f"differs from {existing[name].path}")
    supplements = existing[tiers.SUPPLEMENTS]
    if annotated[tiers.SUPPLEMENTS].present and supplements.present:
        yield annotated[tiers.SUPPLEMENTS].forbidden(f"{supplements.path} is set already")


def _overlaid(existing: Written, added: Written) -> dict[str, object]:
    """The existing fields, and those of the added ones that are not set."""
    return {**added, **{name: value for name, value in existing.items() if value is not None}}


def _name(term: object) -> str:
    name = _mapping(term).get(_NAME)
    return name if isinstance(name, str) else ""


def _mapping(value: object) -> Written:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
