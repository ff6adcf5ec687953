"""
A real Karmada control plane on loopback, with real members: `with ControlPlane(members=2) as karmada: …`.

Karmada's API server is a KubeServer with an aggregated API server behind it; each member is a KubeServer of its own, with
nodes and no kubelets. `kubelet` plays what would make workloads there healthy.
"""

import asyncio
import base64
import dataclasses
import pathlib
import re
import shutil
import tempfile

import trustme
import yaml

from live import kube_binaries
from live.admin import Admin, ApiError, wait_for
from live.karmada import established_crds
from live.kube_server import KubeServer, Options
from live.objects import node
from live.processes import Process, answers, free_port

CLUSTERS = "cluster.karmada.io/v1alpha1/clusters"
BINDINGS = "work.karmada.io/v1alpha2/resourcebindings"
CLUSTER_BINDINGS = "work.karmada.io/v1alpha2/clusterresourcebindings"
SYSTEM, OF_CLUSTERS = "karmada-system", "karmada-cluster"
AGGREGATED = "karmada-aggregated-apiserver"
MEMBER_NODES = {"count": 2, "cpu": "16", "memory": "64Gi"}


@dataclasses.dataclass(frozen=True)
class FrontProxy:
    """By which the aggregated API server knows the API server that forwards requests to it."""

    ca_file: pathlib.Path
    certificate: pathlib.Path
    key: pathlib.Path

    @classmethod
    def in_folder(cls, folder):
        authority = trustme.CA()
        leaf = authority.issue_cert("front-proxy-client", common_name="front-proxy-client")
        found = cls(folder / "front-proxy-ca.pem", folder / "front-proxy.pem", folder / "front-proxy.key")
        found.ca_file.write_bytes(authority.cert_pem.bytes())
        found.certificate.write_bytes(b"".join(part.bytes() for part in leaf.cert_chain_pems))
        found.key.write_bytes(leaf.private_key_pem.bytes())
        return found

    def flags(self):
        return (
            f"--requestheader-client-ca-file={self.ca_file}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self.certificate}",
            f"--proxy-client-key-file={self.key}",
        )


