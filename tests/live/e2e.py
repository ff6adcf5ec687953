"""
Kubernetes' own end-to-end tests of scheduling, with kube-scheduler and with Bayplan as the default scheduler.

    python -m live.e2e [--focus REGEX] [--scheduler NAME] [--logs FOLDER]      (in tests/; `make e2e`)

Each scheduler gets a bed of its own: a real API server with all of its default admission plugins, a real
kube-controller-manager with all of its default controllers, and KWOK, which plays the kubelets of a few nodes. No
container runs. Both outcomes are printed for each test; the exit code is 1 if Bayplan fails what kube-scheduler passes.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import shutil
import sys
import tempfile

from live import kube_binaries, objects
from live.admin import SyncAdmin
from live.bayplan_running import process
from live.kube_server import KubeServer, Options
from live.processes import Process, answers, free_port

FOCUS = r"\[sig-scheduling\]"
FEATURES = "!Feature:OffByDefault"  # tests of these need feature gates that no default cluster has
SEED = 1  # of the order of the tests
N_NODES = 4  # two in each of two zones
# Pods that the tests wait for on each node, a minute before each test if they are missing.
DAEMONS = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
KUBELET = kube_binaries.E2E_MODULE / "kubelet.yaml"
THEIRS, OURS = "kube-scheduler", "bayplan"
PASSED, SKIPPED = "passed", "skipped"
# A name that disables no plugin that is on by default: the option of KubeServer is thereby replaced.
ALL_DEFAULT_PLUGINS = "--disable-admission-plugins=NamespaceAutoProvision"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The state of one test as Ginkgo names it, and why it failed or was skipped."""

    state: str
    seconds: float
    why: str


@contextlib.contextmanager
def bed():
    """A cluster without a scheduler whose nodes are ready."""
    with KubeServer(Options(taint_new_nodes=True, flags=(ALL_DEFAULT_PLUGINS,))) as server:
        keys = (
            f"--root-ca-file={server.ca_file}",
            f"--service-account-private-key-file={server.credentials.account_key}",
        )
        server.start_controller_manager("*", flags=keys)
        _start_kwok(server)
        with SyncAdmin.of(server) as admin:
            for number in range(N_NODES):
                admin.create(_new_node(number))
            admin.wait_for(lambda: all(map(_is_ready, admin.items("nodes"))), timeout=120)
            admin.wait_for(lambda: admin.items("serviceaccounts", "kube-system", fieldSelector="metadata.name=default"))
            for node in admin.items("nodes"):
                for name in DAEMONS:
                    _run_daemon(admin, f"{name}-{node['metadata']['name']}", node["metadata"]["name"])
        yield server


def _new_node(number):
    """A node as a kubelet registers it: not ready, with its capacity and its addresses."""
    system = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    made = objects.node(number, zones=2, labels=system)
    for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
        amounts["ephemeral-storage"] = "100Gi"
    del made["status"]["conditions"]
    addresses = {"Hostname": made["metadata"]["name"], "InternalIP": f"192.0.2.{1 + number}"}
    made["status"]["addresses"] = [{"type": kind, "address": address} for kind, address in addresses.items()]
    return made


def _run_daemon(admin, name, node):
    """Create a system pod and bind it, so that it has the condition PodScheduled."""
    critical = {"scheduler": "none", "priorityClassName": "system-node-critical"}
    admin.create_pod(name, "kube-system", **critical)
    admin.bind("kube-system", name, node)


