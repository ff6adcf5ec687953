"""
What an API server of Kubernetes 1.36 rejects in replicas, selectors, resources, policies and schedules, in its wording.

`tests/live` validates the same objects with a real API server.
"""

import yaml

MISMATCH = "`selector` does not match template `labels`"
LIMIT = "Limit must be set for non overcommitable resources"
QUALIFIED = "must be a standard resource type or fully qualified"
STANDARD = "must be a standard resource for containers"
NEGATIVE = "must be greater than or equal to 0"
JOBS = 'Required value: valid values: "OnFailure", "Never"'

CONTAINERS = [{"name": "c", "image": "i"}]
WEB = "selector: {matchLabels: {app: web}}"
OTHER = "selector: {matchLabels: {app: other}}"


def written(api_version, kind, spec):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def read(fields):
    """The fields on one line of YAML."""
    return yaml.safe_load("{" + fields + "}")


def pod(fields):
    return written("v1", "Pod", {"containers": CONTAINERS, **read(fields)})


def template(fields="", labels=("app", "web")):
    metadata = {"labels": dict([labels])} if labels else {}
    return {"metadata": metadata, "spec": {"containers": CONTAINERS, **read(fields)}}


def apps(kind, fields, pods=None):
    return written("apps/v1", kind, {"template": pods or template(), **read(fields)})


def rc(fields, pods=None):
    return written("v1", "ReplicationController", {"template": pods or template(), **read(fields)})


def job(fields, pods=None):
    return written("batch/v1", "Job", {"template": pods or template("restartPolicy: Never"), **read(fields)})


def cron_job(fields, *, of_jobs="", pods=None):
    jobs = {"template": pods or template("restartPolicy: Never"), **read(of_jobs)}
    return written("batch/v1", "CronJob", {"jobTemplate": {"spec": jobs}, **read(fields)})


def scheduled(schedule):
    return cron_job("schedule: " + repr(schedule))


def budget(fields):
    return written("policy/v1", "PodDisruptionBudget", read(fields))


def container(resources):
    return pod("containers: [{name: c, image: i, resources: {" + resources + "}}]")


def in_template(resources):
    pods = template("containers: [{name: c, image: i, resources: {" + resources + "}}]")
    return apps("Deployment", WEB, pods)


C = "spec.containers[0].resources"
T = "spec.template.spec.containers[0].resources"
SETS = ("Deployment", "ReplicaSet", "StatefulSet")

