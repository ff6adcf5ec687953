"""The pages of the reasons for which a cluster is refused; those for nodes are in `reason_pages`."""

from __future__ import annotations

from bayplan.cli.reason_page import ReasonPage

FLEET_PAGES: tuple[ReasonPage, ...] = (
    ReasonPage(
        "cluster-leaving",
        "cluster-leaving",
        "ClusterLeaving",
        "cluster(s) is being deleted",
        "Somebody deleted the Cluster object; it goes as soon as nothing is left on it. Karmada passes such a cluster "
        "over without a reason, so its own message does not count it.",
        "Nothing, if that is meant: what is divided moves away by itself. Else join the cluster again.",
    ),
    ReasonPage(
        "cluster-affinity",
        "cluster-affinity",
        "ClusterAffinity",
        "cluster(s) did not match the placement cluster affinity constraint",
        "The placement's clusterAffinity, or the group of clusterAffinities that is tried, does not name the cluster "
        "in any of its tiers. All conditions of one affinity must hold: labels, fields, names, and not being excluded. "
        "Overflow tiers count for workloads only, not for a ConfigMap or a Service.",
        "Compare the affinity with the cluster's labels, provider, region and zones. A group is left only when all of "
        "it fails, and a later attempt starts with the group of the last success.",
    ),
    ReasonPage(
        "api-missing",
        "api-missing",
        "APIEnablement",
        "cluster(s) did not have the API resource",
        "The cluster's status.apiEnablements does not list the template's apiVersion and kind, so the member cluster "
        "could not create it.",
        "Install the CustomResourceDefinition in the member cluster, or propagate it first. In files, give the "
        "clusters with their status: kubectl get clusters -o yaml.",
    ),
    ReasonPage(
        "cluster-taint",
        "cluster-taint",
        "TaintToleration",
        "cluster(s) had untolerated taint {<taint>}",
        "The cluster has a taint with the effect NoSchedule or NoExecute that no clusterToleration of the placement "
        "matches. Karmada taints clusters that are not ready or not reachable.",
        "For cluster.karmada.io/not-ready or unreachable, look at the cluster first. If the workload may go there all "
        "the same, add a toleration to placement.clusterTolerations.",
    ),
    ReasonPage(
        "provider-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have provider property",
        "A spread constraint is by provider, and the cluster's spec.provider is empty.",
        "Set spec.provider on the cluster, or drop the constraint.",
    ),
    ReasonPage(
        "region-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have region property",
        "A spread constraint is by region, and the cluster's spec.region is empty.",
        "Set spec.region on the cluster, or drop the constraint.",
    ),
    ReasonPage(
        "zone-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have zones property",
        "A spread constraint is by zone, and the cluster's spec.zones is empty.",
        "Set spec.zones on the cluster, or drop the constraint.",
    ),
    ReasonPage(
        "label-missing",
        "spread-property",
        "SpreadConstraint",
        "cluster(s) did not have label <key>",
        "A spread constraint is by this label, and the cluster does not carry it. Karmada does not spread by label; "
        "this is the rule of --semantics design.",
        "Label the cluster, or drop the constraint.",
    ),
    ReasonPage(
        "cluster-evicting",
        "cluster-evicting",
        "ClusterEviction",
        "cluster(s) is in the process of eviction",
        "The binding has a task in spec.gracefulEvictionTasks for this cluster: the workload is just leaving it.",
        "Wait until the new replicas are healthy or the grace period is over; the task goes then.",
    ),
    ReasonPage(
        "workload-affinity",
        "workload-affinity",
        "WorkloadAffinity",
        "ResourceBinding with the same affinity group does not target this cluster",
        "Another workload of the same affinity group (workloadAffinity.affinity.groupByLabelKey) is placed, and not on "
        "this cluster. Every placed member of the group must be there; the first one is free.",
        "`bayplan explain` names the members that are elsewhere. If they stand on different clusters, none is left "
        "for a further one: bring them together first, or give this workload a label value of its own.",
    ),
    ReasonPage(
        "workload-anti-affinity",
        "workload-anti-affinity",
        "WorkloadAntiAffinity",
        "cluster already has workload with the same anti-affinity group",
        "Another workload of the same anti-affinity group (workloadAffinity.antiAffinity.groupByLabelKey) is on this "
        "cluster.",
        "`bayplan explain` names it. A policy without a cluster spread constraint takes every cluster and leaves none "
        "for the next of the group: set maxGroups.",
    ),
    ReasonPage(
        "workload-terms",
        "workload-terms",
        "WorkloadAffinity",
        "cluster(s) did not match workload affinity rules",
        "A required term of the placement's workloadAffinity finds no peer in the cluster's domain: the cluster "
        "itself, its zone, region or provider, or all clusters with the same label. Only the first of a set that "
        "matches its own terms goes without.",
        "Check the term's selector and namespaces against the labels of the templates it should find, and place those "
        "first. If company is welcome but not vital, make the term a preferred one.",
    ),
    ReasonPage(
        "workload-anti-terms",
        "workload-anti-terms",
        "WorkloadAntiAffinity",
        "cluster(s) did not match workload anti-affinity rules",
        "A required term of the placement's workloadAntiAffinity finds a peer in the cluster's domain.",
        "`bayplan explain` names the peers. Limit how many clusters each of them takes (maxGroups), choose a smaller "
        "domain, or make the term a preferred one.",
    ),
    ReasonPage(
        "existing-workload-anti-affinity",
        "workload-anti-terms",
        "WorkloadAntiAffinity",
        "cluster(s) did not satisfy existing workloads anti-affinity rules",
        "A workload in the cluster's domain refuses this one: anti-affinity holds in both directions, so its own term "
        "keeps this workload away although this one says nothing.",
        "`bayplan explain` names the owners of the term. Change this template's labels so that their selector no "
        "longer matches it, or narrow their selector.",
    ),
)