def _is_ready(node):
    conditions = {one["type"]: one["status"] for one in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def _start_kwok(server):
    port = free_port()
    stages = [file for file in kube_binaries.kwok_stages("node/fast", "pod/fast") if file.stem != "pod-delete"]
    kwok = Process(
        [
            kube_binaries.end_to_end() / "kwok",
            f"--kubeconfig={server.kubeconfig()}",
            "--manage-all-nodes",
            f"--server-address=127.0.0.1:{port}",
            # Without it, no Lease is renewed: the node becomes unreachable, and KWOK resets its status again and again.
            "--node-lease-duration-seconds=40",
            *(f"--config={file}" for file in (*stages, KUBELET)),
        ],
        log=server.folder / "kwok.log",
        ready=lambda: answers(f"http://127.0.0.1:{port}/readyz"),
    )
    server.schedulers.append(kwok)
    kwok.start()


def _start_scheduler(server, name):
    if name == THEIRS:
        server.start_scheduler()
    else:
        process(server, "--scheduler-name", "default-scheduler")


def outcomes(name, focus, logs=None):
    """The outcome of each selected test with this scheduler, by its name."""
    with bed() as server:
        _start_scheduler(server, name)
        try:
            return _run_tests(server, focus)
        finally:
            if logs is not None:
                shutil.copytree(server.folder, logs / name, ignore=shutil.ignore_patterns("etcd", "credentials"))


def _run_tests(server, focus):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [
            kube_binaries.end_to_end() / "e2e.test",
            f"--ginkgo.focus={focus}",
            f"--ginkgo.label-filter={FEATURES}",
            f"--ginkgo.seed={SEED}",
            f"--ginkgo.json-report={report}",
            "--ginkgo.no-color",
            "--ginkgo.timeout=3h",
            "--ginkgo.v",
            "--provider=skeleton",
            "--disable-log-dump",  # there are no kubelets to ask
            "--dump-logs-on-failure=false",
            f"--kubeconfig={server.kubeconfig()}",
        ]
        tests = Process(command, log=server.folder / "e2e.log", ready=lambda: True)
        server.schedulers.append(tests)  # so that it ends with the servers
        tests.start()
        tests.child.wait()
        if not report.exists():
            raise RuntimeError(f"the tests wrote no report\n{tests.log_tail()}")
        (content,) = json.loads(report.read_text(encoding="utf-8"))
    return dict(_outcomes_of(content["SpecReports"] or ()))


def _outcomes_of(reports):
    """Ginkgo lists the tests that are not selected too; a test that skips itself has a message."""
    for one in reports:
        failure = one.get("Failure") or {}
        why = failure.get("Message", "").strip().partition("\n")[0]  # the rest is a dump of objects
        is_selected = one["LeafNodeType"] == "It" and (one["State"] != SKIPPED or why)
        if is_selected:
            name = " ".join([*(one.get("ContainerHierarchyTexts") or ()), one["LeafNodeText"]])
            yield name, Outcome(one["State"], one["RunTime"] / 1e9, why)


def table(by_scheduler):
    """One line for each test with its state for each scheduler, then what failed or was skipped and why."""
    names = sorted({name for found in by_scheduler.values() for name in found})
    lines = ["| Test | " + " | ".join(by_scheduler) + " |", "|---" * (1 + len(by_scheduler)) + "|"]
    for name in names:
        states = [found[name].state if name in found else "not run" for found in by_scheduler.values()]
        lines.append(f"| {name.removeprefix('[sig-scheduling] ')} | {' | '.join(states)} |")
    for scheduler, found in by_scheduler.items():
        for name in names:
            if name in found and found[name].state != PASSED:
                lines += ["", f"{scheduler}: {name}: {found[name].state}: {found[name].why}"]
    return "\n".join(lines)


def worse(by_scheduler):
    """The tests that kube-scheduler passes and Bayplan does not."""
    theirs, ours = by_scheduler[THEIRS], by_scheduler[OURS]
    passed = {name for name, one in theirs.items() if one.state == PASSED}
    return sorted(passed - {name for name, one in ours.items() if one.state == PASSED})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--focus", default=FOCUS, help="regular expression for the names of the tests")
    parser.add_argument("--scheduler", choices=(THEIRS, OURS), action="append", help="only this one")
    parser.add_argument("--logs", type=pathlib.Path, help="new folder for the logs of the servers and of the tests")
    asked = parser.parse_args()
    try:
        kube_binaries.end_to_end()
        by_scheduler = {name: outcomes(name, asked.focus, asked.logs) for name in asked.scheduler or (THEIRS, OURS)}
    except kube_binaries.UnavailableError as reason:
        sys.stderr.write(f"e2e: {reason}\n")
        return kube_binaries.UNAVAILABLE
    sys.stdout.write(f"{table(by_scheduler)}\n")
    failed = worse(by_scheduler) if len(by_scheduler) == 2 else []
    for name in failed:
        sys.stdout.write(f"\nBayplan does not pass what kube-scheduler passes: {name}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
