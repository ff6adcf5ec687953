"""
A real API server with its store, on loopback, for tests and benchmarks: `with KubeServer() as server: …`.

There are no kubelets and, unless started, no controllers and no scheduler: only tests change objects.
"""

import dataclasses
import os
import pathlib
import shutil
import tempfile

import yaml

from live import kube_binaries
from live.credentials import USERS, Credentials, User
from live.processes import Process, answers, free_port
from live.store import Store

# Objects that the API server creates at start, and custom resource definitions.
SERVER_KEYS = (
    "/registry/apiextensions.k8s.io/",
    "/registry/apiregistration.k8s.io/",
    "/registry/ipaddresses/10.0.0.1",
    "/registry/peerserverleases/",
    "/registry/services/specs/default/kubernetes",
)


@dataclasses.dataclass(frozen=True)
class Options:
    """
    Options of a test server.

    New nodes get no `node.kubernetes.io/not-ready` taint by default: there is no node controller to remove it.
    `high_throughput` is for benchmarks: no fair queuing and no limit of concurrent requests. `version` is that of
    kube-apiserver, one of kube_binaries.RELEASES.
    """

    users: dict[str, User] = dataclasses.field(default_factory=lambda: dict(USERS))
    taint_new_nodes: bool = False
    high_throughput: bool = False
    watch_cache: bool = True
    version: str | None = None
    flags: tuple[str, ...] = ()  # for kube-apiserver, as on its command line; the last one of a name counts