class ControlPlane:
    """Karmada's API server, its controllers and webhooks, and the members by name. `stop` removes everything."""

    def __init__(self, members=2, *, high_throughput=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bayplan-karmada-"))
        front_proxy = FrontProxy.in_folder(self.folder)
        self.server = KubeServer(Options(flags=front_proxy.flags(), high_throughput=high_throughput))
        self.members = {f"member{number}": KubeServer() for number in range(1, members + 1)}
        self.kubeconfig = self.server.kubeconfig()
        self.aggregated = self._aggregated()
        self.webhook = self._webhook()
        self.controllers = self._controllers()
        self.schedulers = []

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        self.stop()

    def start(self):
        try:
            for server in (self.server, *self.members.values()):
                server.start()
            asyncio.run(self._start_aggregated())
            asyncio.run(self._start_webhook())
            self.controllers.start()
            self.server.start_controller_manager("namespace", "garbagecollector")
            asyncio.run(self._join_members())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        for process in (*self.schedulers, self.controllers, self.webhook, self.aggregated):
            process.kill()
        for server in (self.server, *self.members.values()):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def recover(self):
        """Start what a test has stopped, and end the schedulers that it has started."""
        while self.schedulers:
            self.schedulers.pop().kill()
        for server in (self.server, *self.members.values()):
            for process in (server.etcd, server.apiserver):
                if not process.running:
                    process.start()
        for process in (self.aggregated, self.webhook, self.controllers):
            if not process.running:
                process.start()

    def start_karmada_scheduler(self, name="default-scheduler", *gates):
        """Start a real karmada-scheduler for the bindings of this scheduler name."""
        port = free_port()
        scheduler = self._process(
            "karmada-scheduler",
            f"--scheduler-name={name}",
            "--leader-elect=false",
            *([f"--feature-gates={','.join(gates)}"] if gates else ()),
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{port}",
            ready=lambda: answers(f"http://127.0.0.1:{port}/healthz"),
        )
        self.schedulers.append(scheduler)
        scheduler.start()
        return scheduler

    # Karmada's servers

    def _process(self, name, *flags, ready):
        command = [kube_binaries.find_karmada(name), f"--kubeconfig={self.kubeconfig}", *flags]
        return Process(command, log=self.folder / f"{name}.log", ready=ready)

    def _aggregated(self):
        self.aggregated_port = free_port()
        host = f"{AGGREGATED}.{SYSTEM}.svc"
        certificate, key = self.server.credentials.issue(host, "localhost", "127.0.0.1", common_name=AGGREGATED)
        return self._process(
            AGGREGATED,
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            f"--etcd-servers={self.server.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.aggregated_port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            "--audit-log-path=",
            ready=lambda: answers(
                f"https://127.0.0.1:{self.aggregated_port}/readyz",
                ca_file=self.server.ca_file,
                token=self.server.token(),
            ),
        )

    async def _start_aggregated(self):
        async with Admin.of(self.server) as admin:
            for name in (SYSTEM, OF_CLUSTERS):
                await admin.create_namespace(name)
            definitions = [
                yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) for file in kube_binaries.karmada_crds()
            ]
            for definition in definitions:
                if definition["metadata"]["name"].endswith("resourcebindings.work.karmada.io"):
                    definition["spec"]["conversion"] = {
                        "strategy": "Webhook",
                        "webhook": {
                            "clientConfig": self._reached("convert"),
                            "conversionReviewVersions": ["v1"],
                        },
                    }
            await admin.create_all(definitions)
            service = {"type": "ExternalName", "externalName": "localhost"}
            meta = {"name": AGGREGATED, "namespace": SYSTEM}
            await admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service})
            await asyncio.to_thread(self.aggregated.start)
            await admin.create(self._api_service())
            await wait_for(lambda: established_crds(admin, len(definitions)))
            await wait_for(lambda: _served(admin, CLUSTERS))

    def _api_service(self):
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1alpha1.cluster.karmada.io"},
            "spec": {
                "group": "cluster.karmada.io",
                "version": "v1alpha1",
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                "caBundle": self._ca_bundle(),
                "service": {"name": AGGREGATED, "namespace": SYSTEM, "port": self.aggregated_port},
            },
        }

    def _webhook(self):
        self.webhook_port = free_port()
        certificate, key = self.server.credentials.issue("127.0.0.1", "localhost", common_name="karmada-webhook")
        folder = self.folder / "webhook"
        folder.mkdir()
        shutil.copy(certificate, folder / "tls.crt")
        shutil.copy(key, folder / "tls.key")
        return self._process(
            "karmada-webhook",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.webhook_port}",
            f"--cert-dir={folder}",
            "--feature-gates=AllAlpha=true,AllBeta=true",
            "--allow-no-execute-taint-policy=true",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            ready=lambda: answers(f"https://127.0.0.1:{self.webhook_port}/readyz", ca_file=self.server.ca_file),
        )

    async def _start_webhook(self):
        await asyncio.to_thread(self.webhook.start)
        text = (kube_binaries.karmada_source() / "artifacts/deploy/webhook-configuration.yaml").read_text("utf-8")
        text = text.replace("{{caBundle}}", self._ca_bundle())
        text = re.sub(r"https://karmada-webhook\.karmada-system\.svc:443/", self._webhook_url(""), text)
        async with Admin.of(self.server) as admin:
            await admin.create_all([one for one in yaml.safe_load_all(text) if one])

    def _reached(self, path):
        return {"url": self._webhook_url(path), "caBundle": self._ca_bundle()}

    def _webhook_url(self, path):
        return f"https://127.0.0.1:{self.webhook_port}/{path}"

    def _ca_bundle(self):
        return base64.b64encode(self.server.ca_file.read_bytes()).decode()

    def _controllers(self):
        health = free_port()
        return self._process(
            "karmada-controller-manager",
            "--leader-elect=false",
            "--feature-gates=Failover=true,WorkloadAffinity=true,PriorityBasedScheduling=true,FederatedQuotaEnforcement=true",
            "--enable-no-execute-taint-eviction=true",
            "--cluster-status-update-frequency=2s",
            "--cluster-success-threshold=1s",
            "--cluster-failure-threshold=5s",
            # Clusters that a test has written report nothing.
            "--cluster-monitor-grace-period=24h",
            "--cluster-startup-grace-period=24h",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            ready=lambda: answers(f"http://127.0.0.1:{health}/healthz"),
        )

    # Members

    async def _join_members(self):
        async with Admin.of(self.server) as admin:
            for name, server in self.members.items():
                await _create_nodes(server)
                await admin.create_all(self._membership(name, server))
            await wait_for(lambda: self._are_ready(admin), 60)

    def _membership(self, name, server, **spec):
        """The Secret and the Cluster by which a member is known."""
        reference = {"namespace": OF_CLUSTERS, "name": name}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": reference,
            "stringData": {"caBundle": server.ca_file.read_text("utf-8"), "token": server.token()},
        }
        joined = {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {"syncMode": "Push", "apiEndpoint": server.url, "secretRef": reference, **spec},
        }
        return [secret, joined]

    async def _are_ready(self, admin):
        clusters = await admin.items(CLUSTERS)
        return len(clusters) == len(self.members) and all(
            is_ready(one) and one["status"].get("resourceSummary") for one in clusters
        )


async def _create_nodes(server):
    """Two nodes that are Ready: nothing else is needed for a member to report capacity."""
    async with Admin.of(server) as admin:
        for number in range(MEMBER_NODES["count"]):
            made = await admin.create(node(number, cpu=MEMBER_NODES["cpu"], memory=MEMBER_NODES["memory"]))
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
            await admin.patch("nodes", made["metadata"]["name"], ready, how="strategic", subresource="status")


def is_ready(cluster):
    conditions = cluster.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def _served(admin, resource):
    try:
        await admin.items(resource)
    except ApiError:
        return False
    return True
