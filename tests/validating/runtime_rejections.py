"""
What an API server of Kubernetes 1.36 rejects in volumes, probes, environment, security and names, in its wording.

`tests/live` validates the same objects with a real API server.
"""

import json

from validating.rejections import WEB, apps, job, pod, template

CONTAINER = "{name: c, image: i, %s}"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
SUBDOMAIN = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
KEY = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
HEADER = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
ENV = "a valid environment variable name must consist only of printable ASCII characters other than '='"
MODE = "must be a number between 0 and 0777 (octal), both inclusive"
PORT = "must be between 1 and 65535, inclusive"
LONG = "a" * 253
COST = "controller.kubernetes.io/pod-deletion-cost"
ID = "must be between 0 and 2147483647, inclusive"
TYPES = 'supported values: "Localhost", "RuntimeDefault", "Unconfined"'
SEVERAL = "Forbidden: may not specify more than 1 volume type"
NEGATIVE = "must be greater than or equal to 0"
CLAIM = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"

C = "spec.containers[0]"
I = "spec.initContainers[0]"  # noqa: E741
V = "spec.volumes[0]"
P = f"{C}.livenessProbe"
S = "spec.securityContext"

WINDOWS_USERS = {
    "": " cannot be an empty string",
    "a\tb": " cannot contain control characters",
    "a\\": "'s User cannot be empty",
    "...": "'s User cannot contain only periods or spaces",
    "a*b": """'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]""",
    ".a\\b": "'s Domain doesn't match the NetBios nor the DNS format",
    "x" * 105: "'s User length must not be longer than 104 characters",
    f"{'a.' * 127}aa\\b": "'s Domain length must be under 256 characters",
}


def container(fields):
    return pod(f"containers: [{CONTAINER % fields}]")


def init_container(fields):
    return pod(f"initContainers: [{{name: d, image: i, {fields}}}]")


def probed(fields):
    return container(f"livenessProbe: {{{fields}}}")


def variable(fields):
    return container(f"env: [{{{fields}}}]")


def volume(source):
    return pod(f"volumes: [{{name: v, {source}}}]")


def mounted(mounts, volumes="{name: v}", more=""):
    return pod(f"volumes: [{volumes}], containers: [{CONTAINER % f'volumeMounts: [{mounts}], {more}'}]")


def devices(listed, more=""):
    volumes = "{name: v, persistentVolumeClaim: {claimName: a}}, {name: w}"
    return pod(f"volumes: [{volumes}], containers: [{CONTAINER % f'volumeDevices: [{listed}], {more}'}]")


def secured(fields):
    return container(f"securityContext: {{{fields}}}")


def pod_secured(fields, more=""):
    return pod(f"securityContext: {{{fields}}}, {more}")


def claimed(fields):
    return volume(f"ephemeral: {{volumeClaimTemplate: {{{fields}}}}}")


def stateful_set(fields, made=None):
    return apps("StatefulSet", f"{WEB}, {fields}", made)


