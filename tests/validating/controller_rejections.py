"""
What an API server of Kubernetes 1.36 rejects in how controllers replace, complete, schedule and scale, in its wording.

`tests/live` validates the same objects with a real API server.
"""

from validating.rejections import NEGATIVE, WEB, apps, budget, cron_job, job, rc, read, template, written

HPA_TARGET = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3"
HIGH = "9" * 5000


def deployment(fields):
    return apps("Deployment", f"{WEB}, {fields}")


def rolling(fields):
    return deployment("strategy: {rollingUpdate: {" + fields + "}}")


def stateful(fields):
    return apps("StatefulSet", f"{WEB}, {fields}")


def daemon(fields):
    return apps("DaemonSet", f"{WEB}, {fields}")


def daemon_rolling(fields):
    return daemon("updateStrategy: {rollingUpdate: {" + fields + "}}")


def indexed(fields, name="w"):
    found = job("completionMode: Indexed, " + fields)
    found["metadata"]["name"] = name
    return found


def failing(rule, more=""):
    return job("podFailurePolicy: {rules: [{" + rule + "}]}" + (f", {more}" if more else ""))


def exiting(fields):
    return failing("action: FailJob, onExitCodes: {" + fields + "}")


def succeeding(rule):
    return indexed("completions: 5, successPolicy: {rules: [{" + rule + "}]}")


def nightly(fields, of_jobs=""):
    return cron_job("schedule: '@daily', " + fields, of_jobs=of_jobs)


def hpa(fields, version="v2"):
    return written(f"autoscaling/{version}", "HorizontalPodAutoscaler", {**read(HPA_TARGET), **read(fields)})


def metric(fields):
    return hpa("metrics: [{" + fields + "}]")


def resource(target):
    return metric("type: Resource, resource: {name: cpu, target: {" + target + "}}")


def behaviour(fields):
    return hpa("behavior: {scaleUp: {" + fields + "}}")


