"""The pages of the reasons for rejecting a cluster; those for nodes are in `reason_pages`."""

from __future__ import annotations

from bayplan.cli.reason_pages import ReasonPage

FLEET_PAGES: tuple[ReasonPage, ...] = (
    ReasonPage(
        "cluster-leaving",
        "cluster-leaving",
        "ClusterLeaving",
        "cluster(s) is being deleted",
        "The Cluster object is deleted; it is removed when nothing is left on the cluster. Karmada skips such a "
        "cluster without a reason, so Karmada's own message does not count it.",
        "If the deletion is intended, nothing: divided replicas are moved to other clusters. Otherwise join the "
        "cluster again.",
    ),
    ReasonPage(
        "cluster-affinity",
        "cluster-affinity",
        "ClusterAffinity",
        "cluster(s) did not match the placement cluster affinity constraint",
        "The cluster is in no tier of the placement's clusterAffinity, or of the group of clusterAffinities that is "
        "tried. All conditions of one affinity must hold: labelSelector, fieldSelector, clusterNames, and not being in "
        "exclude. Overflow tiers apply to workloads only, not to a ConfigMap or a Service.",
        "Compare the affinity with the cluster's labels, provider, region and zones. The next group is tried only if "
        "the whole group fails, and a later attempt starts with the group of the last success.",
    ),
    ReasonPage(
        "api-missing",
        "api-missing",
        "APIEnablement",
        "cluster(s) did not have the API resource",
        "The cluster's status.apiEnablements does not list the apiVersion and kind of the template, so the member "
        "cluster cannot create it.",
        "Install the CustomResourceDefinition in the member cluster, or propagate it first. For input from files, "
        "include the status of the clusters: kubectl get clusters -o yaml.",
    ),
    ReasonPage(
        "cluster-taint",
        "cluster-taint",
        "TaintToleration",
        "cluster(s) had untolerated taint {<taint>}",
        "The cluster has a taint with the effect NoSchedule or NoExecute that no clusterToleration of the placement "
        "matches. Karmada taints clusters that are not ready or not reachable.",
        "For cluster.karmada.io/not-ready or unreachable, check the cluster first. If the workload may run there "
        "anyway, add a toleration to placement.clusterTolerations.",
    ),
    ReasonPage(
        "provider-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have provider property",
        "A spread constraint uses the provider, and the cluster's spec.provider is empty.",
        "Set spec.provider on the cluster, or remove the constraint.",
    ),
    ReasonPage(
        "region-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have region property",
        "A spread constraint uses the region, and the cluster's spec.region is empty.",
        "Set spec.region on the cluster, or remove the constraint.",
    ),
    ReasonPage(
        "zone-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have zones property",
        "A spread constraint uses the zone, and the cluster's spec.zones is empty.",
        "Set spec.zones on the cluster, or remove the constraint.",
    ),
    ReasonPage(
        "label-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have label <key>",
        "A spread constraint uses this label, and the cluster does not have it. Karmada does not spread by label; only "
        "--semantics design does.",
        "Label the cluster, or remove the constraint.",
    ),
    ReasonPage(
        "cluster-evicting",
        "cluster-evicting",
        "ClusterEviction",
        "cluster(s) is in the process of eviction",
        "The binding has a task in spec.gracefulEvictionTasks for this cluster: the workload is being evicted.",
        "Wait until the new replicas are healthy or the grace period is over; Karmada then removes the task.",
    ),
    ReasonPage(
        "workload-affinity",
        "workload-affinity",
        "WorkloadAffinity",
        "ResourceBinding with the same affinity group does not target this cluster",
        "Another workload of the same affinity group (workloadAffinity.affinity.groupByLabelKey) is placed, and not on "
        "this cluster. A cluster is feasible only if every placed member of the group is on it. For the first member, "
        "every cluster is feasible.",
        "`bayplan explain` names the members on other clusters. If they are on different clusters, no cluster is "
        "feasible for another member: move them to one cluster first, or give this workload another label value.",
    ),
    ReasonPage(
        "workload-anti-affinity",
        "workload-anti-affinity",
        "WorkloadAntiAffinity",
        "cluster already has workload with the same anti-affinity group",
        "Another workload of the same anti-affinity group (workloadAffinity.antiAffinity.groupByLabelKey) is on this "
        "cluster.",
        "`bayplan explain` names the workload. A policy without a cluster spread constraint uses every cluster and "
        "leaves none for other members of the group: set maxGroups.",
    ),
    ReasonPage(
        "workload-terms",
        "workload-terms",
        "WorkloadAffinity",
        "cluster(s) did not match workload affinity rules",
        "A required term of the placement's workloadAffinity matches no peer in the cluster's topology domain: the "
        "cluster itself, its zone, region or provider, or all clusters with the same label. The exception is the first "
        "workload of a set that matches its own terms.",
        "Compare the term's selector and namespaces with the labels of the templates that it should match, and place "
        "those first. If the affinity is not essential, make the term a preferred one.",
    ),
    ReasonPage(
        "workload-anti-terms",
        "workload-anti-terms",
        "WorkloadAntiAffinity",
        "cluster(s) did not match workload anti-affinity rules",
        "A required term of the placement's workloadAntiAffinity matches a peer in the cluster's topology domain.",
        "`bayplan explain` names the peers. Limit the number of clusters of each of them (maxGroups), use a smaller "
        "topology domain, or make the term a preferred one.",
    ),
    ReasonPage(
        "existing-workload-anti-affinity",
        "workload-anti-terms",
        "WorkloadAntiAffinity",
        "cluster(s) did not satisfy existing workloads anti-affinity rules",
        "A workload in the cluster's topology domain has a required anti-affinity term that matches this workload. "
        "Anti-affinity is symmetric: the term of the existing workload applies although this workload has none.",
        "`bayplan explain` names the owners of the term. Change the labels of this template so that the selector no "
        "longer matches it, or narrow the selector.",
    ),
)
