"""
Pods and controllers that are valid at first and then changed at random places: the same ones for the same seed.

The places come from the table of all fields of Kubernetes, so that every part is covered. The values have the right
type, and about half of them are valid. Only a real API server gives the expected causes.
"""

import copy
import json
import pathlib
import random

import yaml

import bayplan.reading
from validating import rejections

TABLE = json.loads((pathlib.Path(bayplan.reading.__file__).parent / "field_table.json").read_text())

# Placing is tested elsewhere. The rest is not validated, or dropped by an API server with default feature gates.
PLACING = {
    "affinity", "nodeName", "nodeSelector", "overhead", "preemptionPolicy", "priority", "priorityClassName",
    "resources", "schedulerName", "schedulingGates", "tolerations", "topologySpreadConstraints",
}  # fmt: skip
UNCHECKED = {"ephemeralContainers", "limits", "requests"}
DROPPED = {
    "clusterTrustBundle", "podCertificate", "schedulingGroup", "evictionResponders", "bindMountOptions", "defaultUser",
}  # fmt: skip
# These need another object in the cluster: a service account, a runtime class.
ELSEWHERE = {"serviceAccountName", "serviceAccount", "runtimeClassName"}
LEFT_OUT = {
    "PodSpec": PLACING | UNCHECKED | DROPPED | ELSEWHERE,
    "Container": {"name"},
    "ResourceRequirements": UNCHECKED,
}

