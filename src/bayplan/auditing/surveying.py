"""From the objects of a cluster to its layout: roles, domains, components. Knows nothing of checks or files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing import component_survey, inventory_matching, second_sources
from bayplan.auditing.audit_input import SERVER_ID, AuditInput, Inventory, entry_of
from bayplan.auditing.catalogue import BARE_METAL, ONE_CLOUD, ZONE_IS_HOST, Catalogue
from bayplan.auditing.layout import (
    CLOUD,
    CONTROL_PLANE,
    DECLARED,
    ETCD_ROLE,
    HOST,
    INFERRED,
    LEVELS,
    REGION,
    WORKER,
    ZONE,
    AuditNode,
    Layout,
)
from bayplan.auditing.second_sources import Statement
from bayplan.wire.observed import ObservedNode

CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
ETCD_LABEL = "node-role.kubernetes.io/etcd"
_OWNER_KIND = "cluster.x-k8s.io/owner-kind"


def layout_of(given: AuditInput, catalogue: Catalogue | None = None) -> Layout:
    """The layout of the cluster. If a node is given twice, the first one is used."""
    catalogue = catalogue or Catalogue()
    nodes = _unique(given.nodes)
    stated = second_sources.statements(given, nodes, catalogue)
    held = second_sources.holdings(given, nodes)
    hosting = _unique(given.hosting.nodes) if given.hosting is not None else []
    entries = {node.metadata.name: _of_inventory(node, given.inventory) for node in nodes}
    surveyed = [
        _node(
            node,
            catalogue,
            entries[node.metadata.name],
            stated.get(node.metadata.name, ()),
            held.get(node.metadata.name, ()),
        )
        for node in nodes
    ]
    for node in hosting:
        name = f"{component_survey.HOSTING_PREFIX}{node.metadata.name}"
        entries[name] = _of_inventory(node, given.inventory)
        surveyed.append(msgspec.structs.replace(_node(node, catalogue, entries[name]), name=name))
    surveyed, by_sources = inventory_matching.group_statements(surveyed)
    matched, groupings = inventory_matching.match(surveyed, entries, revealed=catalogue.inventory_revealed)
    own = tuple(matched[: len(nodes)])
    layout = Layout(nodes=own, notes=_contradictions(own), groupings=(*by_sources, *groupings))
    if given.hosting is not None:
        return component_survey.with_hosting(layout, matched[len(nodes) :], given.hosting.pods)
    return component_survey.with_components(layout, given, _addresses(nodes))


def _unique(nodes: Sequence[ObservedNode]) -> list[ObservedNode]:
    first = {node.metadata.name: node for node in reversed(nodes)}
    return [node for node in nodes if first[node.metadata.name] is node]


def _addresses(nodes: Iterable[ObservedNode]) -> dict[str, str]:
    return {
        address.address: node.metadata.name
        for node in nodes
        for address in node.status.addresses or ()
        if address.type == "InternalIP"
    }


def _node(
    node: ObservedNode,
    catalogue: Catalogue,
    entry: Mapping[str, str],
    stated: Iterable[Statement] = (),
    holds: Iterable[str] = (),
) -> AuditNode:
    labels, annotations = node.metadata.labels or {}, node.metadata.annotations or {}
    declared, keys = _declared(labels, catalogue)
    vacuous = declared.get(HOST, "") if is_vacuous(declared.get(HOST, ""), node) else ""
    domains: dict[str, str | None] = {level: declared.get(level) for level in LEVELS}
    evidence = dict.fromkeys(declared, DECLARED)
    if vacuous:
        domains[HOST] = None
        del evidence[HOST]
    for level, value in _inferred(node, domains, catalogue).items():
        domains[level], evidence[level] = value, INFERRED
    return AuditNode(
        name=node.metadata.name,
        roles=_roles(labels, annotations, node),
        role_labels=any(label in labels for label in CONTROL_PLANE_LABELS),
        labels=labels,
        annotations=annotations,
        domains=domains,
        evidence=evidence,
        keys=keys,
        other_sources=tuple(stated),
        vacuous=vacuous,
        provider_id=node.spec.provider_id,
        created=node.metadata.creation_timestamp or "",
        shares={
            **_versions(node),
            **{name: value for name, value in entry.items() if name not in (*LEVELS, SERVER_ID)},
        },
        holds=tuple(holds),
        ready=all(c.status == "True" for c in node.status.conditions or () if c.type == "Ready"),
        unschedulable=node.spec.unschedulable,
        cloud_assumed=evidence.get(CLOUD) == INFERRED and domains[CLOUD] not in ONE_CLOUD,
    )


def _versions(node: ObservedNode) -> dict[str, str]:
    info = node.status.node_info
    found = {"kernel": info.kernel_version, "os-image": info.os_image, "kubelet": info.kubelet_version}
    return {name: value for name, value in found.items() if value}


def _declared(labels: Mapping[str, str], catalogue: Catalogue) -> tuple[dict[str, str], dict[str, str]]:
    """Value and key by level; an empty label is ignored."""
    values: dict[str, str] = {}
    keys: dict[str, str] = {}
    for level, candidates in catalogue.keys.items():
        for key in candidates:
            if labels.get(key):
                values[level], keys[level] = labels[key], key
                break
    return values, keys


def is_vacuous(host: str, node: ObservedNode) -> bool:
    """Whether the value names the virtual machine rather than what it runs on."""
    info, provider = node.status.node_info, node.spec.provider_id
    own = (node.metadata.name, info.system_uuid, info.machine_id, provider, provider.rpartition("/")[2])
    return bool(host) and host.casefold() in {name.casefold() for name in own if name}


def _inferred(node: ObservedNode, domains: Mapping[str, str | None], catalogue: Catalogue) -> dict[str, str]:
    """The domains that follow from the provider: nodes that are machines, zones that are hosts, the cloud."""
    scheme, _, rest = node.spec.provider_id.partition("://")
    region = second_sources.region_of_provider(node)
    found: dict[str, str] = {}
    if not domains[HOST]:
        if catalogue.bare_metal or scheme in BARE_METAL:
            found[HOST] = node.metadata.name
        elif (catalogue.zone_is_host or scheme in ZONE_IS_HOST) and domains[ZONE]:
            found[HOST] = str(domains[ZONE])
    if scheme and rest and not domains[CLOUD]:
        found[CLOUD] = scheme
    if region and not domains[REGION]:
        found[REGION] = region
    return found


def _of_inventory(node: ObservedNode, inventory: Inventory) -> dict[str, str]:
    return {level: value for level, value in (entry_of(node, inventory) or {}).items() if value}


def _roles(labels: Mapping[str, str], annotations: Mapping[str, str], node: ObservedNode) -> tuple[str, ...]:
    """Roles by labels, taints and Cluster API; a role label counts whatever its value."""
    owner = annotations.get(_OWNER_KIND, "")
    tainted = any(taint.key in CONTROL_PLANE_LABELS for taint in node.spec.taints or ())
    roles = []
    if any(label in labels for label in CONTROL_PLANE_LABELS) or tainted or owner == "KubeadmControlPlane":
        roles.append(CONTROL_PLANE)
    if ETCD_LABEL in labels:
        roles.append(ETCD_ROLE)
    return tuple(roles) or (WORKER,)


def _contradictions(nodes: Iterable[AuditNode]) -> tuple[str, ...]:
    """Labels that contradict each other: a domain that is in two larger ones of a level. One line for all."""
    seen: dict[tuple[str, str], dict[str, set[str]]] = {}
    for node in nodes:
        known = [(level, domain) for level in LEVELS if (domain := node.at(level))]
        for position, smaller in enumerate(known):
            for above, parent in known[position + 1 :]:
                seen.setdefault(smaller, {}).setdefault(above, set()).add(parent)
    several = []
    for (level, domain), parents in sorted(seen.items()):
        above = next((above for above in LEVELS if len(parents.get(above, ())) > 1), "")
        if above:
            several.append(f"{level} {domain} is in {above} {' and '.join(sorted(parents[above]))}")
    if not several:
        return ()
    more = f", and {len(several) - 3} more" if len(several) > 3 else ""
    return (f"labels contradict each other: {'; '.join(several[:3])}{more}",)
