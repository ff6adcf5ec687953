"""
A pod, or the pod template of a controller: the fields that decide whether and where pods are scheduled.

Mirrors `ValidatePodCreate`, `ValidatePodTemplateSpec`, `validateContainers`, `validateTopologySpreadConstraints` and
`ValidateTolerations` in pkg/apis/core/validation/validation.go, with feature gates at their defaults. Probes, mounts
and security are validated in `pod_runtime`.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model.groups import COSCHEDULING_LABEL, GROUP_ANNOTATIONS
from bayplan.validating import affinity, go_text, names, resources, selectors, type_checks
from bayplan.validating.affinity import PodAffinityScope
from bayplan.validating.fields import Cause, Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import pods as wire_pods

RESTART_POLICIES = ("Always", "OnFailure", "Never")
CONTAINER_RESTART_POLICIES = ("Always", "Never", "OnFailure")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
UNSATISFIABLE_ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
INCLUSION_POLICIES = ("Honor", "Ignore")
TOLERATION_EQUAL, TOLERATION_EXISTS = "Equal", "Exists"
NUMERIC_OPERATORS = ("Lt", "Gt")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

GATED = "cannot be set until all schedulingGates have been cleared"
PORT_RANGE = "must be between 1 and 65535, inclusive"
HOST_NETWORK = "must match `containerPort` when `hostNetwork` is true"
NOT_POSITIVE = "must be greater than zero"
EMPTY_TOLERATION_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
TOLERATION_SECONDS = "effect must be 'NoExecute' when `tolerationSeconds` is set"
EXISTS_VALUE = "value must be empty when `operator` is 'Exists'"


def validate_pod(pod: Field) -> list[Cause]:
    """The causes for rejecting a pod on creation."""
    if undecodable := _validate_types(pod):
        return undecodable
    metadata, spec = pod["metadata"], pod["spec"]
    labels, node_name = metadata["labels"].labels(), spec["nodeName"]
    has_annotation = not GROUP_ANNOTATIONS.isdisjoint(metadata["annotations"].names())
    may_be_member = has_annotation or spec["schedulingGroup"].present or COSCHEDULING_LABEL in labels
    return [
        *names.validate_metadata(metadata, names.dns_subdomain),
        *_validate_spec(spec, labels),
        *([node_name.forbidden(GATED)] if node_name.text() and spec["schedulingGates"].items() else []),
        *affinity.validate_annotation(metadata, labels),
        *(_validate_membership(pod, labels) if may_be_member else []),
    ]


def validate_pod_template(template: Field) -> list[Cause]:
    """The causes for rejecting a pod template; its label keys are not merged into its selectors yet."""
    if undecodable := _validate_types(template):
        return undecodable
    metadata, spec = template["metadata"], template["spec"]
    has_annotation = not GROUP_ANNOTATIONS.isdisjoint(metadata["annotations"].names())
    has_label = COSCHEDULING_LABEL in metadata["labels"].labels()
    may_be_member = has_annotation or spec["schedulingGroup"].present or has_label
    return [
        # Upstream's two paths lack "metadata".
        *names.validate_labels(Field(template["labels"].path, metadata["labels"].value)),
        *names.validate_annotations(Field(template["annotations"].path, metadata["annotations"].value)),
        *_validate_spec(spec, None),
        *affinity.validate_annotation(metadata, None),
        *(_validate_membership(template, None) if may_be_member else []),
    ]


def _validate_membership(pod: Field, labels: dict[str, str] | None) -> list[Cause]:
    from bayplan.validating import groups  # few pods are in one

    return groups.validate_membership(pod, labels)


def _validate_types(pod: Field) -> list[Cause]:
    spec = pod["spec"]
    return [
        *type_checks.validate_types(pod["metadata"], wire_meta.ObjectMeta),
        *(type_checks.validate_types(spec, wire_pods.PodSpec) or resources.unparsable_quantities(spec)),
        *type_checks.validate_types(spec["restartPolicy"], str),
    ]


def _validate_spec(spec: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """The causes for rejecting a pod spec; `pod_labels` is None for a template."""
    preemption = spec["preemptionPolicy"]
    return [
        *_validate_containers(spec, template=pod_labels is None),
        *spec["restartPolicy"].check_enum(RESTART_POLICIES),
        *names.validate_labels(spec["nodeSelector"]),
        *affinity.validate_node_affinity(spec["affinity"]["nodeAffinity"]),
        *affinity.validate_pod_affinity(spec["affinity"], PodAffinityScope(pod_labels)),
        *_validate_scheduling_gates(spec["schedulingGates"]),
        *validate_topology_spread(spec["topologySpreadConstraints"], pod_labels),
        *spec["nodeName"].check_text(names.dns_subdomain, optional=True),
        *validate_tolerations(spec["tolerations"]),
        *spec["priorityClassName"].check_text(names.dns_subdomain, optional=True),
        *preemption.check_enum(PREEMPTION_POLICIES),
        *([preemption.required()] if preemption.present and not preemption.text() else []),
        *(resources.validate_overhead(spec["overhead"]) if spec["overhead"].present else []),
    ]


def _validate_scheduling_gates(gates: Field) -> list[Cause]:
    seen: set[str] = set()
    found: list[Cause] = []
    for gate in gates.items():
        name = Field(gate.path, gate["name"].text())
        found += name.check_text(names.label_key)
        if name.text() in seen:
            found.append(name.duplicate())
        seen.add(name.text())
    return found


def _validate_containers(spec: Field, *, template: bool) -> list[Cause]:
    regular, init = spec["containers"].items(), spec["initContainers"].items()
    host_network = spec["hostNetwork"].is_true()
    if host_network and not template:
        regular, init = [_with_host_ports(one) for one in regular], [_with_host_ports(one) for one in init]
    found = [] if regular else [spec["containers"].required()]
    for container in [*regular, *init]:
        found += _validate_container(container, template=template)
    seen: set[str] = set()
    for container in [*regular, *init]:
        name = container["name"]
        if name.text() in seen:
            found.append(name.duplicate())
        elif name.text() or container in regular:  # two init containers without a name are no duplicates
            seen.add(name.text())
    found += _duplicate_host_ports(regular)
    for container in init:  # they run one by one; upstream reports all of them at the path of the first
        found += _duplicate_host_ports([Field(f"{spec['initContainers'].path}[0]", container.value)])
    found += _validate_pod_level(spec, template=template) if spec["resources"].present else []
    for port in [port for one in regular for port in one["ports"].items()] if host_network else ():
        if port["hostPort"].number() not in (0, port["containerPort"].number()):
            found.append(port["hostPort"].invalid_number(HOST_NETWORK))
    return found


def _validate_pod_level(spec: Field, *, template: bool) -> list[Cause]:
    from bayplan.validating import pod_level  # few pods have resources of their own

    return pod_level.validate_pod_level(spec, template=template)


def _validate_container(container: Field, *, template: bool) -> list[Cause]:
    name, image = container["name"], container["image"]
    found = name.check_text(names.dns_label, optional=True)
    found += [field.required() for field in (name, image) if not field.text()]
    for port in container["ports"].items():
        inside, outside = port["containerPort"], port["hostPort"]
        if not inside.number():
            found.append(inside.required())
        found += [one.invalid_number(PORT_RANGE) for one in (inside, outside) if not 0 <= one.number() <= 65535]
        found += port["protocol"].check_enum(PROTOCOLS)
    found += resources.validate_container_resources(container["resources"], template=template)
    return found + container["restartPolicy"].check_enum(CONTAINER_RESTART_POLICIES, empty_is_default=False)


def _duplicate_host_ports(containers: list[Field]) -> list[Cause]:
    seen: set[str] = set()
    found: list[Cause] = []
    for port in [port for container in containers for port in container["ports"].items()]:
        number = port["hostPort"].number()
        key = f"{port['protocol'].text() or 'TCP'}/{port['hostIP'].text()}/{number}"
        if number and key in seen:
            found.append(port["hostPort"].duplicate(go_text.quoted(key)))
        seen.add(key)
    return found


def _with_host_ports(container: Field) -> Field:
    """The container with a host port for every port: in the host's network it defaults to the container port."""
    if not isinstance(container.value, Mapping):
        return Field(container.path, None, container.version)
    ports = [
        {**port.value, "hostPort": port["hostPort"].number() or port["containerPort"].number()}
        for port in container["ports"].items()
        if isinstance(port.value, Mapping)
    ]
    return Field(container.path, {**container.value, "ports": ports}, container.version)