TEXTS = ("", "a", "web", "A_b", "a.b", "-a", "a/b", "/a", "../a", "a/../b", "..a", "a b", "a=b", "ä", "x" * 64)
NUMBERS = (-1, 0, 1, 2, 30, 256, 600, 65535, 65536, 2**31 - 1)
WORDS = {
    "scheme": ("HTTP", "HTTPS", "http"),
    "port": (0, 80, 65536, "http", "HTTP", "a--b", "-a", "8080", ""),
    "imagePullPolicy": ("Always", "Never", "IfNotPresent", "Sometimes"),
    "pullPolicy": ("Always", "Sometimes"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError", "Log"),
    "mountPropagation": ("None", "HostToContainer", "Bidirectional", "Both"),
    "recursiveReadOnly": ("Disabled", "IfPossible", "Enabled", "Yes"),
    "procMount": ("Default", "Unmasked", "Masked", ""),
    "type": ("RuntimeDefault", "Localhost", "Unconfined", "Directory", "Other", ""),
    "fsGroupChangePolicy": ("Always", "OnRootMismatch", "Never"),
    "supplementalGroupsPolicy": ("Merge", "Strict", "Other"),
    "seLinuxChangePolicy": ("Recursive", "MountOption", "Other"),
    "dnsPolicy": ("None", "Default", "ClusterFirst", "ClusterFirstWithHostNet", "Other"),
    "restartPolicy": ("Always", "OnFailure", "Never", "Sometimes", "NotRequired", "RestartContainer"),
    "ip": ("10.0.0.1", "010.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "1.2.3", "a", ""),
    "nameservers": ("10.0.0.1", "1.2.3.04", "2001:db8::1", "a"),
    "searches": ("a.example", "_a.b.", ".", "a..b", "A"),
    "fieldPath": (
        "metadata.name", "metadata.labels", "metadata.labels['a']", "metadata.annotations['A/b c']", "spec.nodeName",
        "spec.host", "status.podIPs", "status.phase", "metadata.name['a']", "spec.unknown", "",
    ),
    "apiVersion": ("v1", "v2", ""),
    "resource": ("limits.cpu", "requests.memory", "limits.ephemeral-storage", "requests.hugepages-2Mi", "limits.gpu", ""),
    "divisor": ("0", "1", "1m", "1000m", "1Mi", "1k", "3"),
    "sizeLimit": ("1Gi", "-1", "0"),
    "storage": ("1Gi", "0", "-1Mi"),
    "accessModes": ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod", "Other"),
    "volumeMode": ("Block", "Filesystem", "Other"),
    "volumeName": ("data", "cache", "other", ""),
    "cachingMode": ("None", "ReadOnly", "Other"),
    "kind": ("Managed", "Shared", "PersistentVolumeClaim", "Other", ""),
    "diskURI": ("https://a", "/subscriptions/a", "a"),
    "iqn": ("iqn.2020-01.com.example:a", "iqn.a", "eui.0123456789abcdef", "naa.1", "a", ""),
    "initiatorName": ("iqn.2020-01.com.example:a", "eui.1", "b"),
    "registry": ("a:1", "a:1,b", "[::1]:2", "a:1:2", ""),
    "driver": ("csi.example.com", "CSI.Example.com", "a_b", "x" * 70, ""),
    "options": ("kubernetes.io/a", "a.k8s.io", "b"),
    "localhostProfile": ("a.json", "/a.json", "../a.json", " a", ""),
    "add": ("NET_ADMIN", "CAP_SYS_ADMIN"),
    "runAsUserName": ("ContainerUser", "a\\b", "a\\b\\c", ".\\", "a*b", "...", ".a\\b", "x" * 105, ""),
    "resourceName": ("cpu", "memory", "gpu", ""),
    "action": ("Restart", "RestartAllContainers", "Stop", ""),
    "operator": ("In", "NotIn", "Exists", ""),
    "mode": (0, 0o644, 0o777, 0o1000, -1),
    "defaultMode": (0o400, 0o777, 0o1000, -1),
    "successThreshold": (-1, 0, 1, 2),
    "expirationSeconds": (0, 599, 600, 3600, 2**32, 2**32 + 1),
    "terminationGracePeriodSeconds": (-1, 0, 1, 30, 60),
    "seconds": (-1, 0, 30, 31, 60),
    "activeDeadlineSeconds": (-1, 0, 1, 2**31 - 1, 2**31),
    "lun": (-1, 0, 255, 256),
    "partition": (-1, 0, 255, 256),
    "conditionType": ("example.com/ready", "a b", ""),
    "stopSignal": ("SIGTERM",),
    "generateName": ("a-",),
}  # fmt: skip
NAMES = {
    "VolumeMount": ("data", "cache", "raw", "config", "claimed", "missing", ""),
    "VolumeDevice": ("raw", "data", "claimed", "missing", ""),
    "Volume": ("data", "new", "Data", "a.b", ""),
    "Sysctl": ("kernel.shm_rmid_forced", "net.ipv4.ip_forward", "net/ipv4/a.b/c", "Kernel", "kernel.msgmax", ""),
    "PodOS": ("linux", "windows", "plan9", ""),
    "HTTPHeader": ("X-A", "a b", ""),
    "PodResourceClaim": ("gpu", "nic", "A", ""),
    "ResourceClaim": ("gpu", "nic", "other", ""),
    "ContainerPort": ("http", "HTTP", "a--b", "1", "x" * 16),
}

# Priorities and overhead need another object in the cluster.
PLACED = PLACING - {"overhead", "preemptionPolicy", "priority", "priorityClassName"} | {"containers", "initContainers"}
LABEL_KEYS = ("app", "version", "example.com/tier", "kubernetes.io/hostname", "x/", "a/b/c", "bad key", "")
RESOURCES = (
    "cpu",
    "memory",
    "ephemeral-storage",
    "hugepages-2Mi",
    "example.com/gpu",
    "storage",
    "Gpu",
    "bad name",
    "pods",
)
PLACING_WORDS = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "Other", ""),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", "Other", ""),
    "topologyKey": ("kubernetes.io/hostname", "topology.kubernetes.io/zone", *LABEL_KEYS),
    "key": ("metadata.name", *LABEL_KEYS),
    "matchLabels": LABEL_KEYS,
    "nodeSelector": LABEL_KEYS,
    "matchLabelKeys": ("pod-template-hash", *LABEL_KEYS),
    "mismatchLabelKeys": ("pod-template-hash", *LABEL_KEYS),
    "values": ("web", "1", "-7", "1.5", "a b", "x" * 64, ""),
    "namespaces": ("default", "team-a", "Team", ""),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", "Other", ""),
    "nodeAffinityPolicy": ("Honor", "Ignore", "Other", ""),
    "nodeTaintsPolicy": ("Honor", "Ignore", "Other", ""),
    "weight": (1, 100, 0, 101, -1),
    "maxSkew": (1, 2, 0, -1),
    "minDomains": (1, 2, 0, -1),
    "tolerationSeconds": (0, 30, -1),
    "requests": RESOURCES,
    "limits": RESOURCES,
    "nodeName": ("n1", "Node", "a_b", ""),
    "schedulerName": ("default-scheduler", "other", ""),
    "containerPort": (80, 0, 65536, -1),
    "hostPort": (80, 8080, 0, 65536),
    "hostIP": ("10.0.0.1", "010.0.0.1", "a"),
    "protocol": ("TCP", "UDP", "SCTP", "tcp", ""),
}
PLACING_NAMES = {"PodSchedulingGate": ("example.com/a", "b", "B c", "x/", "")}

SPECS = ("common", "common", "common", "names_and_rights", "windows")
KINDS = (
    "Pod", "Pod", "Pod", "Pod", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job", "CronJob",
    "ReplicationController",
)  # fmt: skip

VALID = yaml.safe_load((pathlib.Path(__file__).parent / "valid_pods.yaml").read_text())