REJECTED = [
    # Deployments
    (rolling("maxSurge: 0, maxUnavailable: 0"), ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"]),
    (rolling("maxSurge: 0%, maxUnavailable: 0%"), ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0']),
    (rolling("maxSurge: -5%"), ['spec.strategy.rollingUpdate.maxSurge: Invalid value: "-5%": a valid percent string must be a numeric string followed by an ending \'%\' (e.g. \'1%\',  or \'93%\', regex used for validation is \'[0-9]+%\')']),
    (rolling("maxSurge: -5, maxUnavailable: -1"), [f"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: {NEGATIVE}", f"spec.strategy.rollingUpdate.maxSurge: Invalid value: -5: {NEGATIVE}"]),
    (rolling("maxUnavailable: 101%"), ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%']),
    (rolling("maxUnavailable: lots, maxSurge: 0"), ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "lots": a valid percent string must be a numeric string followed by an ending \'%\' (e.g. \'1%\',  or \'93%\', regex used for validation is \'[0-9]+%\')', 'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "lots": may not be 0 when `maxSurge` is 0']),
    (rolling("maxUnavailable: '5', maxSurge: 0"), ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "5": a valid percent string must be a numeric string followed by an ending \'%\' (e.g. \'1%\',  or \'93%\', regex used for validation is \'[0-9]+%\')']),
    (deployment("strategy: {type: Foo}"), ['spec.strategy: Unsupported value: {"Type":"Foo","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"']),
    (deployment("strategy: {type: Foo, rollingUpdate: {maxSurge: 10%}}"), ['spec.strategy: Unsupported value: {"Type":"Foo","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":"10%"}}: supported values: "Recreate", "RollingUpdate"']),
    (deployment("strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}"), ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]),
    (deployment("minReadySeconds: -1"), [f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}"]),
    (deployment("minReadySeconds: 700"), ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"]),
    (deployment("minReadySeconds: 5, progressDeadlineSeconds: 5"), ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"]),
    (deployment("progressDeadlineSeconds: -1"), [f"spec.progressDeadlineSeconds: Invalid value: -1: {NEGATIVE}", "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds"]),
    (deployment("revisionHistoryLimit: -1"), [f"spec.revisionHistoryLimit: Invalid value: -1: {NEGATIVE}"]),
    (apps("ReplicaSet", f"{WEB}, minReadySeconds: -1"), [f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}"]),
    (rc("minReadySeconds: -1"), [f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}"]),
    # StatefulSets
    (stateful("updateStrategy: {rollingUpdate: {partition: -3}}"), [f"spec.updateStrategy.rollingUpdate.partition: Invalid value: -3: {NEGATIVE}"]),
    (stateful("updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}"), ['spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for updateStrategy \'RollingUpdate\'']),
    (stateful("updateStrategy: {type: OnDelete, rollingUpdate: {}}"), ['spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":0,"MaxUnavailable":null}: only allowed for updateStrategy \'RollingUpdate\'']),
    (stateful("updateStrategy: {type: Foo}"), ['spec.updateStrategy: Invalid value: {"Type":"Foo","RollingUpdate":null}: must be \'RollingUpdate\' or \'OnDelete\'']),
    (stateful("updateStrategy: {type: Foo, rollingUpdate: {partition: 1}}"), ['spec.updateStrategy: Invalid value: {"Type":"Foo","RollingUpdate":{"Partition":1,"MaxUnavailable":null}}: must be \'RollingUpdate\' or \'OnDelete\'']),
    (stateful("podManagementPolicy: Sometimes"), ['spec.podManagementPolicy: Invalid value: "Sometimes": must be \'OrderedReady\' or \'Parallel\'']),
    (stateful("ordinals: {start: -1}"), [f"spec.ordinals.start: Invalid value: -1: {NEGATIVE}"]),
    (stateful("minReadySeconds: -1"), [f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}"]),
    (stateful("persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep, whenScaled: Drop}"), ['spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"', 'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Drop": supported values: "Retain", "Delete"']),
    (stateful("serviceName: Not_A_Name"), ['spec.serviceName: Invalid value: "Not_A_Name": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-\', and must start and end with an alphanumeric character (e.g. \'my-name\',  or \'123-abc\', regex used for validation is \'[a-z0-9]([-a-z0-9]*[a-z0-9])?\')']),
    # DaemonSets
    (daemon_rolling("maxUnavailable: 0"), ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
    (daemon_rolling("maxSurge: 1"), ["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]),
    (daemon_rolling("maxSurge: 120%, maxUnavailable: 0"), ['spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "120%": must not be greater than 100%']),
    (daemon_rolling("maxUnavailable: 120%"), ['spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "120%": must not be greater than 100%']),
    (daemon_rolling("maxUnavailable: some"), ['spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "some": a valid percent string must be a numeric string followed by an ending \'%\' (e.g. \'1%\',  or \'93%\', regex used for validation is \'[0-9]+%\')', "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
    (daemon_rolling("maxUnavailable: -1"), [f"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: -1: {NEGATIVE}"]),
    (daemon("updateStrategy: {type: Foo}"), ['spec.updateStrategy: Unsupported value: {"Type":"Foo","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete"']),
    (daemon("updateStrategy: {type: Foo, rollingUpdate: {maxSurge: 1}}"), ['spec.updateStrategy: Unsupported value: {"Type":"Foo","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":1}}: supported values: "RollingUpdate", "OnDelete"']),
    (daemon("minReadySeconds: -1, revisionHistoryLimit: -2"), [f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}", f"spec.revisionHistoryLimit: Invalid value: -2: {NEGATIVE}"]),
    # Jobs
    (job("completions: -1, activeDeadlineSeconds: -1, backoffLimit: -1, ttlSecondsAfterFinished: -1"), [f"spec.completions: Invalid value: -1: {NEGATIVE}", f"spec.activeDeadlineSeconds: Invalid value: -1: {NEGATIVE}", f"spec.backoffLimit: Invalid value: -1: {NEGATIVE}", f"spec.ttlSecondsAfterFinished: Invalid value: -1: {NEGATIVE}"]),
    (job("completionMode: Mixed"), ['spec.completionMode: Unsupported value: "Mixed": supported values: "NonIndexed", "Indexed"']),
    (job("backoffLimitPerIndex: 1"), ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
    (job("maxFailedIndexes: 1"), ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified", "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode"]),
    (job("managedBy: kueue"), ['spec.managedBy: Invalid value: "kueue": must be a domain-prefixed path (such as "acme.io/foo")']),
    (job("managedBy: ''"), ["spec.managedBy: Required value"]),
    (job("managedBy: Kueue_x/job"), ['spec.managedBy: Invalid value: "Kueue_x": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \'-\' or \'.\', and must start and end with an alphanumeric character (e.g. \'example.com\', regex used for validation is \'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\')']),
    (job("managedBy: 'example.com/a b'"), ['spec.managedBy: Invalid value: "a b": Invalid path (regex used for validation is \'[A-Za-z0-9/\\-._~%!$&\'()*+,;=:]+\')']),
    (job(f"managedBy: example.com/{'a' * 60}"), ["spec.managedBy: Too long: may not be more than 63 bytes"]),
    (job("podReplacementPolicy: Always"), ['spec.podReplacementPolicy: Unsupported value: "Always": supported values: "Failed", "TerminatingOrFailed"']),
    (job("successPolicy: {rules: [{succeededCount: 1}]}"), ['spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: requires indexed completion mode']),
    (job("successPolicy: {}"), ['spec.successPolicy: Invalid value: {"Rules":null}: requires indexed completion mode']),
    (indexed("parallelism: 2"), ["spec.completions: Required value: when completion mode is Indexed"]),
    (indexed("completions: 3, parallelism: 100001"), ["spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed"]),
    (indexed("completions: 3, maxFailedIndexes: 4, backoffLimitPerIndex: 1"), ["spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions"]),
    (indexed("completions: 3, maxFailedIndexes: 2"), ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"]),
    (indexed("completions: 3, backoffLimitPerIndex: -1, maxFailedIndexes: -1"), [f"spec.backoffLimitPerIndex: Invalid value: -1: {NEGATIVE}", f"spec.maxFailedIndexes: Invalid value: -1: {NEGATIVE}"]),
    (indexed("completions: 200000, backoffLimitPerIndex: 1"), ["spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"]),
    (indexed("completions: 200000, parallelism: 20000, backoffLimitPerIndex: 1, maxFailedIndexes: 20000"), ["spec.parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index", "spec.maxFailedIndexes: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"]),
    (indexed("completions: 200000, backoffLimitPerIndex: 1, maxFailedIndexes: 200000"), ["spec.maxFailedIndexes: Invalid value: 200000: must be less than or equal to 100000", "spec.maxFailedIndexes: Invalid value: 200000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"]),
    (indexed("completions: 11", name="a" * 61), ['metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": will not able to create pod with invalid DNS label: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-10']),
    (indexed("completions: 11", name="a.b"), ['metadata.name: Invalid value: "a.b": will not able to create pod with invalid DNS label: a.b-10']),
    (indexed("", name="a" * 63), ['metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": will not able to create pod with invalid DNS label: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-0']),
    (failing(""), ['spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]', "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"]),
    (failing("action: Retry, onPodConditions: [{type: DisruptionTarget, status: 'True'}]"), ['spec.podFailurePolicy.rules[0].action: Unsupported value: "Retry": supported values: "Count", "FailIndex", "FailJob", "Ignore"']),
    (failing("action: FailIndex, onPodConditions: [{type: DisruptionTarget, status: 'True'}]"), ['spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set']),
    (failing("action: Ignore, onPodConditions: [{type: 'a b', status: Maybe}, {type: X}]"), ['spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: "a b": name part must consist of alphanumeric characters, \'-\', \'_\' or \'.\', and must start and end with an alphanumeric character (e.g. \'MyName\',  or \'my.name\',  or \'123-abc\', regex used for validation is \'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\')', 'spec.podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"']),
    (failing("action: Ignore, onPodConditions: [{type: X, status: 'True'}], onExitCodes: {operator: In, values: [1]}"), ["spec.podFailurePolicy.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"]),
    (failing("action: Count"), ["spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"]),
    (failing("action: Ignore, onPodConditions: [{type: X, status: 'True'}]", "podReplacementPolicy: TerminatingOrFailed"), ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"']),
    (job("podFailurePolicy: {rules: [" + ", ".join(["{action: Count, onExitCodes: {operator: In, values: [1]}}"] * 21) + "]}"), ["spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items"]),
    (job("podFailurePolicy: {rules: []}", template("restartPolicy: OnFailure")), ['spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified']),
    (exiting(""), ['spec.podFailurePolicy.rules[0].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]', "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: null: at least one value is required"]),
    (exiting("operator: In, values: []"), ["spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: []: at least one value is required"]),
    (exiting("operator: Near, values: [1]"), ['spec.podFailurePolicy.rules[0].onExitCodes.operator: Unsupported value: "Near": supported values: "In", "NotIn"']),
    (exiting("operator: In, values: [3, 0, 3], containerName: x"), ['spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template', "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator", "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3", "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered"]),
    (exiting("operator: In, values: [1], containerName: ''"), ['spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "": must be one of the container or initContainer names in the pod template']),
    (exiting("operator: NotIn, values: [" + ", ".join(map(str, range(256))) + "]"), ["spec.podFailurePolicy.rules[0].onExitCodes.values: Too many: 256: must have at most 255 items"]),
    (succeeding(""), ["spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"]),
    (succeeding("succeededCount: 6"), ["spec.successPolicy.rules[0].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified completions)"]),
    (succeeding("succeededCount: -1"), [f"spec.successPolicy.rules[0].succeededCount: Invalid value: -1: {NEGATIVE}"]),
    (succeeding("succeededIndexes: 0-9"), ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0-9": error parsing succeededIndexes: too large index: "9"']),
    (succeeding("succeededIndexes: 3-1"), ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "3-1": error parsing succeededIndexes: non-increasing order, previous: 3, current: 1']),
    (succeeding("succeededIndexes: '1,1'"), ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "1,1": error parsing succeededIndexes: non-increasing order, previous: 1, current: 1']),
    (succeeding("succeededIndexes: 1-2-3"), ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "1-2-3": error parsing succeededIndexes: the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by \'-\'']),
    (succeeding("succeededIndexes: abc"), ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "abc": error parsing succeededIndexes: cannot convert string to integer for index: "abc"']),
    (succeeding("succeededIndexes: '0,2-3', succeededCount: 4"), ["spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of indexes in the specified succeededIndexes field)"]),
    (indexed("completions: 5, successPolicy: {rules: []}"), ["spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified"]),
    (indexed("completions: 5, successPolicy: {rules: [" + ", ".join(["{succeededCount: 1}"] * 21) + "]}"), ["spec.successPolicy.rules: Too many: 21: must have at most 20 items"]),
    # CronJobs
    (nightly("timeZone: Mars/Phobos"), ['spec.timeZone: Invalid value: "Mars/Phobos": unknown time zone Mars/Phobos']),
    (nightly("timeZone: ''"), ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']),
    (nightly("timeZone: Local"), ['spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones']),
    (nightly("timeZone: local"), ['spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones', 'spec.timeZone: Invalid value: "local": unknown time zone local']),
    (nightly("timeZone: ../etc/passwd"), ['spec.timeZone: Invalid value: "../etc/passwd": unknown time zone ../etc/passwd']),
    (nightly("timeZone: europe/berlin"), ['spec.timeZone: Invalid value: "europe/berlin": unknown time zone europe/berlin']),
    (nightly("timeZone: '/Europe/Berlin'"), ['spec.timeZone: Invalid value: "/Europe/Berlin": unknown time zone /Europe/Berlin']),
    (nightly("startingDeadlineSeconds: -1, successfulJobsHistoryLimit: -1, failedJobsHistoryLimit: -1"), [f"spec.startingDeadlineSeconds: Invalid value: -1: {NEGATIVE}", f"spec.successfulJobsHistoryLimit: Invalid value: -1: {NEGATIVE}", f"spec.failedJobsHistoryLimit: Invalid value: -1: {NEGATIVE}"]),
    (nightly("suspend: true", of_jobs="completionMode: Indexed, parallelism: 2"), ["spec.jobTemplate.spec.completions: Required value: when completion mode is Indexed"]),
    (nightly("suspend: true", of_jobs="managedBy: x"), ['spec.jobTemplate.spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")']),
    (cron_job("schedule: '9223372036854775808 * * * *'"), ['spec.schedule: Invalid value: "9223372036854775808 * * * *": failed to parse int from 9223372036854775808: strconv.Atoi: parsing "9223372036854775808": value out of range']),
    # HorizontalPodAutoscalers
    (hpa("scaleTargetRef: {kind: Deployment, name: web}"), ['spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group']),
    (hpa("scaleTargetRef: {apiVersion: v1, kind: Deployment, name: web}"), ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group']),
    (hpa("scaleTargetRef: {apiVersion: a/b/c, kind: Deployment, name: web}"), ['spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c']),
    (hpa("scaleTargetRef: {apiVersion: apps/v1, kind: a/b, name: ..}"), ['spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain \'/\'', 'spec.scaleTargetRef.name: Invalid value: "..": may not be \'..\'']),
    (hpa("maxReplicas: -1"), ["spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1", "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`"]),
    (hpa("minReplicas: 0"), ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"]),
    (hpa("minReplicas: 5"), ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"]),
    (hpa("maxReplicas: 0"), ["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"]),
    (hpa("targetCPUUtilizationPercentage: 0", version="v1"), ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"]),
    (metric(""), ["spec.metrics[0].type: Required value: must specify a metric source type", 'spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"']),
    (metric("type: Custom"), ['spec.metrics[0].type: Unsupported value: "Custom": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"']),
    (metric("type: Resource"), ["spec.metrics[0].resource: Required value: must populate information for the given metric source"]),
    (metric("type: Resource, pods: {metric: {name: x}, target: {type: AverageValue, averageValue: 1}}"), ["spec.metrics[0].resource: Required value: must populate information for the given metric source"]),
    (metric("type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 5}}, pods: {metric: {name: x}, target: {type: AverageValue, averageValue: 1}}"), ["spec.metrics[0].pods: Forbidden: must populate the given metric source only"]),
    (metric("type: Pods, pods: {metric: {name: ''}, target: {type: Value, value: 1}}"), ["spec.metrics[0].pods.metric.name: Required value: must specify a metric name", "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"]),
    (metric("type: Object, object: {describedObject: {kind: Service, name: ''}, metric: {name: a/b}, target: {type: Value}}"), ["spec.metrics[0].object.describedObject.name: Required value", 'spec.metrics[0].object.metric.name: Invalid value: "a/b": may not contain \'/\'', "spec.metrics[0].object.target.averageValue: Required value: must set either a target value or averageValue"]),
    (metric("type: External, external: {metric: {name: q}, target: {type: Value}}"), ["spec.metrics[0].external.target.averageValue: Required value: must set either a target value for metric or a per-pod target"]),
    (metric("type: External, external: {metric: {name: q}, target: {type: Value, value: 1, averageValue: 1}}"), ["spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"]),
    (metric("type: ContainerResource, containerResource: {name: gpu, container: A, target: {type: Utilization}}"), ['spec.metrics[0].containerResource.name: Invalid value: "gpu": must be a standard resource type or fully qualified', 'spec.metrics[0].containerResource.name: Invalid value: "gpu": must be a standard resource for containers', 'spec.metrics[0].containerResource.container: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-\', and must start and end with an alphanumeric character (e.g. \'my-name\',  or \'123-abc\', regex used for validation is \'[a-z0-9]([-a-z0-9]*[a-z0-9])?\')', "spec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"]),
    (metric("type: ContainerResource, containerResource: {target: {type: Utilization, averageUtilization: 5}}"), ["spec.metrics[0].containerResource.name: Required value: must specify a resource name", "spec.metrics[0].containerResource.container: Required value: must specify a container"]),
    (resource(""), ["spec.metrics[0].resource.target.type: Required value: must specify a metric target type", 'spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue', "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"]),
    (resource("type: Near, averageUtilization: 5"), ['spec.metrics[0].resource.target.type: Invalid value: "Near": must be either Utilization, Value, or AverageValue']),
    (resource("type: Utilization, averageUtilization: 0"), ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"]),
    (resource("type: Utilization, averageUtilization: 5, averageValue: 1"), ["spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"]),
    (resource("type: AverageValue, averageValue: -500m"), ['spec.metrics[0].resource.target.averageValue: Invalid value: "-500m": must be positive']),
    (resource("type: AverageValue, averageValue: '0'"), ['spec.metrics[0].resource.target.averageValue: Invalid value: "0": must be positive']),
    (behaviour("stabilizationWindowSeconds: -1"), ["spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"]),
    (behaviour("stabilizationWindowSeconds: 3601"), ["spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"]),
    (behaviour("selectPolicy: Sometimes"), ['spec.behavior.scaleUp.selectPolicy: Unsupported value: "Sometimes": supported values: "Disabled", "Max", "Min"']),
    (behaviour("policies: []"), ["spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"]),
    (behaviour("policies: [{type: Nodes, value: 0, periodSeconds: 0}, {type: Pods, value: 1, periodSeconds: 1801}]"), ['spec.behavior.scaleUp.policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"', "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero", "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero", "spec.behavior.scaleUp.policies[1].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"]),
    (behaviour("tolerance: '-0.1'"), [f'spec.behavior.scaleUp.tolerance: Invalid value: "-100m": {NEGATIVE}']),
    # disruption budgets
]  # fmt: skip

# Rejected with messages that are too long to repeat here.
REJECTED_AT_LENGTH = [
    rolling(f"maxUnavailable: {HIGH}%"),
    succeeding(f"succeededIndexes: '{HIGH}'"),
    succeeding("succeededIndexes: '" + "0" * 70000 + "'"),
    cron_job(f"schedule: '{HIGH} * * * *'"),
    budget(f"maxUnavailable: {HIGH}%"),
]  # fmt: skip

ADMITTED = [
    rolling("maxSurge: 200%, maxUnavailable: 0"),
    rolling("maxSurge: 0, maxUnavailable: 1%"),
    deployment("strategy: {type: Recreate}, minReadySeconds: 5, progressDeadlineSeconds: 6, revisionHistoryLimit: 0"),
    stateful("updateStrategy: {type: OnDelete}, podManagementPolicy: Parallel, ordinals: {start: 3}"),
    stateful("updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3, maxUnavailable: 0}}"),  # dropped
    stateful("persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}"),
    daemon_rolling("maxSurge: 10%, maxUnavailable: 0"),
    daemon_rolling("maxSurge: 1, maxUnavailable: 0%"),
    daemon("updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 0}}"),
    indexed(""),
    indexed("completions: 200000, parallelism: 10000, backoffLimitPerIndex: 1, maxFailedIndexes: 10000"),
    job("parallelism: 3, managedBy: kueue.x-k8s.io/multikueue, podReplacementPolicy: Failed, suspend: true"),
    exiting("operator: NotIn, values: [0, 3, 5], containerName: c"),
    failing("action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]"),
    job("podFailurePolicy: {rules: []}"),
    succeeding("succeededIndexes: '0,2-3', succeededCount: 3"),
    succeeding("succeededIndexes: ''"),
    nightly("timeZone: Europe/Berlin, startingDeadlineSeconds: 0, successfulJobsHistoryLimit: 0"),
    nightly("timeZone: Etc/UTC, concurrencyPolicy: Forbid"),
    hpa("minReplicas: 1"),
    hpa("scaleTargetRef: {kind: ReplicationController, name: web}"),
    hpa("targetCPUUtilizationPercentage: 80", version="v1"),
    resource("type: Utilization, averageUtilization: 80"),
    metric("type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: s}, metric: {name: rate}, target: {type: Value, value: 10}}"),
    behaviour("policies: [{type: Pods, value: 4, periodSeconds: 60}], selectPolicy: Disabled, tolerance: '0.05'"),
    hpa("behavior: {scaleDown: {}}"),
]  # fmt: skip
