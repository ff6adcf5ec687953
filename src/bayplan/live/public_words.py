"""
What a name may be without telling anything about whose cluster it is in: words of Kubernetes, Karmada and Bayplan.

A word that is missing here is hashed, so a gap in these tables may cost an answer but never gives a name away.
"""

from __future__ import annotations

from bayplan.reading import kinds

DOMAINS = ("kubernetes.io", "k8s.io", "x-k8s.io", "karmada.io", "bayplan.io", "scs.community")
GROUPS = frozenset({"", "apps", "batch", "policy", "extensions", "autoscaling"})
# Keys without a prefix that Kubernetes itself, kubeadm or Karmada write, and the fields that selectors may ask for.
KEYS = frozenset({
    "app", "cluster", "component", "controller-revision-hash", "controller-uid", "job-name", "k8s-app", "metadata.name",
    "pod-template-generation", "pod-template-hash", "provider", "region", "tier", "zone",
})  # fmt: skip
# Under these prefixes people make up keys of their own.
OPEN_PREFIXES = ("node-role.kubernetes.io", "node-restriction.kubernetes.io")
ROLES = frozenset({"control-plane", "etcd", "infra", "ingress", "master", "node", "worker"})
RESOURCES = frozenset({"count", "cpu", "ephemeral-storage", "memory", "pods", "storage"})
# What Karmada leaves alone by the beginning of its name must begin so after renaming, too.
NAME_PREFIXES = ("kube-", "karmada-es-")
KINDS = frozenset({
    *kinds.BUILT_IN, *kinds.KARMADA, "ConfigMap", "CronJob", "Endpoints", "EndpointSlice", "HorizontalPodAutoscaler",
    "Ingress", "LimitRange", "NetworkPolicy", "ResourceQuota", "Role", "RoleBinding", "Secret", "ServiceAccount",
    "ServiceExport", "ServiceImport",
})  # fmt: skip
_NAMES = """
    default kube-system kube-public kube-node-lease karmada-system karmada-cluster kubernetes
    default-scheduler bayplan system-node-critical system-cluster-critical
    kube-apiserver kube-controller-manager kube-scheduler kube-proxy kube-dns etcd coredns control-plane
    linux windows amd64 arm64 arm ppc64le s390x riscv64 true false yes
"""
_VALUES = """
    In NotIn Exists DoesNotExist Gt Lt Equal
    NoSchedule PreferNoSchedule NoExecute DoNotSchedule ScheduleAnyway Honor Ignore
    TCP UDP SCTP Always OnFailure Never PreemptLowerPriority
    Indexed NonIndexed Complete Failed FailureTarget Suspended SuccessCriteriaMet
    Pending Running Succeeded Unknown Bound Available Released Lost
    True False Ready Initialized ContainersReady PodScheduled DisruptionTarget PodReadyToStartContainers
    Unschedulable SchedulingGated SchedulerError
    Immediate WaitForFirstConsumer Filesystem Block
    ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod
    Push Pull Duplicated Divided Aggregated Weighted AvailableReplicas
    Exclusive Inherited cluster region zone provider
    Immediately Graciously Gracefully Directly Never Lazy Abort Overwrite
    KubePriorityClass PodPriorityClass FederatedPriorityClass
    KubeadmControlPlane MachineSet ignore quorum
"""
WORDS = frozenset({"", *_NAMES.split(), *_VALUES.split()})
