"""
Claims that are made together with a pod: of ephemeral volumes and of StatefulSets.

Mirrors `ValidatePersistentVolumeClaimSpec` and `ValidatePersistentVolumeClaimTemplate` in
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.validating import causes, go_text, metadata, names, resources, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
ALONE = "ReadWriteOncePod"
NOT_ALONE = "may not use ReadWriteOncePod with other access modes"
NO_ACCESS_MODE = "at least 1 access mode is required"
VOLUME_MODES = ("Block", "Filesystem")
NOT_POSITIVE = "must be greater than zero"
NOT_A_CLAIM = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
CANNOT_BE_SET = "cannot be set"
OF_TEMPLATES = ("annotations", "labels")
GO_NAMES = {"uid": "uID"}  # where upstream's path is its own name for the field with a small letter at the front


def ephemeral(source: Field) -> list[Cause]:
    """What is wrong with a volume whose claim is made for the pod and goes with it."""
    template = source["volumeClaimTemplate"]
    if not template.present:
        return [causes.required(template.path)]
    written = template["metadata"]
    return [
        *metadata.annotated(written["annotations"]),
        *selectors.labels(written["labels"]),
        *_others(written),
        *spec(template["spec"]),
    ]


def spec(field: Field) -> list[Cause]:
    """What is wrong with what a claim asks for."""
    return [
        *_access(field["accessModes"]),
        *selectors.selector(field["selector"]),
        *_storage(field["resources"]),
        *_class_name(field["storageClassName"]),
        *causes.one_of(field["volumeMode"], VOLUME_MODES),
        *_source(field["dataSource"]),
        *_source(field["dataSourceRef"]),
        *_both_sources(field),
        *_class_name(field["volumeAttributesClassName"]),
    ]


def _others(written: Field) -> list[Cause]:
    """What else was said about the claim, although nobody would read it."""
    others = [name for name in written.names() if name not in OF_TEMPLATES and written[name].value]
    return [causes.forbidden(written[GO_NAMES.get(name, name)].path, CANNOT_BE_SET) for name in others]


def _access(modes: Field) -> list[Cause]:
    written = modes.texts()
    if not written:
        return [causes.required(modes.path, NO_ACCESS_MODE)]
    found = [
        causes.unsupported(modes.path, go_text.as_json(mode), ACCESS_MODES)
        for mode in written
        if mode not in ACCESS_MODES
    ]
    known = {mode for mode in written if mode in ACCESS_MODES}
    if ALONE in known and len(known) > 1:
        found.append(causes.forbidden(modes.path, NOT_ALONE))
    return found


def _storage(asked: Field) -> list[Cause]:
    amount = asked["requests"].at("storage", asked.entry("storage").path)
    if not isinstance(asked["requests"].value, Mapping) or "storage" not in asked["requests"].names():
        return [causes.required(amount.path)]
    unreadable = amount.present and not resources.is_quantity(amount.value)
    if unreadable or resources.exact(amount) > 0:
        return []
    return [causes.invalid(amount.path, go_text.quoted(resources.text_of(amount)), NOT_POSITIVE)]


def _class_name(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_subdomain(field.text())) if field.text() else []


def _source(source: Field) -> list[Cause]:
    """What the volume is to be filled from: another claim, unless some other group has a kind for that."""
    if not source.present:
        return []
    group, kind, namespace = source["apiGroup"], source["kind"], source["namespace"]
    found = causes.needed(source["name"], kind)
    if not group.text() and kind.text() != "PersistentVolumeClaim":
        found.append(causes.invalid(source.path, go_text.quoted(kind.text()), NOT_A_CLAIM))
    found += _class_name(group)
    if namespace.text():
        found += names.invalid(namespace.path, namespace.text(), names.dns_label(namespace.text()))
    return found


def _both_sources(field: Field) -> list[Cause]:
    """The old field and the new one, which must say the same; upstream shows an empty structure for them."""
    old, new = field["dataSource"], field["dataSourceRef"]
    if not old.present or not new.present:
        return []
    if new["namespace"].text():
        return [causes.invalid(field.path, "{}", "may not be specified when dataSourceRef.namespace is specified")]
    same = all(old[name].text() == new[name].text() for name in ("apiGroup", "kind", "name"))
    return [] if same else [causes.invalid(field.path, "{}", "must match dataSourceRef")]