class KubeServer:
    """etcd and kube-apiserver, with logs and data in their own folder, which `stop` removes."""

    def __init__(self, options=None):
        self.options = options or Options()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bayplan-live-"))
        self.credentials = Credentials(self.folder / "credentials", self.options.users)
        self.url = f"https://127.0.0.1:{free_port()}"
        self.etcd_url = f"http://127.0.0.1:{free_port()}"
        self.store = Store(self.etcd_url)
        self.etcd = self._etcd()
        self.apiserver = self._apiserver()
        self.schedulers = []
        self._at_start = frozenset()

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        self.stop()

    @property
    def ca_file(self):
        return self.credentials.ca_file

    def token(self, user="admin"):
        return self.credentials.tokens[user]

    def kubeconfig(self, user="admin", *, url=None, entry=None, namespace=None):
        """
        Return the path of a new kubeconfig file that authenticates `user` by token.

        `entry` replaces the token by another user entry of a kubeconfig file; `url` leads through a proxy.
        """
        entry = entry if entry is not None else {"token": self.token(user)}
        return self.credentials.kubeconfig(url or self.url, entry, namespace=namespace)

    def client_certificate(self, user, group=None, *, lifetime=None):
        """Return the paths of a certificate and key for `user`; expired if `lifetime` (seconds) is negative."""
        return self.credentials.issue("client.invalid", common_name=user, group=group, lifetime=lifetime)

    def start(self):
        try:
            self.etcd.start()
            self.apiserver.start()
            self._at_start = frozenset(self.store.keys())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """Stop everything that was started here and delete its data."""
        for scheduler in self.schedulers:
            scheduler.kill()
        self.apiserver.kill()  # its data is deleted, so a graceful stop is unnecessary
        self.etcd.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def recover(self):
        """Restore the servers after a test: both run again, and no scheduler runs."""
        while self.schedulers:
            self.schedulers.pop().kill()
        for server in (self.etcd, self.apiserver):
            if not server.running:
                server.start()
        self.apiserver.wait_ready()

    def restart_apiserver(self):
        """Stop cleanly and start at the same address: watches end, data stays."""
        self.apiserver.stop()
        self.apiserver.start()

    def kill_apiserver(self):
        """kill -9; the API server is down until `start_apiserver`."""
        self.apiserver.kill()

    def start_apiserver(self):
        self.apiserver.start()

    def restart_etcd(self):
        """
        kill -9 and a start of the store under a running API server, which recovers by itself.

        No acknowledged write is lost. A clean stop would wait seven seconds for the API server to disconnect.
        """
        self.etcd.kill()
        self.etcd.start()
        self.apiserver.wait_ready()

    def clear(self):
        """
        Delete every object created since the start, of any kind except CustomResourceDefinition.

        They are deleted in the store, so that neither finalizers nor leftover webhooks prevent it. Changes to objects
        that existed at the start are kept.
        """
        self.store.delete(key for key in self.store.keys() - self._at_start if not key.startswith(SERVER_KEYS))

    def compact_etcd(self):
        """
        Compact the store to the latest version of every object. Return the revision.

        The API server still serves watches from its cache; `forget_history` clears that too.
        """
        return self.store.compact()

    def forget_history(self):
        """Compact the store and empty the watch cache, so that old watches find their history gone."""
        revision = self.compact_etcd()
        self.restart_apiserver()
        return revision

    def start_scheduler(self, name="default-scheduler", config=None, *, wait=True, flags=()):
        """
        Start a real kube-scheduler for pods of the scheduler `name`; return its Process, once it is ready if `wait`.

        `config` has fields of a KubeSchedulerConfiguration that replace the ones here; its profiles keep their names.
        """
        kubeconfig = self.kubeconfig("kube-scheduler")
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            # The limits of upstream's scheduler_perf, which no test reaches.
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
            "profiles": [{"schedulerName": name}],
        } | (config or {})
        port = free_port()
        file = self.folder / f"scheduler-{port}.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        certificate, key = self.credentials.issue("127.0.0.1", common_name="kube-scheduler")
        scheduler = Process(
            [
                kube_binaries.find("kube-scheduler"),
                f"--config={file}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--authentication-tolerate-lookup-failure",
                *flags,
            ],
            log=file.with_suffix(".log"),
            ready=lambda: not wait or answers(f"https://127.0.0.1:{port}/readyz", ca_file=self.ca_file),
        )
        self.schedulers.append(scheduler)
        scheduler.start()
        return scheduler

    def start_controller_manager(self, *controllers, flags=()):
        """Start a real kube-controller-manager with these controllers only; return its Process once it is ready."""
        kubeconfig, port = self.kubeconfig(), free_port()
        certificate, key = self.credentials.issue("127.0.0.1", common_name="kube-controller-manager")
        manager = Process(
            [
                kube_binaries.find("kube-controller-manager"),
                f"--controllers={','.join(controllers)}",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                f"--kubeconfig={kubeconfig}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--authentication-tolerate-lookup-failure",
                "--kube-api-qps=500",
                "--kube-api-burst=500",
                *flags,
            ],
            log=self.folder / f"controller-manager-{port}.log",
            ready=lambda: answers(f"https://127.0.0.1:{port}/healthz", ca_file=self.ca_file),
        )
        self.schedulers.append(manager)
        manager.start()
        return manager

    def _etcd(self):
        peer = f"http://127.0.0.1:{free_port()}"
        return Process(
            [
                kube_binaries.find("etcd"),
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={self.etcd_url}",
                f"--advertise-client-urls={self.etcd_url}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                f"--quota-backend-bytes={8 << 30}",
            ],
            # A variable, because etcd does not start with an unknown flag. Durability is not needed here.
            env={**os.environ, "ETCD_UNSAFE_NO_FSYNC": "true"},
            log=self.folder / "etcd.log",
            ready=lambda: answers(f"{self.etcd_url}/health"),
        )

    def _apiserver(self):
        options = self.options
        secrets = self.credentials
        disabled = ["ServiceAccount"] + ([] if options.taint_new_nodes else ["TaintNodesByCondition"])
        flags = [
            f"--etcd-servers={self.etcd_url}",
            "--etcd-compaction-interval=0",  # tests compact explicitly
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.url.rpartition(':')[2]}",
            f"--tls-cert-file={secrets.serving_certificate}",
            f"--tls-private-key-file={secrets.serving_key}",
            f"--client-ca-file={secrets.ca_file}",
            f"--token-auth-file={secrets.token_file}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",  # as in every real cluster: network plugins need it
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={secrets.account_key}",
            f"--service-account-signing-key-file={secrets.account_key}",
            "--service-cluster-ip-range=10.0.0.0/16",
            f"--disable-admission-plugins={','.join(disabled)}",
            f"--watch-cache={str(options.watch_cache).lower()}",
            "--shutdown-watch-termination-grace-period=5s",  # without it a clean stop waits a minute for open watches
            "--delete-collection-workers=10",
        ]
        if options.high_throughput:
            flags += ["--enable-priority-and-fairness=false"]
            flags += ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--profiling=false"]
        return Process(
            [kube_binaries.find("kube-apiserver", options.version), *flags, *options.flags],
            log=self.folder / "kube-apiserver.log",
            ready=lambda: answers(f"{self.url}/readyz", ca_file=self.ca_file, token=self.token()),
        )
