"""A workload: a pod or a binding, reduced to what decides where it is placed. Does not know where anything runs."""

from __future__ import annotations

from typing import NewType

import msgspec

from bayplan.caching import memoised
from bayplan.model.bindings import Binding
from bayplan.model.groups import GroupMembership
from bayplan.model.kubernetes_versions import V1_37, KubernetesVersion
from bayplan.model.labels import Selector, Toleration
from bayplan.model.node_selectors import ANY_NODE, NodeAffinity
from bayplan.model.terms import NO_TERMS, AffinityTerms
from bayplan.model.volumes import Claim, InlineDisk

WorkloadKey = NewType("WorkloadKey", str)  # namespace/name
DAEMON_SET = "DaemonSet"
LEAVING_SUFFIX = "\0leaving"  # ends the name of a copy that is draining from a target


class Requests(msgspec.Struct, frozen=True, cache_hash=True):
    """
    The requests by resource, cpu in thousandths.

    `amounts` is what must fit. `scored` is what the incoming pod adds to the allocation scores and `counted` what it
    counts there once it runs: in both, cpu and memory without a request count as 100m and 200Mi. `resized` is what a
    placed pod takes instead, if its status says that it was or is being resized in place.
    """

    amounts: tuple[tuple[str, int], ...] = ()
    scored: tuple[tuple[str, int], ...] = ()
    counted: tuple[tuple[str, int], ...] = ()
    resized: ResizedRequests | None = None

    def on_node(self, version: KubernetesVersion) -> Requests:
        """What the pod takes of the node that it is on."""
        if self.resized is None:
            return self
        return self.resized.since_1_37 if version >= V1_37 else self.resized.until_1_36


class ResizedRequests(msgspec.Struct, frozen=True, cache_hash=True):
    """The requests of a pod that is resized in place, as the schedulers of these versions count them."""

    until_1_36: Requests
    since_1_37: Requests


class HostPort(msgspec.Struct, frozen=True):
    protocol: str
    port: int
    ip: str


class SpreadConstraint(msgspec.Struct, frozen=True, cache_hash=True):
    """A topology spread constraint, with matchLabelKeys merged into its selector."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: Selector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class SpreadRequirements(msgspec.Struct, frozen=True, cache_hash=True):
    """The pod's own constraints, and the selector of default constraints, which apply if it has none."""

    constraints: tuple[SpreadConstraint, ...] = ()
    default_selector: Selector | None = None


class Images(msgspec.Struct, frozen=True):
    """`names` each have a tag; `n_containers` counts init containers and containers."""

    names: tuple[str, ...] = ()
    n_containers: int = 0


class Claims(msgspec.Struct, frozen=True):
    """
    The claims its volumes name, in order; `ephemeral` ones are created for the pod and may not exist yet.

    `pod` are the name and the uid of the pod, which owns those. `disks` are what it names without a claim.
    """

    names: tuple[str, ...] = ()
    ephemeral: tuple[str, ...] = ()
    pod: tuple[str, str] = ("", "")
    disks: tuple[InlineDisk, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.disks)

    @property
    def named(self) -> tuple[str, ...]:
        """Those that the pod names itself."""
        return tuple(name for name in self.names if name not in self.ephemeral) if self.ephemeral else self.names

    def owns(self, claim: Claim) -> bool:
        """Whether a claim was created for the pod; a pod without a uid is told by its name."""
        name, uid = self.pod
        return claim.owner_uid == uid if uid else claim.owner == name


class Needs(msgspec.Struct, frozen=True, cache_hash=True, kw_only=True):
    """Everything that pods of one template have in common. Each field is read by one rule, so equal fields share."""

    requests: Requests = Requests()
    tolerations: tuple[Toleration, ...] = ()
    node_affinity: NodeAffinity = ANY_NODE
    host_ports: tuple[HostPort, ...] = ()
    images: Images = Images()
    spread: SpreadRequirements = SpreadRequirements()
    affinity: AffinityTerms = NO_TERMS
    claims: Claims = Claims()


@memoised(16384)
def label_keys(needs: Needs) -> frozenset[str]:
    """The label keys that the workload's terms and spread constraints select by."""
    affinity, spread = needs.affinity, needs.spread
    terms = (
        *affinity.required,
        *affinity.anti_required,
        *affinity.preferred,
        *affinity.anti_preferred,
        *affinity.group_required,
    )
    selectors = [*(t.selector for t in terms), *(c.selector for c in spread.constraints), spread.default_selector]
    return frozenset(
        required.key for selector in selectors if selector is not None for required in selector.requirements
    )


class ControllerReference(msgspec.Struct, frozen=True, gc=False):
    """The controller that manages a pod, in the namespace of the pod."""

    api_version: str
    kind: str
    name: str


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One workload. `requested_target` is a node that the pod itself names; `unplaceable` says why it must not be placed.
    `preempted`: it is terminating as a preemption victim. `controller` manages the pod; None for a bare pod. `binding`
    holds what only a binding has; None for a pod. `group` is the group of pods that it names, whose label and terms are
    among `labels` and `needs`.

    `labels` is never changed in place, only replaced.
    """

    namespace: str
    name: str
    uid: str = ""
    labels: dict[str, str]
    needs: Needs
    priority: int = 0
    created: str = ""
    started: str = ""
    terminating: bool = False
    preempted: bool = False
    requested_target: str = ""
    nominated_target: str = ""
    preempts: bool = True
    gates: tuple[str, ...] = ()
    scheduler_name: str = ""
    unplaceable: str = ""
    controller: ControllerReference | None = None
    binding: Binding | None = None
    group: GroupMembership | None = None

    @property
    def key(self) -> WorkloadKey:
        return WorkloadKey(f"{self.namespace}/{self.name}")


def belongs_to_node(workload: Workload) -> bool:
    """Whether the pod is a daemon or a mirror pod: it runs on its node and on no other."""
    return workload.controller is not None and workload.controller.kind in (DAEMON_SET, "Node")


def queue_order(workload: Workload) -> tuple[int, str, str, str]:
    """Sort key of the scheduling queue: higher priority first, then older, then by name, so that results repeat."""
    return -workload.priority, workload.created or "9999", workload.namespace, workload.name
