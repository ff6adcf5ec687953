"""
The fields that the default plugins of kube-scheduler read, each of which the drawn questions set.

By plugin; `[]` stands for the items of a list and `{}` for the values of a map. Tests compare the list with the tables
of fields, with what is drawn, and with the source of the plugins (tests/live/test_agreeing.py).
"""

_TERM = (
    "topologyKey", "labelSelector.matchLabels{}", "labelSelector.matchExpressions[].key",
    "labelSelector.matchExpressions[].operator", "labelSelector.matchExpressions[].values[]", "namespaces[]",
    "namespaceSelector.matchLabels{}", "namespaceSelector.matchExpressions[].operator", "matchLabelKeys[]",
    "mismatchLabelKeys[]",
)  # fmt: skip
_NODE_TERM = (
    "matchExpressions[].key", "matchExpressions[].operator", "matchExpressions[].values[]", "matchFields[].key",
    "matchFields[].operator", "matchFields[].values[]",
)  # fmt: skip
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _under(prefix, names):
    return tuple(f"{prefix}.{name}" for name in names)


def _affinity(sign):
    side = f"Pod.spec.affinity.{sign}"
    preferred = f"{side}.{_PREFERRED}[]"
    return (
        *_under(f"{side}.{_REQUIRED}[]", _TERM),
        f"{preferred}.weight",
        *_under(f"{preferred}.podAffinityTerm", _TERM),
    )


_CONTAINER = ("resources.requests{}", "resources.limits{}")
_STATUS = ("name", "resources.requests{}", "allocatedResources{}")
_OWNER = ("apiVersion", "kind", "name", "uid", "controller")

READ = {
    "PrioritySort": ("Pod.spec.priority",),
    "NodeUnschedulable": ("Node.spec.unschedulable",),
    "NodeName": ("Pod.spec.nodeName", "Node.metadata.name"),
    "TaintToleration": (
        *_under("Node.spec.taints[]", ("key", "value", "effect")),
        *_under("Pod.spec.tolerations[]", ("key", "operator", "value", "effect", "tolerationSeconds")),
    ),
    "NodeAffinity": (
        "Node.metadata.labels{}", "Pod.spec.nodeSelector{}",
        *_under(f"Pod.spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[]", _NODE_TERM),
        f"Pod.spec.affinity.nodeAffinity.{_PREFERRED}[].weight",
        *_under(f"Pod.spec.affinity.nodeAffinity.{_PREFERRED}[].preference", _NODE_TERM),
    ),
    "NodePorts": (
        *_under("Pod.spec.containers[].ports[]", ("hostPort", "hostIP", "protocol", "containerPort")),
        *_under("Pod.spec.initContainers[].ports[]", ("hostPort", "hostIP", "protocol")),
        "Pod.spec.initContainers[].restartPolicy", "Pod.spec.hostNetwork",
    ),
    "NodeResourcesFit": (
        *_under("Pod.spec.containers[]", _CONTAINER), *_under("Pod.spec.initContainers[]", _CONTAINER),
        *_under("Pod.spec", ("resources.requests{}", "resources.limits{}", "overhead{}")),
        *_under("Pod.status.containerStatuses[]", _STATUS), *_under("Pod.status.initContainerStatuses[]", _STATUS),
        *_under("Pod.status", ("resources.requests{}", "allocatedResources{}", "phase")),
        *_under("Pod.status.conditions[]", ("type", "reason", "status")),
        *_under("Node.status", ("allocatable{}", "capacity{}")),
    ),
    "VolumeRestrictions": (
        *_under("Pod.spec.volumes[].gcePersistentDisk", ("pdName", "readOnly")),
        *_under("Pod.spec.volumes[].awsElasticBlockStore", ("volumeID", "readOnly")),
        *_under("Pod.spec.volumes[].iscsi", ("iqn", "readOnly")),
        *_under("Pod.spec.volumes[].rbd", ("monitors[]", "pool", "image", "readOnly")),
        "Pod.spec.volumes[].persistentVolumeClaim.claimName", "PersistentVolumeClaim.spec.accessModes[]",
    ),
    "NodeVolumeLimits": (
        "Pod.spec.volumes[].azureDisk.diskURI", "Pod.spec.volumes[].cinder.volumeID",
        "PersistentVolume.spec.gcePersistentDisk.pdName", "PersistentVolume.spec.awsElasticBlockStore.volumeID",
        "PersistentVolume.spec.azureDisk.diskURI", "PersistentVolume.spec.cinder.volumeID",
        "PersistentVolume.spec.csi.driver", "PersistentVolume.spec.csi.volumeHandle",
        "CSINode.metadata.annotations{}", "CSINode.spec.drivers[].name", "CSINode.spec.drivers[].allocatable.count",
        *_under("VolumeAttachment.spec", ("attacher", "nodeName", "source.persistentVolumeName")),
        "CSIDriver.spec.preventPodSchedulingIfMissing",
    ),
    "VolumeBinding": (
        "Pod.spec.volumes[].ephemeral.volumeClaimTemplate.spec.storageClassName",
        *_under("PersistentVolumeClaim.metadata",
                ("annotations{}", "deletionTimestamp", *_under("ownerReferences[]", _OWNER))),
        *_under("PersistentVolumeClaim.spec",
                ("volumeName", "volumeMode", "storageClassName", "resources.requests{}", "selector.matchLabels{}",
                 "volumeAttributesClassName")),
        "PersistentVolumeClaim.status.phase",
        *_under("PersistentVolume.spec",
                ("capacity{}", "accessModes[]", "volumeMode", "storageClassName", "volumeAttributesClassName",
                 "claimRef.namespace", "claimRef.name", "claimRef.uid", "local.path",
                 "nodeAffinity.required.nodeSelectorTerms[].matchExpressions[].key",
                 "nodeAffinity.required.nodeSelectorTerms[].matchExpressions[].operator",
                 "nodeAffinity.required.nodeSelectorTerms[].matchExpressions[].values[]")),
        "PersistentVolume.metadata.deletionTimestamp", "PersistentVolume.status.phase",
        *_under("StorageClass",
                ("provisioner", "volumeBindingMode", "allowedTopologies[].matchLabelExpressions[].key",
                 "allowedTopologies[].matchLabelExpressions[].values[]")),
        "CSIDriver.spec.storageCapacity",
        *_under("CSIStorageCapacity", ("storageClassName", "nodeTopology.matchLabels{}", "capacity", "maximumVolumeSize")),
    ),
    "VolumeZone": ("PersistentVolume.metadata.labels{}",),
    "PodTopologySpread": (
        *_under("Pod.spec.topologySpreadConstraints[]",
                ("maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy",
                 "nodeTaintsPolicy", "matchLabelKeys[]", "labelSelector.matchLabels{}",
                 "labelSelector.matchExpressions[].operator")),
        *_under("Pod.metadata.ownerReferences[]", _OWNER),
        "Service.spec.selector{}", "ReplicationController.spec.selector{}",
        "ReplicaSet.spec.selector.matchLabels{}", "ReplicaSet.spec.selector.matchExpressions[].operator",
        "StatefulSet.spec.selector.matchLabels{}",
    ),
    "InterPodAffinity": (
        *_affinity("podAffinity"), *_affinity("podAntiAffinity"),
        *_under("Pod.metadata", ("namespace", "labels{}", "deletionTimestamp")), "Namespace.metadata.labels{}",
    ),
    "ImageLocality": (
        "Node.status.images[].names[]", "Node.status.images[].sizeBytes", "Pod.spec.containers[].image",
        "Pod.spec.initContainers[].image", "Pod.spec.volumes[].image.reference",
    ),
    "DefaultPreemption": (
        "Pod.spec.preemptionPolicy", "Pod.status.nominatedNodeName", "Pod.status.startTime",
        "PodDisruptionBudget.spec.selector.matchLabels{}", "PodDisruptionBudget.status.disruptionsAllowed",
        "PodDisruptionBudget.status.disruptedPods{}",
    ),
}  # fmt: skip

