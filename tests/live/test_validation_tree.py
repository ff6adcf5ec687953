"""Manifests as charts and kustomizations render them: `validate` rejects exactly those that the API server rejects."""

import json
import ssl
import urllib.error
import urllib.request

import pytest
import yaml
from click.testing import CliRunner

from bayplan.cli import main
from bayplan.wire import kinds
from live import kube_binaries

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: &labels {app.kubernetes.io/name: web, app.kubernetes.io/managed-by: Helm, helm.sh/chart: web-1.2.3}
  annotations: {meta.helm.sh/release-name: web, checksum/config: abc}
spec:
  replicas: 3
  revisionHistoryLimit: 5
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  selector: {matchLabels: {app.kubernetes.io/name: web}}
  template:
    metadata: {labels: *labels}
    spec:
      serviceAccountName: web
      securityContext: {runAsNonRoot: true, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway,
         labelSelector: {matchLabels: {app.kubernetes.io/name: web}}}
      containers:
      - name: web
        image: example.com/web:1.2.3
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: http}}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
        envFrom: [{configMapRef: {name: web}}]
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: {}}]
"""
QUEUE = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: queue}
spec:
  serviceName: queue-headless
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: queue}}
  template:
    metadata: {labels: {app: queue}}
    spec:
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: queue}}}
      initContainers: [{name: init, image: i, command: [sh, -c, "true"]}]
      containers: [{name: queue, image: q, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
CRON = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "5 3 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 2
      template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: i}]}}
"""
AGENT = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers: [{name: a, image: a, securityContext: {privileged: true}}]
      volumes: [{name: run, hostPath: {path: /run, type: Directory}}]
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app.kubernetes.io/name: web}}}
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 9
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]
"""
PLATFORM = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, labels: {app.kubernetes.io/part-of: edge}}
spec:
  replicas: 2
  minReadySeconds: 5
  progressDeadlineSeconds: 600
  paused: false
  strategy: {type: Recreate}
  selector: {matchExpressions: [{key: app, operator: In, values: [gateway]}]}
  template:
    metadata:
      labels: {app: gateway}
      annotations: {prometheus.io/scrape: "true"}
    spec:
      priorityClassName: system-cluster-critical
      terminationGracePeriodSeconds: 60
      dnsPolicy: None
      dnsConfig: {nameservers: [10.0.0.10], searches: [svc.cluster.local], options: [{name: ndots, value: "2"}]}
      hostAliases: [{ip: 10.1.2.3, hostnames: [db.local]}]
      imagePullSecrets: [{name: registry}]
      nodeSelector: {kubernetes.io/os: linux}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: gen, operator: Gt, values: ["4"]}]}]
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: gateway}},
             matchLabelKeys: [pod-template-hash]}
      initContainers:
      - {name: proxy, image: p, restartPolicy: Always, ports: [{containerPort: 15001}],
         startupProbe: {tcpSocket: {port: 15001}, failureThreshold: 30}}
      - {name: migrate, image: m, command: [migrate], env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}
      containers:
      - name: gateway
        image: g
        ports: [{name: https, containerPort: 8443, protocol: TCP}, {name: dns, containerPort: 53, protocol: UDP}]
        livenessProbe: {exec: {command: [ok]}, periodSeconds: 5, timeoutSeconds: 2}
        readinessProbe: {grpc: {port: 8443}}
        lifecycle: {preStop: {sleep: {seconds: 5}}}
        securityContext: {capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false}
        resources: {requests: {cpu: 250m, memory: 64Mi, ephemeral-storage: 1Gi}, limits: {cpu: "1", memory: 128Mi}}
        env: [{name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, {name: A, value: $(CPU)}]
        volumeMounts: [{name: all, mountPath: /etc/all, readOnly: true}, {name: cache, mountPath: /cache, subPath: a}]
      volumes:
      - name: all
        projected:
          defaultMode: 288
          sources: [{secret: {name: tls}}, {configMap: {name: conf, items: [{key: a, path: b}]}},
                    {serviceAccountToken: {path: token, expirationSeconds: 3600}}]
      - {name: cache, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce],
                                                              resources: {requests: {storage: 1Gi}}}}}}
"""
IMPORT = """\
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec:
  completions: 4
  parallelism: 2
  completionMode: Indexed
  backoffLimitPerIndex: 1
  maxFailedIndexes: 2
  ttlSecondsAfterFinished: 60
  podFailurePolicy:
    rules: [{action: FailJob, onExitCodes: {containerName: c, operator: In, values: [42]}}]
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""
BARE = """\
apiVersion: v1
kind: Pod
metadata: {name: debug, labels: {run: debug}}
spec:
  shareProcessNamespace: true
  schedulingGates: [{name: example.com/quota}]
  tolerations: [{key: dedicated, operator: Equal, value: db, effect: NoExecute, tolerationSeconds: 30}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, nodeTaintsPolicy: Honor,
     labelSelector: {matchLabels: {run: debug}}}
  containers: [{name: c, image: busybox, stdin: true, tty: true}]