REJECTED = [
    # volumes
    (pod("volumes: [{}]"), [f"{V}.name: Required value"]),
    (pod("volumes: [{name: A}]"), [f'{V}.name: Invalid value: "A": {LABEL}']),
    (pod("volumes: [{name: v}, {name: v}]"), ['spec.volumes[1].name: Duplicate value: "v"']),
    (volume("emptyDir: {}, hostPath: {path: /a}"), [f"{V}.hostPath: {SEVERAL}"]),
    (volume("secret: {secretName: a}, downwardAPI: {}, cephfs: {}"), [f"{V}.cephFS: {SEVERAL}", f"{V}.downwarAPI: {SEVERAL}"]),  # upstream's spelling
    (volume("emptyDir: {sizeLimit: '-1'}"), [f"{V}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"]),
    (volume("hostPath: {}"), [f"{V}.hostPath.path: Required value"]),
    (volume("hostPath: {path: /a/../b, type: Folder}"), [f"{V}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'", f'{V}.hostPath.type: Unsupported value: "Folder": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"']),
    (volume("configMap: {}"), [f"{V}.configMap.name: Required value"]),
    (volume("configMap: {name: a, defaultMode: 512, items: [{key: a, path: ..a, mode: -1}]}"), [f"{V}.configMap.defaultMode: Invalid value: 512: {MODE}", f"{V}.configMap.items[0].path: Invalid value: \"..a\": must not start with '..'", f"{V}.configMap.items[0].mode: Invalid value: -1: {MODE}"]),
    (volume("secret: {items: [{}]}"), [f"{V}.secret.secretName: Required value", f"{V}.secret.items[0].key: Required value", f"{V}.secret.items[0].path: Required value"]),
    (volume("secret: {secretName: a, items: [{key: a, path: /a}]}"), [f'{V}.secret.items[0].path: Invalid value: "/a": must be a relative path']),
    (volume("persistentVolumeClaim: {}"), [f"{V}.persistentVolumeClaim.claimName: Required value"]),
    (volume("nfs: {server: a, path: b}"), [f'{V}.nfs.path: Invalid value: "b": must be an absolute path']),
    (volume("gitRepo: {directory: ../a}"), [f"{V}.gitRepo.repository: Required value", f"{V}.gitRepo.directory: Invalid value: \"../a\": must not contain '..'"]),
    (volume("csi: {}"), [f"{V}.csi.driver: Required value"]),
    (volume(f"csi: {{driver: {'a' * 64}, nodePublishSecretRef: {{}}}}"), [f"{V}.csi.driver: Too long: may not be more than 63 bytes", f"{V}.csi.nodePublishSecretRef.name: Required value"]),
    (volume("csi: {driver: a, nodePublishSecretRef: {name: A}}"), [f'{V}.csi.name: Invalid value: "A": {SUBDOMAIN}']),
    (volume("image: {pullPolicy: Often}"), [f'{V}.image.pullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"', f"{V}.image.reference: Required value"]),
    (volume("downwardAPI: {items: [{path: a}]}"), [f"{V}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"]),
    (volume("downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec.nodeName}}]}"), [f'{V}.downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"']),
    (volume("downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {}}]}"), [f'{V}.downwardAPI: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously']),
    (volume("downwardAPI: {items: [{path: a, resourceFieldRef: {resource: limits.cpu}}]}"), [f"{V}.downwardAPI.resourceFieldRef.containerName: Required value"]),
    (volume("projected: {sources: [{secret: {}, configMap: {name: a}}]}"), [f"{V}.projected.sources[0].secret.name: Required value", f"{V}.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"]),
    (volume("projected: {sources: [{secret: {name: a, items: [{key: k, path: p}]}}, {configMap: {name: b, items: [{key: k, path: p}]}}]}"), [f'{V}.projected: Invalid value: "b": conflicting duplicate paths']),
    (apps("Deployment", WEB, template("volumes: [{name: v, projected: {sources: [{serviceAccountToken: {expirationSeconds: 599}}]}}]")), ["spec.template.spec.volumes[0].projected.path: Required value", "spec.template.spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"]),
    (pod("serviceAccountName: a, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 4294967297}}]}}]"), [f"{V}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"]),
    (volume("ephemeral: {}"), [f"{V}.ephemeral.volumeClaimTemplate: Required value"]),
    (claimed("metadata: {name: a}, spec: {}"), [f"{V}.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set", f"{V}.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required", f"{V}.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"]),
    (claimed(f"metadata: {{uid: a}}, {CLAIM}"), [f"{V}.ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set"]),  # made from Go's name
    (claimed("spec: {accessModes: [ReadWriteOnce, ReadWriteOncePod], resources: {requests: {storage: 0}}, volumeMode: Tape}"), [f"{V}.ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes", f'{V}.ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "0": must be greater than zero', f'{V}.ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"']),
    (claimed("spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: b}}"), [f"{V}.ephemeral.volumeClaimTemplate.spec: Invalid value: {{}}: must match dataSourceRef"]),
    (claimed("spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSource: {kind: Tape, name: a}}"), [f"{V}.ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: \"Tape\": must be 'PersistentVolumeClaim' when referencing the default apiGroup"]),
    (claimed("spec: {accessModes: [Some], resources: {requests: {storage: 1Gi}}, dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: A}}"), [f'{V}.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "Some": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"', f'{V}.ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace: Invalid value: "A": {LABEL}', f"{V}.ephemeral.volumeClaimTemplate.spec: Invalid value: {{}}: may not be specified when dataSourceRef.namespace is specified"]),
    ({**claimed(CLAIM), "metadata": {"name": LONG}}, [f'{V}.name: Invalid value: "v": PVC name "{LONG}-v": must be no more than 253 characters']),
    (pod(f"volumes: [{{name: v, ephemeral: {{volumeClaimTemplate: {{{CLAIM}}}}}}}, {{name: x, persistentVolumeClaim: {{claimName: w-v}}}}]"), ['spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "w-v": must not reference a PVC that gets created for an ephemeral volume']),
    (stateful_set("volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce]}}]"), ["spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"]),
    # volumes of storage systems
    (volume("azureDisk: {diskName: a, diskURI: a, kind: Managed, cachingMode: Often}"), [f'{V}.azureDisk.cachingMode: Unsupported value: "Often": supported values: "None", "ReadOnly", "ReadWrite"', f'{V}.azureDisk.diskURI: Unsupported value: "a": supported values: "/subscriptions/{{sub-id}}/resourcegroups/{{group-name}}/providers/microsoft.compute/disks/{{disk-id}}"']),
    (volume("gcePersistentDisk: {partition: 256}"), [f"{V}.persistentDisk.pdName: Required value", f"{V}.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"]),
    (volume("iscsi: {targetPortal: a, iqn: b, lun: 256, chapAuthSession: true}"), [f'{V}.iscsi.iqn: Invalid value: "b": must be valid format starting with iqn, eui, or naa', f"{V}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive", f"{V}.iscsi.secretRef: Required value"]),
    (volume("fc: {targetWWNs: [a], wwids: [b]}"), [f'{V}.fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously', f"{V}.fc.lun: Required value: lun is required if targetWWNs is specified"]),
    (volume("fc: {}"), [f"{V}.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"]),
    (volume(f"iscsi: {{targetPortal: {'a' * 63}, iqn: eui.0123456789abcdef, initiatorName: eui.0123456789abcdef}}"), [f'{V}.name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.']),
    (volume(f"quobyte: {{registry: 'a:1', volume: b, tenant: {'a' * 65}}}"), [f"{V}.quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters"]),
    (volume("quobyte: {registry: a, volume: b}"), [f'{V}.quobyte.registry: Invalid value: "a": must be a host:port pair or multiple pairs separated by commas']),
    (volume("flocker: {datasetName: a/b}"), [f"{V}.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"]),
    (volume("flocker: {}"), [f"{V}.flocker: Required value: one of datasetName and datasetUUID is required"]),
    (volume("flexVolume: {driver: a, options: {a.k8s.io/b: c}}"), [f'{V}.flexVolume.options[a.k8s.io/b]: Invalid value: "a.k8s.io/b": kubernetes.io and k8s.io namespaces are reserved']),
    # mounts and devices
    (mounted("{name: x, mountPath: /a}"), [f'{C}.volumeMounts[0].name: Not found: "x"']),
    (mounted("{}"), [f"{C}.volumeMounts[0].name: Required value", f"{C}.volumeMounts[0].mountPath: Required value", f'{C}.volumeMounts[0].name: Not found: ""']),
    (mounted("{name: A, mountPath: /a}", "{name: A}"), [f'{V}.name: Invalid value: "A": {LABEL}', f'{C}.volumeMounts[0].name: Not found: "A"']),  # only valid volumes can be mounted
    (mounted("{name: v, mountPath: /a}, {name: v, mountPath: /a}"), [f'{C}.volumeMounts[1].mountPath: Invalid value: "/a": must be unique']),
    (mounted("{name: v, mountPath: /a, subPath: a/../b}"), [f"{C}.volumeMounts.subPath: Invalid value: \"a/../b\": must not contain '..'"]),
    (mounted("{name: v, mountPath: /a, subPath: a, subPathExpr: /b}"), [f'{C}.volumeMounts[0].subPathExpr: Invalid value: "/b": subPathExpr and subPath are mutually exclusive', f'{C}.volumeMounts.subPathExpr: Invalid value: "/b": must be a relative path']),
    (mounted("{name: v, mountPath: /a, mountPropagation: Bidirectional}"), [f"{C}.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"]),
    (mounted("{name: v, mountPath: /a, mountPropagation: Both}"), [f'{C}.volumeMounts.mountPropagation: Unsupported value: "Both": supported values: "Bidirectional", "HostToContainer", "None"']),
    (mounted("{name: v, mountPath: /a, recursiveReadOnly: Enabled, mountPropagation: HostToContainer}"), [f"{C}.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true", f"{C}.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified"]),
    (devices("{name: x, devicePath: ../a}"), [f'{C}.volumeDevices[0].name: Not found: "x"', f"{C}.volumeDevices[0].devicePath: Invalid value: \"../a\": can not contain backsteps ('..')"]),
    (devices("{name: w, devicePath: /a}"), [f'{C}.volumeDevices[0].name: Invalid value: "w": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode']),
    (devices("{name: v, devicePath: /a}, {name: v, devicePath: /a}"), [f'{C}.volumeDevices[1].name: Invalid value: "v": must be unique', f'{C}.volumeDevices[1].devicePath: Invalid value: "/a": must be unique']),
    (devices("{name: v, devicePath: /a}", "volumeMounts: [{name: v, mountPath: /a}]"), [f'{C}.volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices', f'{C}.volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices', f'{C}.volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts', f'{C}.volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts']),
    # probes and hooks
    (probed("periodSeconds: 1"), [f"{P}: Required value: must specify a handler type"]),
    (probed("exec: {}"), [f"{P}.exec.command: Required value"]),
    (probed("exec: {command: [a]}, tcpSocket: {port: 1}, grpc: {port: 0}"), [f"{P}.tcpSocket: Forbidden: may not specify more than 1 handler type", f"{P}.grpc: Forbidden: may not specify more than 1 handler type"]),
    (probed("httpGet: {port: 65536, scheme: http, httpHeaders: [{name: a b}]}"), [f"{P}.httpGet.port: Invalid value: 65536: {PORT}", f'{P}.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS"', f'{P}.httpGet.httpHeaders: Invalid value: "a b": {HEADER}']),
    (probed("tcpSocket: {port: a--b}"), [f'{P}.tcpSocket.port: Invalid value: "a--b": must not contain consecutive hyphens']),
    (probed("tcpSocket: {port: '80'}"), [f'{P}.tcpSocket.port: Invalid value: "80": must contain at least one letter (a-z)']),  # a number in quotes is a name
    (probed("grpc: {port: 0}"), [f"{P}.grpc.port: Invalid value: 0: {PORT}"]),
    (probed("exec: {command: [a]}, successThreshold: 2, failureThreshold: -1, terminationGracePeriodSeconds: 0"), [f"{P}.failureThreshold: Invalid value: -1: {NEGATIVE}", f"{P}.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0", f"{P}.successThreshold: Invalid value: 2: must be 1"]),
    (container("readinessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 5}"), [f"{C}.readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"]),
    (container("startupProbe: {exec: {command: [a]}, successThreshold: 2}"), [f"{C}.startupProbe.successThreshold: Invalid value: 2: must be 1"]),
    (container("lifecycle: {preStop: {}, postStart: {sleep: {seconds: 31}}}"), [f"{C}.lifecycle.postStart.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)", f"{C}.lifecycle.preStop: Required value: must specify a handler type"]),
    (init_container("livenessProbe: {exec: {command: [a]}}, lifecycle: {}"), [f"{I}.livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always", f"{I}.lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always"]),
    (init_container("restartPolicy: Always, livenessProbe: {}"), [f"{I}.livenessProbe: Required value: must specify a handler type"]),
    # environment
    (variable("value: a"), [f"{C}.env[0].name: Required value"]),
    (variable("name: a=b"), [f'{C}.env[0].name: Invalid value: "a=b": {ENV}']),
    (variable("name: A, valueFrom: {}"), [f'{C}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`']),
    (variable("name: A, value: b, valueFrom: {secretKeyRef: {name: a, key: b}}"), [f'{C}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty']),
    (variable("name: A, valueFrom: {secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}"), [f'{C}.env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time']),
    (variable("name: A, valueFrom: {secretKeyRef: {}}"), [f'{C}.env[0].valueFrom.secretKeyRef.name: Invalid value: "": {SUBDOMAIN}', f"{C}.env[0].valueFrom.secretKeyRef.key: Required value"]),
    (variable("name: A, valueFrom: {configMapKeyRef: {name: a, key: ..a/b}}"), [f'{C}.env[0].valueFrom.configMapKeyRef.key: Invalid value: "..a/b": {KEY}', f"{C}.env[0].valueFrom.configMapKeyRef.key: Invalid value: \"..a/b\": must not start with '..'"]),
    (variable("name: A, valueFrom: {fieldRef: {}}"), [f"{C}.env[0].valueFrom.fieldRef.fieldPath: Required value"]),
    (variable("name: A, valueFrom: {fieldRef: {fieldPath: spec.image}}"), [f'{C}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.image": error converting fieldPath: field label not supported: spec.image']),
    (variable("name: A, valueFrom: {fieldRef: {fieldPath: status.phase}}"), [f'{C}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"']),
    (variable("name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}"), [f'{C}.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"']),
    (variable("name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1n}}"), [f"{C}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"]),
    (variable("name: A, valueFrom: {fileKeyRef: {volumeName: v, path: ../a, key: b}}"), [f"{C}.env[0].valueFrom.fileKeyRef.path: Invalid value: \"../a\": must not contain '..'", f'{C}.env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"']),
    (container("envFrom: [{}]"), [f'{C}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`']),
    (container("envFrom: [{prefix: a=, configMapRef: {}, secretRef: {name: a}}]"), [f'{C}.envFrom[0].prefix: Invalid value: "a=": {ENV}', f"{C}.envFrom[0].configMapRef.name: Required value", f'{C}.envFrom: Invalid value: "": may not have more than one field specified at a time']),
    # other parts of containers
    (container("imagePullPolicy: Often"), [f'{C}.imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"']),
    (container("terminationMessagePolicy: Log"), [f'{C}.terminationMessagePolicy: Unsupported value: "Log": supported values: "File", "FallbackToLogsOnError"']),
    (pod("containers: [{name: c, image: ' i'}]"), [f'{C}.image: Invalid value: " i": must not have leading or trailing whitespace']),
    (container("ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]"), [f'{C}.ports[1].name: Duplicate value: "a"']),
    (container("ports: [{containerPort: 1, name: An-overly-long-name-}]"), [f'{C}.ports[0].name: Invalid value: "An-overly-long-name-": must be no more than 15 characters', f'{C}.ports[0].name: Invalid value: "An-overly-long-name-": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)', f'{C}.ports[0].name: Invalid value: "An-overly-long-name-": must not begin or end with a hyphen']),
    (pod(f"restartPolicy: Never, containers: [{CONTAINER % 'resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}, {resourceName: cpu, restartPolicy: NotRequired}]'}]"), [f"{C}.resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'", f'{C}.resizePolicy[1]: Duplicate value: "cpu"']),
    (init_container("resizePolicy: [{resourceName: gpu, restartPolicy: RestartContainer}]"), [f'{I}.resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"', f"{I}.resizePolicy[0].restartPolicy: Invalid value: \"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar initContainers"]),
    (container("restartPolicyRules: [{action: Stop}]"), [f"{C}.restartPolicy: Required value: must specify restartPolicy when restart rules are used", f'{C}.restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", "RestartAllContainers"', f"{C}.restartPolicyRules[0].exitCodes: Required value: must be specified"]),
    (container("restartPolicy: Never, restartPolicyRules: [" + "{action: Restart, exitCodes: {operator: In, values: [1]}}," * 21 + "]"), [f"{C}.restartPolicyRules: Too many: 21: must have at most 20 items"]),
    (container(f"restartPolicy: Never, restartPolicyRules: [{{action: Restart, exitCodes: {{operator: In, values: {[1] * 256}}}}}]"), [f"{C}.restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items"]),
    # devices
    (pod("resourceClaims: [{}, {name: a, resourceClaimName: b, resourceClaimTemplateName: c}, {name: a, resourceClaimName: B}]"), ["spec.resourceClaims[0].name: Required value", 'spec.resourceClaims[0]: Invalid value: {"Name":"","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`', 'spec.resourceClaims[1]: Invalid value: {"Name":"a","ResourceClaimName":"b","ResourceClaimTemplateName":"c"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified', 'spec.resourceClaims[2].name: Duplicate value: "a"', f'spec.resourceClaims[2].resourceClaimName: Invalid value: "B": {SUBDOMAIN}']),
    (container("resources: {claims: [{}, {name: a}]}"), [f"{C}.resources.claims[0]: Required value", f'{C}.resources.claims[1]: Not found: "a": must be one of the names in pod.spec.resourceClaims which is empty']),
    (pod(f"resourceClaims: [{{name: a, resourceClaimName: b}}], containers: [{CONTAINER % 'resources: {claims: [{name: a, request: b}, {name: a, request: b}, {name: a}, {name: a}, {name: c}]}'}]"), [f'{C}.resources.claims[1]: Duplicate value: "a/b"', f'{C}.resources.claims[2]: Duplicate value: "a"', f'{C}.resources.claims[3]: Duplicate value: "a"', f'{C}.resources.claims[4]: Not found: "c": must be one of the names in pod.spec.resourceClaims: a']),
    (pod("resourceClaims: [{name: a, resourceClaimName: b}], resources: {claims: [{name: a}]}"), ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"]),
    # security
    (secured("runAsUser: -1, runAsGroup: 2147483648"), [f"{C}.securityContext.runAsUser: Invalid value: -1: {ID}", f"{C}.securityContext.runAsGroup: Invalid value: 2147483648: {ID}"]),
    (secured("procMount: Unmasked"), [f'{C}.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`']),
    (secured("privileged: true, allowPrivilegeEscalation: false"), [f'{C}.securityContext: Invalid value: {{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true']),
    (secured("allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}, runAsUser: 1, seLinuxOptions: {level: s0}, windowsOptions: {runAsUserName: a}, procMount: Default, seccompProfile: {type: Unconfined}"), [f'{C}.securityContext: Invalid value: {{"Capabilities":{{"Add":["CAP_SYS_ADMIN"],"Drop":null}},"Privileged":null,"SELinuxOptions":{{"User":"","Role":"","Type":"","Level":"s0"}},"WindowsOptions":{{"GMSACredentialSpecName":null,"GMSACredentialSpec":null,"RunAsUserName":"a","HostProcess":null}},"RunAsUser":1,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":"Default","SeccompProfile":{{"Type":"Unconfined","LocalhostProfile":null}},"AppArmorProfile":null}}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN']),
    (secured("seccompProfile: {}, appArmorProfile: {}"), [f"{C}.securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set", f"{C}.securityContext.appArmorProfile.type: Required value: type is required when appArmorProfile is set"]),
    (secured("seccompProfile: {type: Localhost}, appArmorProfile: {type: Localhost}"), [f"{C}.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost", f"{C}.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"]),
    (secured("seccompProfile: {type: Unconfined, localhostProfile: a}, appArmorProfile: {type: Unconfined, localhostProfile: a}"), [f'{C}.securityContext.seccompProfile.localhostProfile: Invalid value: {{"Type":"Unconfined","LocalhostProfile":"a"}}: can only be set when seccomp type is Localhost', f'{C}.securityContext.appArmorProfile.localhostProfile: Invalid value: "a": can only be set when AppArmor type is Localhost']),
    (pod_secured("seccompProfile: {type: Strict}, appArmorProfile: {type: Localhost, localhostProfile: ' a'}"), [f'{S}.seccompProfile.type: Unsupported value: "Strict": {TYPES}', f'{S}.appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace']),
    (pod_secured("fsGroup: -1, supplementalGroups: [1, -2], fsGroupChangePolicy: Never, supplementalGroupsPolicy: All, seLinuxChangePolicy: MountOption"), [f"{S}.fsGroup: Invalid value: -1: {ID}", f"{S}.supplementalGroups[1]: Invalid value: -2: {ID}", f'{S}.fsGroupChangePolicy: Unsupported value: "Never": supported values: "Always", "OnRootMismatch"', f'{S}.supplementalGroupsPolicy: Unsupported value: "All": supported values: "Merge", "Strict"', f'{S}.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"']),
    (pod_secured("sysctls: [{name: kernel.sem}, {name: kernel.sem}, {}]"), [f'{S}.sysctls[1].name: Duplicate value: "kernel.sem"', f"{S}.sysctls[2].name: Required value"]),
    (pod_secured("sysctls: [{name: A}]"), [f'{S}.sysctls[0].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$']),
    (pod_secured("sysctls: [{name: net/ipv4/tcp_syncookies}, {name: kernel.shmmax}]", "hostNetwork: true, hostIPC: true"), [f"{S}.sysctls[0].name: Invalid value: \"net/ipv4/tcp_syncookies\": may not be specified when 'hostNetwork' is true", f"{S}.sysctls[1].name: Invalid value: \"kernel.shmmax\": may not be specified when 'hostIPC' is true"]),
    (pod("hostPID: true, shareProcessNamespace: true"), [f"{S}.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"]),
    (pod("hostUsers: false, hostNetwork: true, hostPID: true"), ["spec.hostNetwork: Forbidden: when `hostUsers` is false", "spec.HostPID: Forbidden: when `hostUsers` is false"]),
    (pod_secured(f"appArmorProfile: {{type: Localhost, localhostProfile: {'a' * 4096}}}"), [f"{S}.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes"]),
    # systems
    (pod("os: {}"), ["spec.os.name: Required value"]),
    (pod("os: {name: plan9}"), ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"']),
    (pod_secured("windowsOptions: {}", "os: {name: linux}"), [f"{S}.windowsOptions: Forbidden: windows options cannot be set for a linux pod"]),
    (pod_secured("runAsUser: 1, sysctls: [{name: a}]", "os: {name: windows}, hostPID: true"), ["spec.hostPID: Forbidden: cannot be set for a windows pod", f"{S}.sysctls: Forbidden: cannot be set for a windows pod", f"{S}.runAsUser: Forbidden: cannot be set for a windows pod"]),
    (pod_secured("windowsOptions: {hostProcess: true}"), ["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"]),
    (pod(f"hostNetwork: true, securityContext: {{windowsOptions: {{hostProcess: true}}}}, containers: [{CONTAINER % 'securityContext: {windowsOptions: {hostProcess: false}}'}, {{name: d, image: i}}]"), [f"{C}.securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true", 'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers']),
    (secured("windowsOptions: {gmsaCredentialSpec: '', runAsUserName: 'a\\b\\c'}"), [f'{C}.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string', f'{C}.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than one backslash']),
    *[(secured(f"windowsOptions: {{runAsUserName: {json.dumps(name)}}}"), [f"{C}.securityContext.windowsOptions.runAsUserName: Invalid value: {json.dumps(name)}: runAsUserName{detail}"]) for name, detail in WINDOWS_USERS.items()],
    # names and addresses
    (pod("dnsPolicy: Mine"), ['spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"']),
    (pod("dnsPolicy: None"), ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
    (pod("dnsPolicy: None, dnsConfig: {}"), ["spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"]),
    (pod("dnsConfig: {nameservers: [1.2.3.4, 1.2.3.4, 1.2.3.4, a], options: [{}]}"), ['spec.dnsConfig.nameservers: Invalid value: ["1.2.3.4","1.2.3.4","1.2.3.4","a"]: must not have more than 3 nameservers', 'spec.dnsConfig.nameservers[3]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)', "spec.dnsConfig.options[0]: Required value: must not be empty"]),
    (pod(f"dnsConfig: {{searches: {['a'] * 33}}}"), [f"spec.dnsConfig.searches: Invalid value: {json.dumps(['a'] * 33, separators=(',', ':'))}: must not have more than 32 search paths"]),
    (pod(f"dnsConfig: {{searches: {[LONG] * 9}}}"), [f"spec.dnsConfig.searches: Invalid value: {json.dumps([LONG] * 9, separators=(',', ':'))}: must not have more than 2048 characters (including spaces) in the search list"]),
    (pod("hostAliases: [{ip: 1.2.3.04, hostnames: [A]}, {ip: '::ffff:1.2.3.4'}]"), ['spec.hostAliases[0].ip: Invalid value: "1.2.3.04": must not have leading 0s', f'spec.hostAliases[0].hostnames[0]: Invalid value: "A": {SUBDOMAIN}', 'spec.hostAliases[1].ip: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address']),
    (pod("hostAliases: [{ip: '::00001'}, {ip: 'fe80::1%eth0'}]"), ['spec.hostAliases[0].ip: Invalid value: "::00001": must not have leading 0s', 'spec.hostAliases[1].ip: Invalid value: "fe80::1%eth0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']),
    (pod("hostname: A, subdomain: a.b"), [f'spec.hostname: Invalid value: "A": {LABEL}', 'spec.subdomain: Invalid value: "a.b": must not contain dots']),
    (pod(f"hostnameOverride: {'a' * 65}, hostNetwork: true, setHostnameAsFQDN: true"), ["spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true", "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true", "spec.hostnameOverride: Too long: may not be more than 64 bytes"]),
    (pod("serviceAccountName: A"), [f'spec.serviceAccountName: Invalid value: "A": {SUBDOMAIN}']),
    (pod("activeDeadlineSeconds: 0"), ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"]),
    (pod("readinessGates: [{conditionType: a/b/c}]"), ["spec.readinessGates[0].conditionType: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]),
    (apps("Deployment", WEB, template("runtimeClassName: A")), [f'spec.template.spec.runtimeClassName: Invalid value: "A": {SUBDOMAIN}']),
    (pod("ephemeralContainers: [{name: e, image: i}]"), ["spec.ephemeralContainers: Forbidden: cannot be set on create"]),
    (apps("Deployment", WEB, template("ephemeralContainers: [{name: e, image: i}]")), ["spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"]),
    # annotations
    ({**pod(""), "metadata": {"name": "w", "annotations": {COST: "+1"}}}, [f'metadata.annotations[{COST}]: Invalid value: "+1": must be a 32bit integer']),
    (apps("Deployment", WEB, {**template(), "metadata": {"labels": {"app": "web"}, "annotations": {COST: "2147483648"}}}), [f'spec.template.annotations[{COST}]: Invalid value: "2147483648": must be a 32bit integer']),
    # what differs in templates
    (job("", template("restartPolicy: Never, volumes: [{name: v, secret: {}}]")), ["spec.template.spec.volumes[0].secret.secretName: Required value"]),
    (apps("Deployment", "selector: {matchExpressions: [{key: app, operator: Near}]}", template("dnsPolicy: Mine")), ['spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator', 'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Near"}]}: invalid label selector']),  # the template is not validated
]  # fmt: skip

ADMITTED = [
    pod("volumes: [{name: v}]"),  # it becomes an empty folder
    volume("projected: {sources: [{}]}"),
    claimed(CLAIM),
    container("livenessProbe: {httpGet: {port: http}, successThreshold: 0}"),
    container("lifecycle: {preStop: {sleep: {seconds: 30}}}"),
    init_container("lifecycle: {stopSignal: SIGTERM}"),  # dropped before validation
    variable("name: '1 a+b'"),
    variable("name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a']\"}}"),
    container("envFrom: [{configMapRef: {name: a-}}]"),
    secured("privileged: true"),
    pod("hostUsers: false, containers: [{name: c, image: i, securityContext: {procMount: Unmasked}}]"),
    pod("dnsConfig: {searches: [., _a.b.]}"),
    pod("hostAliases: [{ip: '2001:DB8::1'}]"),
    pod("terminationGracePeriodSeconds: -1"),
    apps("Deployment", WEB, template("containers: [{name: c, image: ' i'}]")),  # it may be replaced
    apps("Deployment", WEB, template("volumes: [{name: v, image: {}}]")),
    stateful_set(f"volumeClaimTemplates: [{{metadata: {{name: v}}, {CLAIM}}}]", template("hostname: A, subdomain: a.b, containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /a}]}]")),
]  # fmt: skip