def validate_topology_spread(constraints: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """The causes for rejecting topology spread constraints; `pod_labels` is None for a template."""
    found: list[Cause] = []
    identities = [(one["topologyKey"].text(), one["whenUnsatisfiable"].text()) for one in constraints.items()]
    for position, constraint in enumerate(constraints.items()):
        skew, key, action = constraint["maxSkew"], constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if skew.number() <= 0:
            found.append(skew.invalid_number(NOT_POSITIVE))
        if not key.text():  # whether it is a label key is not checked here, unlike in affinity terms
            found.append(key.required("can not be empty"))
        if action.text() not in UNSATISFIABLE_ACTIONS:
            found.append(action.unsupported(UNSATISFIABLE_ACTIONS))
        if identities[position] in identities[position + 1 :]:
            shown = go_text.quoted("{" + ", ".join(identities[position]) + "}")
            found.append(constraint["{topologyKey, whenUnsatisfiable}"].duplicate(shown))
        found += _validate_min_domains(constraint["minDomains"], action.text())
        found += constraint["nodeAffinityPolicy"].check_enum(INCLUSION_POLICIES, empty_is_default=False)
        found += constraint["nodeTaintsPolicy"].check_enum(INCLUSION_POLICIES, empty_is_default=False)
        merged = selectors.merged_selector(constraint, pod_labels)
        found += selectors.validate_label_keys(constraint, merged)
        found += selectors.validate_selector(merged)
    return found


def _validate_min_domains(min_domains: Field, action: str) -> list[Cause]:
    if not min_domains.present:
        return []
    found = [min_domains.invalid_number(NOT_POSITIVE)] if min_domains.number() <= 0 else []
    if action != DO_NOT_SCHEDULE:
        detail = f"can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
        found.append(min_domains.invalid_number(detail))
    return found


def validate_tolerations(tolerations: Field) -> list[Cause]:
    """The causes for rejecting a list of tolerations."""
    found: list[Cause] = []
    for toleration in tolerations.items():
        key, operator, effect = toleration["key"], toleration["operator"], toleration["effect"]
        if key.text():
            found += key.check_text(names.label_key)
        elif operator.text() != TOLERATION_EXISTS:
            found.append(operator.invalid(EMPTY_TOLERATION_KEY, go_text.as_json(operator.text())))
        if toleration["tolerationSeconds"].present and effect.text() != "NoExecute":
            found.append(effect.invalid(TOLERATION_SECONDS, go_text.as_json(effect.text())))
        found += _validate_toleration_operator(operator, toleration["value"].text())
        found += effect.check_enum(TAINT_EFFECTS)
    return found


def _validate_toleration_operator(operator: Field, value: str) -> list[Cause]:
    """Whether operator and value fit together; an invalid value is reported at the operator."""
    if operator.text() in ("", TOLERATION_EQUAL):
        details = names.label_value(value)
        return [operator.invalid(";".join(details), go_text.quoted(value))] if details else []
    if operator.text() == TOLERATION_EXISTS:
        return [operator.invalid(EXISTS_VALUE, go_text.quoted(value))] if value else []
    # Numeric comparison is behind a feature gate that is off in 1.36; upstream lists it only for those operators.
    supported = (TOLERATION_EQUAL, TOLERATION_EXISTS)
    return [
        operator.unsupported((*supported, *NUMERIC_OPERATORS) if operator.text() in NUMERIC_OPERATORS else supported)
    ]