"""
# What people get wrong: a manifest, what is replaced in it, and by what.
EDITS = [
    *((one, "", "") for one in (WEB, QUEUE, CRON, AGENT, BUDGET, SCALER, PLATFORM, IMPORT, BARE)),
    (WEB, "apps/v1\n", "apps/v1beta1\n"),
    (WEB, "apps/v1\n", "extensions/v1beta1\n"),
    (WEB, "kind: Deployment", "kind: Deploymnet"),
    (WEB, "replicas: 3", "replicas: -1"),
    (WEB, "replicas: 3", 'replicas: "3"'),
    (WEB, "maxSurge: 25%", "maxSurge: 0"),
    (WEB, "maxSkew: 1", "maxSkew: 0"),
    (WEB, "port: http", "port: nowhere-to-be-found-port"),
    (WEB, "readinessProbe", "readynessProbe"),
    (WEB, "memory: 128Mi", "memory: 512Mi"),
    (WEB, "memory: 128Mi", "memory: 128Megs"),
    (WEB, "mountPath: /tmp", "mountPath: /tmp, bindMountOptions: [x]"),
    (WEB, "name: tmp, emptyDir", "name: temp, emptyDir"),
    (WEB, "matchLabels: {app.kubernetes.io/name: web}}\n  template", "matchLabels: {app: other}}\n  template"),
    (WEB, "      serviceAccountName: web", "      evictionResponders: []\n      serviceAccountName: web"),
    (QUEUE, "weight: 100", "weight: 101"),
    (QUEUE, "Parallel", "Serial"),
    (QUEUE, "topologyKey: kubernetes.io/hostname, ", ""),
    (QUEUE, "ReadWriteOnce", "ReadWriteTwice"),
    (CRON, "batch/v1\n", "batch/v1beta1\n"),
    (CRON, "OnFailure", "Always"),
    (CRON, "5 3 * * *", "65 3 * * *"),
    (CRON, "Europe/Berlin", "Mars/Olympus"),
    (AGENT, "operator: Exists", "operator: Exist"),
    (AGENT, "path: /run", "path: ../run"),
    (BUDGET, "policy/v1\n", "policy/v1beta1\n"),
    (BUDGET, "maxUnavailable: 1", "maxUnavailable: 1, minAvailable: 1"),
    (SCALER, "autoscaling/v2\n", "autoscaling/v2beta2\n"),
    (SCALER, "minReplicas: 2", "minReplicas: 20"),
    (PLATFORM, "type: Recreate", "type: Recreate, rollingUpdate: {maxSurge: 1}"),
    (PLATFORM, "operator: In, values: [gateway]", "operator: Exists, values: [gateway]"),
    (PLATFORM, "progressDeadlineSeconds: 600", "progressDeadlineSeconds: 5"),
    (PLATFORM, "nameservers: [10.0.0.10]", "nameservers: [localhost]"),
    (PLATFORM, "dnsPolicy: None", "dnsPolicy: Nothing"),
    (PLATFORM, "ip: 10.1.2.3", "ip: 10.1.2"),
    (PLATFORM, 'values: ["4"]', "values: [four]"),
    (PLATFORM, "matchLabelKeys: [pod-template-hash]", "matchLabelKeys: [app]"),
    (PLATFORM, "restartPolicy: Always", "restartPolicy: Sometimes"),
    (PLATFORM, "fieldPath: metadata.name", "fieldPath: metadata.nam"),
    (PLATFORM, "protocol: UDP", "protocol: udp"),
    (PLATFORM, "sleep: {seconds: 5}", "sleep: {seconds: 90}"),
    (PLATFORM, "name: dns, containerPort", "name: https, containerPort"),
    (PLATFORM, "timeoutSeconds: 2", "timeoutSeconds: -2"),
    (PLATFORM, "cpu: 250m", "cpu: 1250m"),
    (PLATFORM, "resource: limits.cpu", "resource: limits.gpu"),
    (PLATFORM, "subPath: a", "subPath: ../a"),
    (PLATFORM, "name: cache, mountPath: /cache", "name: cache, mountPath: /etc/all"),
    (PLATFORM, "defaultMode: 288", "defaultMode: 999"),
    (PLATFORM, "path: b", "path: /b"),
    (PLATFORM, "expirationSeconds: 3600", "expirationSeconds: 60"),
    (PLATFORM, "storage: 1Gi}}}}}}", "cpu: 1Gi}}}}}}"),
    (PLATFORM, "terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: -1"),
    (IMPORT, "completionMode: Indexed", "completionMode: NonIndexed"),
    (IMPORT, "restartPolicy: Never", "restartPolicy: OnFailure"),
    (IMPORT, "values: [42]", "values: [0]"),
    (IMPORT, "maxFailedIndexes: 2", "maxFailedIndexes: 9"),
    (IMPORT, "containerName: c", "containerName: d"),
    (BARE, "name: example.com/quota", "name: Quota!"),
    (BARE, "operator: Equal", "operator: Exists"),
    (BARE, "effect: NoExecute", "effect: NoSchedule"),
    (BARE, "whenUnsatisfiable: DoNotSchedule", "whenUnsatisfiable: ScheduleAnyway"),
    (BARE, "minDomains: 2", "minDomains: 0"),
    (BARE, "stdin: true, tty: true", "stdin: yes, tty: 1"),
    (BARE, "kind: Pod", "kind: pod"),
]  # fmt: skip


def is_rejected(server, obj):
    """Whether a strict dry run on the API server fails."""
    group = obj["apiVersion"]
    plural = next((row.plural for row in kinds.KINDS.values() if row.kind == obj["kind"]), obj["kind"].lower())
    path = f"/{'apis' if '/' in group else 'api'}/{group}/namespaces/default/{plural}?dryRun=All&fieldValidation=Strict"
    headers = {"Authorization": f"Bearer {server.token()}", "Content-Type": "application/json"}
    request = urllib.request.Request(server.url + path, json.dumps(obj).encode(), headers)
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=server.ca_file)):
            return False
    except urllib.error.HTTPError as error:
        if error.code not in (400, 404, 422):
            raise
        return True


@pytest.fixture(scope="session", params=kube_binaries.RELEASES)
def release(request):
    return request.param


@pytest.fixture
def server(request, release):
    """An API server of the release; nothing is stored in it."""
    if kube_binaries.RELEASES[release] == kube_binaries.KUBE_VERSION:
        return request.getfixturevalue("kube_server")
    return request.getfixturevalue("released_kube_server")(release)


@pytest.mark.live
@pytest.mark.parametrize("number", range(len(EDITS)))
def test_validate_rejects_what_the_api_server_rejects(number, server, release, tmp_path):
    text, old, new = EDITS[number]
    assert old in text
    edited = text.replace(old, new, 1) if old else text
    (tmp_path / "manifest.yaml").write_text(edited)
    result = CliRunner().invoke(main.cli, ["validate", "-f", str(tmp_path), "--kubernetes-version", release])
    assert result.exit_code == is_rejected(server, yaml.safe_load(edited)), result.output