class Changes(random.Random):
    """The dice, with the fields that are not changed and the values by field."""

    left_out = LEFT_OUT
    words = WORDS
    names = NAMES


class PlacingChanges(Changes):
    """Dice that change what placing reads, and nothing else."""

    left_out = {
        "PodSpec": TABLE["PodSpec"].keys() - PLACED,
        "Container": TABLE["Container"].keys() - {"resources", "ports"},
        "ResourceRequirements": {"claims"},
    }
    words = WORDS | PLACING_WORDS
    names = NAMES | PLACING_NAMES


def mutated(seed, count, changes=(1, 2, 3, 6)):
    """`count` objects, each with one of these numbers of changes."""
    rng = Changes(seed)
    for _ in range(count):
        spec = valid_spec(rng.choice(SPECS), rng.choice(VALID["volumes"]))
        claim = copy.deepcopy(VALID["claim"])
        for _ in range(rng.choice(changes)):
            change(rng, spec, "PodSpec")
        if rng.random() < 0.3:
            change(rng, claim["spec"], "PersistentVolumeClaimSpec")
        yield object_of_kind(rng.choice(KINDS), spec, claim)


def valid_spec(name, volume):
    """One of the valid pod specs, with one more volume."""
    spec = copy.deepcopy(VALID["specs"][name])
    spec["volumes"] = [*spec.get("volumes", ()), copy.deepcopy(volume)]
    return spec


def object_of_kind(kind, spec, claim):
    """A pod of this spec, or a controller of such pods; the claim is for StatefulSets."""
    if kind == "Pod":
        return rejections.written("v1", "Pod", spec)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    if kind == "Job":
        return rejections.job("", template)
    if kind == "CronJob":
        return rejections.cron_job("schedule: '@daily'", pods=template)
    if kind == "ReplicationController":
        return rejections.rc("", template)
    obj = rejections.apps(kind, rejections.WEB, template)
    if kind == "StatefulSet":
        obj["spec"]["volumeClaimTemplates"] = [claim]
    return obj


def change(rng, value, kind):
    """Change one place in a structure, most often deep within it."""
    known = {name: of for name, of in TABLE[kind].items() if name not in rng.left_out.get(kind, DROPPED)}
    there = [name for name in known if name in value]
    name = rng.choice(there if there and rng.random() < 0.7 else sorted(known))
    of = known[name]
    if name in value and rng.random() < 0.9 and descend(rng, value[name], of):
        return
    if name in value and rng.random() < 0.15:
        del value[name]
    else:
        value[name] = invented(rng, of, name, kind)


def descend(rng, value, of):
    """Change a place within the value; returns whether it has one."""
    if of in TABLE and value:
        change(rng, value, of)
        return True
    if not of.startswith("[") or not value:
        return False
    if of[1:-1] in TABLE and rng.random() < 0.85:
        change(rng, rng.choice(value), of[1:-1])
    elif rng.random() < 0.5:
        value.append(copy.deepcopy(rng.choice(value)))
    else:
        value.remove(rng.choice(value))
    return True


def invented(rng, of, name, kind):
    """A value of the type: text, number, structure or list, chosen for the name of the field."""
    if of.startswith("["):
        return [invented(rng, of[1:-1], name, kind) for _ in range(rng.choice((1, 1, 2, 4)))]
    if of.startswith("{"):
        return {rng.choice(rng.words.get(name, ("a", "storage"))): invented(rng, of[1:-1], "storage", kind)}
    if of in TABLE:
        return invented_structure(rng, of)
    if name == "name" and kind in rng.names:
        return rng.choice(rng.names[kind])
    if of == "bool":
        return rng.random() < 0.6
    if of == "Quantity":
        return rng.choice(rng.words.get(name, rng.words["storage"]))
    whole = of in ("int", "int32")
    fitting = [one for one in rng.words.get(name, ()) if of == "IntOrString" or isinstance(one, int) == whole]
    pool = fitting or (NUMBERS if whole or of == "number" else TEXTS)
    found = rng.choice(pool if rng.random() < 0.9 or whole or of == "IntOrString" else TEXTS)
    return min(found, 2**31 - 1) if of == "int32" else found


def invented_structure(rng, kind):
    known = {name: of for name, of in TABLE[kind].items() if name not in rng.left_out.get(kind, DROPPED)}
    chosen = [
        name for name in sorted(known) if rng.random() < max(0.25, 2 / len(known)) * (0.3 if kind == "Volume" else 1)
    ]
    if kind == "ObjectMeta":
        chosen = [name for name in chosen if name in ("annotations", "labels", "name", "generateName")]
    return {name: invented(rng, known[name], name, kind) for name in chosen}