# The arguments of plugins, and what else a configuration says of them
CONFIGURED = {
    "NodeResourcesFit": (
        "ignoredResources[]", "ignoredResourceGroups[]", "scoringStrategy.type", "scoringStrategy.resources[].name",
        "scoringStrategy.resources[].weight", "scoringStrategy.requestedToCapacityRatio.shape[].utilization",
        "scoringStrategy.requestedToCapacityRatio.shape[].score",
    ),
    "NodeResourcesBalancedAllocation": ("resources[].name",),
    "InterPodAffinity": ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"),
    "NodeAffinity": (
        f"addedAffinity.{_REQUIRED}.nodeSelectorTerms[].matchExpressions[].key",
        f"addedAffinity.{_PREFERRED}[].weight",
    ),
    "PodTopologySpread": (
        "defaultingType", "defaultConstraints[].maxSkew", "defaultConstraints[].topologyKey",
        "defaultConstraints[].whenUnsatisfiable",
    ),
    "VolumeBinding": ("shape[].utilization", "shape[].score"),
}  # fmt: skip

# Packages of plugins that decide nothing by default, or that Bayplan does not have
OTHER_PLUGINS = ("deferredpodscheduling", "dynamicresources", "gangscheduling", "nodedeclaredfeatures",
                 "podgrouppodscount", "testing", "topologyaware")  # fmt: skip
_DEVICES = "DynamicResources is not supported"

# Fields that plugins read and questions do not set, with the reason
LEFT_OUT = {
    "Pod.spec.affinity": "its parts are listed",
    **dict.fromkeys(
        (
            "DeviceClass.spec.extendedResourceName",
            "DeviceClass.spec.selectors",
            "ResourceClaim.spec.devices",
            "ResourceSlice.spec.pool",
            "ResourceSlice.spec.driver",
            "ResourceSlice.spec.allNodes",
            "ResourceSlice.spec.perDeviceNodeSelection",
        ),
        _DEVICES,
    ),
    "PodGroup.spec.schedulingConstraints": "gang scheduling is off by default",
    "PodGroup.spec.podPreemptionPolicy": "gang scheduling is off by default",
    "PersistentVolume.spec.persistentVolumeSource": "its kinds are listed",
    "Pod.spec.resourceClaims": _DEVICES,
    "Pod.spec.schedulingGates": "a gated pod never reaches a scheduling cycle",
    "Pod.spec.schedulingGroup": "gang scheduling is off by default",
    "Pod.spec.os": "no default plugin decides by it",
}


def paths(value, prefix):
    """Every path that is set in an object, in the notation of READ."""
    if isinstance(value, dict):
        if prefix.endswith(MAPS):
            yield prefix + "{}"
            return
        for key, inner in value.items():
            yield from paths(inner, f"{prefix}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{prefix}[]")
    else:
        yield prefix


# Maps with keys of their own
MAPS = (".requests", ".limits", ".labels", ".annotations", ".matchLabels", ".overhead", "Node.status.allocatable", ".status.capacity", "PersistentVolume.spec.capacity",
        ".nodeSelector", ".allocatedResources", ".disruptedPods", "Service.spec.selector",
        "ReplicationController.spec.selector")  # fmt: skip
