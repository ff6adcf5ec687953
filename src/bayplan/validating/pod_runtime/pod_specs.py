"""
A pod, or the pod template of a controller, as far as it concerns how the pods run.

Mirrors `ValidatePodSpec`, `validatePodResourceClaims`, `validateResourceClaimNames`, `validatePodDNSConfig`,
`ValidateHostAliases` and `validatePodHostName` in pkg/apis/core/validation/validation.go, `IsValidIPForLegacyField` in
apimachinery's util/validation/ip.go and, for what a StatefulSet adds to its template, `ValidateStatefulSetSpec` in
pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
import re

from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field, missing_texts
from bayplan.validating.pod_runtime import containers, security, volumes

MAX_DEADLINE_SECONDS = 2**31 - 1
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
MAX_NAME_SERVERS, MAX_SEARCHES, MAX_SEARCH_BYTES, MAX_HOST_NAME_BYTES = 3, 32, 2048, 64
# Fields without rules in this package, except within containers. Most pods have few others.
FIELDS_WITHOUT_RULES = frozenset({
    "affinity", "automountServiceAccountToken", "containers", "enableServiceLinks", "initContainers", "nodeName",
    "nodeSelector", "overhead", "preemptionPolicy", "priority", "priorityClassName", "restartPolicy",
    "schedulerName", "schedulingGates", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
})  # fmt: skip

EPHEMERAL_ON_CREATE = "cannot be set on create"
EPHEMERAL_IN_TEMPLATE = "ephemeral containers not allowed in pod template"
NO_COST = "must be a 32bit integer"
BOTH_CLAIM_SOURCES = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
NO_CLAIM_SOURCE = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
CLAIMS_OF_POD = "claims may not be set for Resources at pod-level"
NO_DNS_CONFIG = "must provide `dnsConfig` when `dnsPolicy` is None"
NO_NAME_SERVER = "must provide at least one DNS nameserver when `dnsPolicy` is None"
NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
LEADING_ZEROS = "must not have leading 0s"
MAPPED_ADDRESS = "must not be an IPv4-mapped IPv6 address"
_LEADING_ZEROS = "(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])"


def validate_pod_runtime(pod: Field) -> list[Cause]:
    """The causes for rejecting how a pod runs."""
    owner = volumes.VolumeOwner(is_pod=True, name=pod["metadata"]["name"].text())
    return _validate_deletion_cost(pod["metadata"]["annotations"]) + _validate_spec(pod["spec"], owner)


def validate_template_runtime(template: Field) -> list[Cause]:
    """The causes for rejecting how the pods of a template run."""
    # Upstream's path lacks "metadata".
    annotations = Field(template["annotations"].path, template["metadata"]["annotations"].value)
    owner = volumes.VolumeOwner(is_pod=False)
    return _validate_deletion_cost(annotations) + _validate_spec(template["spec"], owner)


def validate_stateful_set_runtime(stateful_set: Field) -> list[Cause]:
    """The causes for rejecting how the pods of a StatefulSet run; they have its claims, and their own host names."""
    template, claims = stateful_set["spec"]["template"], stateful_set["spec"]["volumeClaimTemplates"]
    spec = template["spec"]
    value = {key: spec[key].value for key in spec.names() if key not in ("subdomain", "hostname")}
    if claims.items():
        # The volumes of claims come first and replace other volumes of the same name.
        claimed = dict.fromkeys(claim["metadata"]["name"].text() for claim in claims.items())
        others = [volume.value for volume in spec["volumes"].items() if volume["name"].text() not in claimed]
        value["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed] + others
    return validate_template_runtime(
        Field(template.path, {"metadata": template["metadata"].value, "spec": value}, template.version)
    )


def validate_claim_templates(stateful_set: Field) -> list[Cause]:
    """The causes for rejecting the volume claim templates of a StatefulSet."""
    claims = stateful_set["spec"]["volumeClaimTemplates"].items()
    return [cause for claim in claims for cause in volumes.validate_claim_spec(claim["spec"])]


def _validate_spec(spec: Field, owner: volumes.VolumeOwner) -> list[Cause]:
    found, valid_volumes = volumes.validate_volumes(spec["volumes"], owner)
    context = containers.ContainerContext(spec, owner.is_pod, volumes.volumes_by_name(spec["volumes"]), valid_volumes)
    found = [*found, *containers.validate_containers(context), *security.validate_host_processes(spec)]
    if FIELDS_WITHOUT_RULES.issuperset(spec.names()):
        return found
    ephemeral, account, runtime = spec["ephemeralContainers"], spec["serviceAccountName"], spec["runtimeClassName"]
    if not account.text():
        account = Field(account.path, spec["serviceAccount"].value)
    if ephemeral.items():  # they can only be added to a running pod
        found.append(ephemeral.forbidden(EPHEMERAL_ON_CREATE if owner.is_pod else EPHEMERAL_IN_TEMPLATE))
    found += _validate_resource_claims(spec)
    found += security.validate_pod_security(spec)
    found += _validate_host_names(spec)
    for gate in spec["readinessGates"].items():
        found += gate["conditionType"].check_text(names.label_key)
    found += account.check_text(names.dns_subdomain, optional=True)
    if spec["activeDeadlineSeconds"].present:
        found += spec["activeDeadlineSeconds"].check_range(1, MAX_DEADLINE_SECONDS)
    found += runtime.check_text(names.dns_subdomain) if runtime.present else []
    return found + security.validate_os(spec)


def _validate_deletion_cost(annotations: Field) -> list[Cause]:
    cost = annotations.entry(DELETION_COST)
    # Go accepts neither a plus nor leading zeros, except after a minus.
    integer = re.fullmatch("0|-0*[0-9]{1,10}|[1-9][0-9]{0,9}", cost.text())
    if not cost.present or (integer and -(2**31) <= int(cost.text()) < 2**31):
        return []
    return [cost.invalid(NO_COST)]


def _validate_resource_claims(spec: Field) -> list[Cause]:
    """The claims of a pod. Its own resources must not use them: only containers use devices."""
    found: list[Cause] = []
    seen: set[str] = set()
    for claim in spec["resourceClaims"].items():
        name = claim["name"]
        found += missing_texts(name)
        if name.text() in seen:
            found.append(name.duplicate())
        elif name.text():
            found += name.check_text(names.dns_label)
            seen.add(name.text())
        found += _validate_claim_source(claim)
    if spec["resources"]["claims"].present:
        found.append(spec["resources"]["claims"].forbidden(CLAIMS_OF_POD))
    return found + containers.validate_container_claims(spec, spec)


def _validate_claim_source(claim: Field) -> list[Cause]:
    """A claim is an existing one or is created from a template; upstream prints its internal type."""
    sources = [claim[name] for name in ("resourceClaimName", "resourceClaimTemplateName")]
    found: list[Cause] = []
    if sources[0].present == sources[1].present:
        values = [go_text.as_json(value) for value in (claim["name"].text(), *(source.value for source in sources))]
        shown = '{{"Name":{},"ResourceClaimName":{},"ResourceClaimTemplateName":{}}}'.format(*values)
        found.append(claim.invalid(BOTH_CLAIM_SOURCES if sources[0].present else NO_CLAIM_SOURCE, shown))
    for source in sources:
        found += source.check_text(names.dns_subdomain) if source.present else []
    return found


def _validate_host_names(spec: Field) -> list[Cause]:
    """The names of a pod, and how it resolves other names."""
    found = spec["dnsPolicy"].check_enum(DNS_POLICIES)
    found += _validate_dns_config(spec["dnsConfig"], policy_none=spec["dnsPolicy"].text() == "None")
    override = spec["hostnameOverride"]
    if override.present:
        exclusive = [name for name in ("setHostnameAsFQDN", "hostNetwork") if spec[name].is_true()]
        found += [override.forbidden(f"may not be specified when {name} is true") for name in exclusive]
        if go_text.n_bytes(override.text()) > MAX_HOST_NAME_BYTES:
            found.append(override.too_long(MAX_HOST_NAME_BYTES))
        found += override.check_text(names.dns_subdomain)
    found += spec["hostname"].check_text(names.dns_label, optional=True)
    found += spec["subdomain"].check_text(names.dns_label, optional=True)
    for alias in spec["hostAliases"].items():
        found += alias["ip"].check_text(_ip_address)
        for name in alias["hostnames"].items():
            found += name.check_text(names.dns_subdomain)
    return found


def _validate_dns_config(config: Field, *, policy_none: bool) -> list[Cause]:
    servers, searches = config["nameservers"], config["searches"]
    if policy_none and not config.present:
        return [config.required(NO_DNS_CONFIG)]
    if policy_none and not servers.items():
        return [servers.required(NO_NAME_SERVER)]
    found: list[Cause] = []
    if len(servers.items()) > MAX_NAME_SERVERS:
        found.append(_too_many(servers, f"must not have more than {MAX_NAME_SERVERS} nameservers"))
    found += [cause for server in servers.items() for cause in server.check_text(_ip_address)]
    if len(searches.items()) > MAX_SEARCHES:
        found.append(_too_many(searches, f"must not have more than {MAX_SEARCHES} search paths"))
    if go_text.n_bytes(" ".join(searches.texts())) > MAX_SEARCH_BYTES:
        detail = f"must not have more than {MAX_SEARCH_BYTES} characters (including spaces) in the search list"
        found.append(_too_many(searches, detail))
    for search in searches.items():
        if search.text() != ".":
            found += Field(search.path, search.text().removesuffix(".")).check_text(names.relaxed_subdomain)
    options = config["options"].items()
    return found + [option.required("must not be empty") for option in options if not option["name"].text()]


def _too_many(listed: Field, detail: str) -> Cause:
    return listed.invalid(detail, go_text.as_json(listed.texts()))


def _ip_address(text: str) -> list[str]:
    """The details on an IP address; one that is valid without its leading zeros is reported as such."""
    parsed = _parsed_address(text)
    if parsed is None:
        return [LEADING_ZEROS if _parsed_address(re.sub(_LEADING_ZEROS, "", text)) else NO_ADDRESS]
    return [MAPPED_ADDRESS] if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped else []


def _parsed_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None
