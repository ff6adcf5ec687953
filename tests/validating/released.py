"""Objects whose causes differ between releases: each with those of 1.36 and those of 1.37."""

MAX_UNAVAILABLE = "spec.updateStrategy.rollingUpdate.maxUnavailable"
NEGATIVE = "must be greater than or equal to 0"
SHARED = "ShareProcessNamespace and HostPID cannot both be enabled"


def pod(**spec):
    metadata = {"name": "p", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def controller(kind, volumes=(), **spec):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod()["spec"], "volumes": list(volumes)}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


def rolling(of_type="RollingUpdate", **update):
    return controller("StatefulSet", updateStrategy={"type": of_type, "rollingUpdate": update}, serviceName="s")


def autoscaler(least, most, metric="External"):
    amount = (
        {"type": "Value", "value": "3"} if metric == "External" else {"type": "Utilization", "averageUtilization": 9}
    )
    source = {"metric": {"name": "q"}} if metric == "External" else {"name": "cpu"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{"type": metric, metric[0].lower() + metric[1:]: {**source, "target": amount}}],
        },
    }


def invalid(field, detail):
    return ("FieldValueInvalid", field, f"Invalid value: {detail}")


DIFFERENT = [
    (pod(hostPID=True, shareProcessNamespace=True),
     {invalid("spec.securityContext.shareProcessNamespace", f"true: {SHARED}")},
     {invalid("spec.shareProcessNamespace", f"true: {SHARED}")}),
    (pod(securityContext={"seLinuxChangePolicy": "MountOption"}),
     {("FieldValueNotSupported", "spec.securityContext.seLinuxChangePolicy",
       'Unsupported value: "MountOption": supported values: "Recursive"')},
     set()),
    (pod(resources={"requests": {"memory": "1Gi"}}, initContainers=[{"name": "i", "image": "i", "resources": {"requests": {"cpu": "-1"}}}]),
     {invalid("spec.initContainers[0].resources.requests[cpu]", f'"-1": {NEGATIVE}')},
     {invalid("spec.initContainers[0].resources.requests[cpu]", f'"-1": {NEGATIVE}'), invalid("spec.resources.requests[cpu]", f'"-1": {NEGATIVE}')}),
    (pod(resources={"requests": {"cpu": "100m", "hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}, containers=[{"name": "c", "image": "i", "resources": {"limits": {"memory": "-1Mi"}}}]),
     {invalid(f"spec.containers[0].resources.{part}[memory]", f'"-1Mi": {NEGATIVE}') for part in ("limits", "requests")}
     | {invalid("spec.resources.requests[memory]", f'"-1Mi": {NEGATIVE}')},
     {invalid(f"spec.{where}resources.{part}[memory]", f'"-1Mi": {NEGATIVE}') for part in ("limits", "requests") for where in ("", "containers[0].")}),
    (rolling(maxUnavailable=0), set(), {invalid(MAX_UNAVAILABLE, "0: cannot be 0")}),
    (rolling(maxUnavailable="0%"), set(), {invalid(MAX_UNAVAILABLE, '"0%": cannot be 0')}),
    (rolling(maxUnavailable="101%"), set(), {invalid(MAX_UNAVAILABLE, '"101%": must not be greater than 100%')}),
    (autoscaler(0, 3), {invalid("spec.minReplicas", "0: must be greater than or equal to 1")}, set()),
    (autoscaler(-1, 3), {invalid("spec.minReplicas", "-1: must be greater than or equal to 1")},
     {invalid("spec.minReplicas", "-1: must be greater than or equal to 0")}),
    (autoscaler(1, 0),
     {("FieldValueRequired", "spec.maxReplicas", "Required value: must be set and greater than 0"),
      invalid("spec.maxReplicas", "0: must be greater than or equal to `minReplicas`")},
     {("FieldValueRequired", "spec.maxReplicas", "Required value"),
      invalid("spec.maxReplicas", "0: must be greater than or equal to `minReplicas`")}),
    (controller("Deployment", [{"name": "v", "image": {}}]), set(),
     {("FieldValueRequired", "spec.template.spec.volumes[0].image.reference", "Required value")}),
]  # fmt: skip
SAME = [
    rolling(maxUnavailable=1),
    rolling(maxUnavailable="50%", partition=-1),
    rolling("OnDelete", partition=1),
    autoscaler(0, 3, "Resource"),
    pod(volumes=[{"name": "v", "image": {}}]),
    pod(securityContext={"seLinuxChangePolicy": "Recursive"}),
]
