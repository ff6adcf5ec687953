"""
A real API server with its store, on loopback, for tests and benchmarks: `with KubeServer() as server: …`.

There are no controllers, no kubelets and, unless started, no scheduler: nothing changes but what a test changes.
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

# What the API server makes for itself once it runs, and the kinds that a test bed was given.
OF_THE_SERVER = (
    "/registry/apiextensions.k8s.io/",
    "/registry/apiregistration.k8s.io/",
    "/registry/ipaddresses/10.0.0.1",
    "/registry/peerserverleases/",
    "/registry/services/specs/default/kubernetes",
)


@dataclasses.dataclass(frozen=True)
class Options:
    """
    What a test bed may have otherwise than by default.

    New nodes get no `node.kubernetes.io/not-ready` taint unless asked for: without a node controller nobody would take
    it off. `high_throughput` is for benchmarks: no fair queuing, and as many requests at a time as clients send.
    """

    users: dict[str, User] = dataclasses.field(default_factory=lambda: dict(USERS))
    taint_new_nodes: bool = False
    high_throughput: bool = False
    watch_cache: bool = True
    flags: tuple[str, ...] = ()  # for kube-apiserver, as written on its command line; the last of a name counts


class KubeServer:
    """etcd and kube-apiserver; logs and data in a folder of their own, removed by `stop`."""

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
        The path of a new kubeconfig file that lets `user` in by token.

        `entry` replaces the token by any other entry that kubeconfig files have for a user; `url` leads through a proxy.
        """
        entry = entry if entry is not None else {"token": self.token(user)}
        return self.credentials.kubeconfig(url or self.url, entry, namespace=namespace)

    def client_certificate(self, user, group=None, *, lifetime=None):
        """The paths of a certificate and a key that let `user` in; expired if `lifetime` (seconds) is negative."""
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
        """End everything that was started here and forget its data."""
        for scheduler in self.schedulers:
            scheduler.kill()
        self.apiserver.kill()  # nothing of it is to be kept, so nobody waits for a graceful end
        self.etcd.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def recover(self):
        """Whatever a test has done to it: both servers run again, and no scheduler does."""
        while self.schedulers:
            self.schedulers.pop().kill()
        for server in (self.etcd, self.apiserver):
            if not server.running:
                server.start()
        self.apiserver.wait_ready()

    def restart_apiserver(self):
        """A clean stop and a start at the same address: watches end, data stays."""
        self.apiserver.stop()
        self.apiserver.start()

    def kill_apiserver(self):
        """kill -9, and gone until `start_apiserver`."""
        self.apiserver.kill()

    def start_apiserver(self):
        self.apiserver.start()

    def restart_etcd(self):
        """
        kill -9 and a start of the store under a running API server, which recovers by itself.

        Nothing that was acknowledged is lost. A clean stop would wait seven seconds for the API server to let go.
        """
        self.etcd.kill()
        self.etcd.start()
        self.apiserver.wait_ready()

    def clear(self):
        """
        Take away every object that was made since the start, of whatever kind but CustomResourceDefinition.

        Straight from the store, so that neither a finalizer nor a webhook that a test left behind is in the way. Objects
        that were there at the start and have been changed stay changed.
        """
        self.store.delete(key for key in self.store.keys() - self._at_start if not key.startswith(OF_THE_SERVER))

    def compact_etcd(self):
        """
        Forget every version of every object but the latest, in the store. Returns the revision compacted to.

        The API server still answers watches from the events it has in memory; `forget_history` takes those too.
        """
        return self.store.compact()

    def forget_history(self):
        """What a watch that comes back too late meets: the store compacted and the API server's memory empty."""
        revision = self.compact_etcd()
        self.restart_apiserver()
        return revision

    def start_scheduler(self, name="default-scheduler", config=None):
        """
        A real kube-scheduler for pods of the scheduler `name`, as a running Process.

        `config` holds fields of a KubeSchedulerConfiguration that replace the ones here; its profiles keep their names.
        """
        kubeconfig = self.kubeconfig("kube-scheduler")
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            # Upstream's scheduler_perf has the same limits: none that a test would meet.
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
            ],
            log=file.with_suffix(".log"),
            ready=lambda: answers(f"https://127.0.0.1:{port}/readyz", ca_file=self.ca_file),
        )
        self.schedulers.append(scheduler)
        scheduler.start()
        return scheduler

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
            # A variable, because versions that do not know a flag refuse to start. Nothing here outlives a power cut.
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
            "--etcd-compaction-interval=0",  # history ends when a test says so
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.url.rpartition(':')[2]}",
            f"--tls-cert-file={secrets.serving_certificate}",
            f"--tls-private-key-file={secrets.serving_key}",
            f"--client-ca-file={secrets.ca_file}",
            f"--token-auth-file={secrets.token_file}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",  # as everywhere: a network could not be set up without
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
            [kube_binaries.find("kube-apiserver"), *flags, *options.flags],
            log=self.folder / "kube-apiserver.log",
            ready=lambda: answers(f"{self.url}/readyz", ca_file=self.ca_file, token=self.token()),
        )