REJECTED = [
    # resources
    (container("requests: {cpu: -1}"), [f'{C}.requests[cpu]: Invalid value: "-1": {NEGATIVE}']),
    (container("limits: {cpu: -100m}"), [f'{C}.limits[cpu]: Invalid value: "-100m": {NEGATIVE}', f'{C}.requests[cpu]: Invalid value: "-100m": {NEGATIVE}']),  # a pod's limit is its request
    (in_template("limits: {cpu: -100m}"), [f'{T}.limits[cpu]: Invalid value: "-100m": {NEGATIVE}']),  # a template's is not
    (container("requests: {cpu: 1000m}, limits: {cpu: '0.5'}"), [f'{C}.requests: Invalid value: "1": must be less than or equal to cpu limit of 500m']),
    (container("requests: {memory: 2048Mi}, limits: {memory: 1.5Gi}"), [f'{C}.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1536Mi']),
    (container("requests: {memory: '1000'}, limits: {memory: '999.5'}"), [f'{C}.requests: Invalid value: "1k": must be less than or equal to memory limit of 999500m']),
    (container("requests: {memory: 3e3}, limits: {memory: 1e3}"), [f'{C}.requests: Invalid value: "3e3": must be less than or equal to memory limit of 1e3']),
    (container("requests: {example.com/gpu: 2}"), [f"{C}.limits: Required value: {LIMIT}"]),
    (container("requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}"), [f'{C}.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2']),
    (in_template("limits: {example.com/gpu: 1500m}"), [f'{T}.limits[example.com/gpu]: Invalid value: "1500m": must be an integer']),
    (in_template("limits: {gpu: 1}"), [f'{T}.limits[gpu]: Invalid value: "gpu": {QUALIFIED}', f'{T}.limits[gpu]: Invalid value: "gpu": {STANDARD}']),
    (in_template("limits: {pods: 1}"), [f'{T}.limits[pods]: Invalid value: "pods": {STANDARD}']),
    (in_template("limits: {requests.example.com/gpu: 1}"), [f"{T}.limits[requests.example.com/gpu]: Invalid value: \"requests.example.com/gpu\": doesn't follow extended resource name standard"]),
    (in_template("limits: {hugepages-2Mi: 4Mi}"), [f"{T}: Forbidden: HugePages require cpu or memory"]),
    (in_template("limits: {cpu: 1, hugepages-2Mi: 3Mi}"), [f'{T}.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi']),
    (pod("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"), ['spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1']),
    (pod("resources: {limits: {example.com/gpu: 1}}"), ['spec.resources.limits[example.com/gpu]: Unsupported value: "example.com/gpu": supported values: "cpu", "hugepages-", "memory"']),
    (apps("Deployment", WEB, template("resources: {requests: {memory: 1Gi}}, containers: [{name: c, image: i, resources: {requests: {memory: 1500Mi}}}]")), ['spec.template.spec.resources.requests[memory]: Invalid value: "1Gi": must be greater than or equal to aggregate container requests of 1500Mi']),
    (pod("resources: {requests: {cpu: 1}}, containers: [{name: c, image: i, resources: {requests: {cpu: 600m}}}, {name: d, image: i, resources: {limits: {cpu: 600m}}}]"), ['spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 1200m']),
    (pod("resources: {limits: {cpu: 0}}, containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]"), ['spec.resources.requests: Invalid value: "100m": must be less than or equal to cpu limit of 0']),  # by default, as much as its containers
    (pod("resources: {limits: {cpu: 1}}, containers: [{name: c, image: i, resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]"), ['spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1']),
    (pod("resources: {limits: {cpu: 1, hugepages-2Mi: 3Mi}}"), [f'spec.resources.{part}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi' for part in ("limits", "requests")]),
    (pod("resources: {limits: {cpu: 0}}, initContainers: [{name: i, image: i, resources: {requests: {cpu: '0.0005'}}}]"), ['spec.resources.requests: Invalid value: "1m": must be less than or equal to cpu limit of 0']),  # each amount is rounded when it is read
    # restart policies
    (pod("restartPolicy: Sometimes"), ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"']),
    (pod("initContainers: [{name: d, image: i, restartPolicy: Sometimes}]"), ['spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"']),
    (apps("Deployment", WEB, template("restartPolicy: Never")), ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"']),
    (job("", template()), [f"spec.template.spec.restartPolicy: {JOBS}"]),
    (cron_job("schedule: '@daily'", pods=template()), [f"spec.jobTemplate.spec.template.spec.restartPolicy: {JOBS}"]),
    # counts and selectors
    *[(apps(kind, ""), ["spec.selector: Required value", f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}']) for kind in SETS],
    *[(apps(kind, OTHER), [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}']) for kind in (*SETS, "DaemonSet")],
    *[(apps(kind, f"replicas: -1, {WEB}"), [f"spec.replicas: Invalid value: -1: {NEGATIVE}"]) for kind in SETS],
    (apps("Deployment", WEB, template(labels=())), [f"spec.template.metadata.labels: Invalid value: null: {MISMATCH}"]),
    (apps("Deployment", "selector: {}"), ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
    (apps("StatefulSet", "selector: {}"), ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"]),
    (apps("DaemonSet", "selector: {}"), ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"]),
    (apps("DaemonSet", ""), [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}']),
    (apps("Deployment", "selector: {matchExpressions: [{key: app, operator: Near}]}"), ['spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator', 'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Near"}]}: invalid label selector']),
    (rc("selector: {app: other}"), [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}']),
    (rc("", template(labels=())), ["spec.selector: Required value"]),
    (job("manualSelector: true"), ["spec.selector: Required value", f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}']),
    (job(f"manualSelector: true, {OTHER}"), [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}']),
    (job("parallelism: -1"), [f"spec.parallelism: Invalid value: -1: {NEGATIVE}"]),
    # schedules
    (scheduled("nonsense"), ['spec.schedule: Invalid value: "nonsense": expected exactly 5 fields, found 1: [nonsense]']),
    (scheduled("61 * * * *"), ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61']),
    (scheduled("* * 0 * *"), ['spec.schedule: Invalid value: "* * 0 * *": beginning of range (0) below minimum (1): 0']),
    (scheduled("* * * * mon-tus"), ['spec.schedule: Invalid value: "* * * * mon-tus": failed to parse int from tus: strconv.Atoi: parsing "tus": invalid syntax']),
    (scheduled("*/0 * * * *"), ['spec.schedule: Invalid value: "*/0 * * * *": step of range should be a positive number: */0']),
    (scheduled("5-3 * * * *"), ['spec.schedule: Invalid value: "5-3 * * * *": beginning of range (5) beyond end of range (3): 5-3']),
    (scheduled("@sometimes"), ['spec.schedule: Invalid value: "@sometimes": unrecognized descriptor: @sometimes']),
    (scheduled("@every soon"), ['spec.schedule: Invalid value: "@every soon": failed to parse duration @every soon: time: invalid duration "soon"']),
    (scheduled("TZ=UTC * * * * *"), ['spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead']),
    (cron_job(""), ["spec.schedule: Required value"]),
    (cron_job("schedule: '@daily', concurrencyPolicy: Maybe"), ['spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"']),
    (cron_job("schedule: '@daily'", of_jobs=WEB), ['spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"app":"web"}}: `selector` will be auto-generated']),
    # disruption budgets
    (budget("minAvailable: 1, maxUnavailable: 50%, selector: {matchLabels: {app: web}}"), ['spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"web"}},"MaxUnavailable":"50%","UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set']),
    (budget("minAvailable: -1"), [f"spec.minAvailable: Invalid value: -1: {NEGATIVE}"]),
    (budget("maxUnavailable: 101%"), ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%']),
    (budget("maxUnavailable: half"), ["spec.maxUnavailable: Invalid value: \"half\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"]),
    (budget("minAvailable: 1, unhealthyPodEvictionPolicy: Never"), ['spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"']),
]  # fmt: skip

ADMITTED = [
    container("requests: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi}, limits: {cpu: '0.5', memory: 1024Mi}"),
    container("limits: {cpu: 1, example.com/gpu: 2, hugepages-2Mi: 4Mi}"),
    pod("resources: {requests: {cpu: 1}, limits: {cpu: 1}}"),
    pod("initContainers: [{name: d, image: i, restartPolicy: Always}]"),
    *[apps(kind, WEB) for kind in (*SETS, "DaemonSet")],
    rc(""),
    job(""),
    job(f"manualSelector: true, {WEB}"),
    *[scheduled(text) for text in ("*/5 0-6/2 1,15 jan MON-fri", "@every 1h30m", "? * * * 0/2")],
    budget("maxUnavailable: 0%, selector: {}"),
]  # fmt: skip
