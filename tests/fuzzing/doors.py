"""The commands of the program and the files that each reads: which files, how they are written, which arguments."""

import dataclasses
from collections.abc import Callable

from fuzzing import seeds, spelling

# Names that the documents have, also within a word.
ANY_WORKLOAD, ANY_NODE, ANY_ZONE, ANY_CLUSTER, ANY_REGION = "@workload", "@node", "@zone", "@cluster", "@region"
ANY_TWO_WORDS = "@two-words"  # kind and name of a workload


@dataclasses.dataclass(frozen=True)
class Door:
    """
    One way into the program. `files` are valid documents by file name, of which one case damages one or two.

    `arguments` may name a file; a choice of several is a tuple, of which a tuple is several words.
    """

    name: str
    arguments: tuple
    files: Callable[[], dict]
    spellings: dict = dataclasses.field(default_factory=dict)
    stdin: str = ""
    weight: int = 1


_TABLES = ("table", "wide", "json", "yaml", "name", "csv", "jsonpath={.items[*].name}", "custom-columns=NAME:.name")
_SHOWN = ((), (), ("--no-headers",), ("--sort-by", ".name"))
_ZONE = f"topology.kubernetes.io/zone={ANY_ZONE}"
_LOST = (
    ("--lose", f"node/{ANY_NODE}"),
    ("--lose", _ZONE),
    ("--drain", f"node/{ANY_NODE}"),
    ("--drain", _ZONE, "--add-node", f"like={ANY_NODE}"),
    ("--cordon", f"node/{ANY_NODE}", "--add-node", f"like={ANY_NODE}"),
)
_LOST_CLUSTERS = (
    ("--lose", f"cluster/{ANY_CLUSTER}"),
    ("--lose", f"region={ANY_REGION}"),
    ("--drain", f"cluster/{ANY_CLUSTER}"),
    ("--taint", f"cluster/{ANY_CLUSTER}:a=b:NoExecute"),
    ("--recover", f"cluster/{ANY_CLUSTER}"),
    ("--lose", f"cluster/{ANY_CLUSTER}", "--recover", f"cluster/{ANY_CLUSTER}"),
)
_HPA = ((), ("--hpa", "min"), ("--hpa", "max"))
_GATES = ((), ("--gate=all",), ("--gate=change",), ("--strict",), ("--explain",))
_DECISIONS = (
    (),
    (),
    (),
    ("--kubernetes-version", "1.37"),
    ("--affinity-label-keys", "app", "--anti-affinity-label-keys", "app,tier"),
    ("--seed", "x"),
    ("--semantics", "design"),
    ("--switch", "daemonNamespaces=kube-system"),
    ("-n", "shop"),
    ("-l", "app=web"),
)
_LOGS = ((), (), (), ("--log-format", "json"), ("-v",), ("--color", "always"))


def _objects(*lists):
    """One file with all objects."""
    return lambda: {"doc": [objects for found in lists for objects in found()]}


def _output(*formats):
    return tuple(("-o", one) for one in formats)


_AUDIT = (
    "audit",
    "-f",
    "doc",
    _output("table", "json", "yaml", "junit", "sarif", "markdown", "scs", "scs-report", "prometheus", "html"),
    _LOGS,
)
_FEWER = (
    (),
    ("--zone-is-host",),
    ("--label-key", "rack=rack"),
    ("--require", "fd-room-zone"),
    ("--require-stage", "zones"),
    ("--allow-undecided",),
    ("--exclude-workloads", "kube-system/.*"),
    ("--quorum-workloads", ".*etcd.*"),
    ("--no-reschedule",),
    ("--fail-on", "warning"),
)
_SEVERAL = {"doc": spelling.SEVERAL}
_CONFIGURED = {"config": spelling.ONE, "doc": spelling.SEVERAL}

DOORS = (
    Door("place", ("place", "-f", "doc", _output(*_TABLES, "html"), ((), (), ("--explain",), ("--replicas", "max"), ("--replicas", "3"), ("--rollout", "final"), ("--no-preemption",), ("--group-by", "owner")),
                   _SHOWN, _HPA, _DECISIONS, _LOGS),
         _objects(seeds.manifests), _SEVERAL, weight=6),
    Door("place-optimize", ("place", ("-f", "--state"), "doc", "--optimize", ((), ("--moves", "0"), ("--moves", "2")), _output(*_TABLES, "html"), ((), ("--explain",))),
         _objects(seeds.manifests), _SEVERAL),
    Door("place-what-if", ("place", ("-f", "--state", "--state"), "doc", _LOST, _output(*_TABLES, "html"), ((), ("--explain",), ("--strict",), ("--rollout", "final")), _DECISIONS),
         _objects(seeds.manifests, lambda: seeds.updates()["state"]), _SEVERAL, weight=5),
    Door("place-more-nodes", ("place", "-f", "doc", "--add-node", "more", _output("table", "json")),
         lambda: {"doc": seeds.manifests(), "more": seeds.nodes()}, _SEVERAL | {"more": spelling.SEVERAL}, weight=2),
    Door("place-state-what-if", ("place", "--state", "state", "-f", "doc", _LOST, _output("table", "json"), _GATES, _HPA),
         lambda: {"state": seeds.manifests(), "doc": seeds.manifests()}, _SEVERAL | {"state": spelling.SEVERAL}, weight=3),
    Door("place-rollout", ("place", "--state", "state", "-f", "doc", _output("table", "json"), _GATES, _HPA),
         seeds.updates, _SEVERAL | {"state": spelling.SEVERAL}, weight=4),
    Door("place-fleet", ("place", "-f", "doc", _output(*_TABLES, "html", "bindings"), ((), ("--explain",), ("--replicas", "max"), ("--show-unchanged",)), _DECISIONS),
         _objects(seeds.fleets, seeds.broken), _SEVERAL, weight=5),
    Door("place-fleet-what-if", ("place", ("-f", "--state", "--state"), "doc", _LOST_CLUSTERS, _output(*_TABLES, "bindings"), ((), ("--explain",), ("--replicas", "4"), ("--scale", "3,30,3"))),
         _objects(seeds.fleets), _SEVERAL, weight=4),
    Door("place-fleet-scaled", ("place", ("-f", "--state"), "doc", "--scale", ("3,30,3", "0", "1,2147483647"), _output("table", "json"), _DECISIONS),
         _objects(seeds.fleets), _SEVERAL, weight=3),
    Door("place-state", ("place", "--state", "state", "-f", "doc", _output("table", "json"), _GATES, _DECISIONS),
         lambda: {"state": seeds.manifests(), "doc": seeds.manifests()}, _SEVERAL | {"state": spelling.SEVERAL}, weight=5),
    Door("place-fleet-state", ("place", "--state", "state", "-f", "doc", ((), *_LOST_CLUSTERS), ((), ("--allow-unselected",), ("--show-unchanged",))),
         lambda: {"state": seeds.fleets(), "doc": seeds.fleets()}, _SEVERAL | {"state": spelling.SEVERAL}, weight=3),
    Door("simulate", ("simulate", ("-f", "--state"), "doc", "timeline", ((), ("--at", "30m"), ("--at", "1h", "--at", "2h"), ("--compare", "more")), ((), ("--events", "all")),
                      _output("table", "json", "yaml", "junit", "html"), _SHOWN, _DECISIONS),
         lambda: {"doc": seeds.simulated(), "timeline": seeds.timelines(), "more": seeds.timelines()}, _SEVERAL, weight=2),
    Door("violations-state", ("violations", "--state", "doc"), _objects(seeds.broken, seeds.manifests), _SEVERAL),
    Door("audit-state", ("audit", "--state", "doc", ((), ("--lose", "zone")), _FEWER), _objects(seeds.audited), _SEVERAL),
    Door("place-stdin", ("place", "-f", "-", _output("table", "json")), _objects(seeds.manifests, seeds.fleets), _SEVERAL, "doc"),
    Door("explain", ("explain", ANY_WORKLOAD, "-f", "doc", _output("text", "json", "yaml", "html", "csv", "jsonpath={.message}", "custom-columns=TARGET:.target"),
         ((), ("--all-targets",), ("--alone",), ("--no-preemption",), ("--apply-fix", "1")), _HPA, _DECISIONS), _objects(seeds.manifests), _SEVERAL, weight=3),
    Door("explain-what-if", ("explain", ANY_TWO_WORDS, ("-f", "--state", "--state"), "doc", _LOST, _output("text", "json", "yaml")), _objects(seeds.manifests), _SEVERAL, weight=3),
    Door("explain-fleet", ("explain", ANY_TWO_WORDS, ("-f", "--state", "--state"), "doc", ((), *_LOST_CLUSTERS), _output("text", "json")), _objects(seeds.fleets),
         _SEVERAL, weight=2),
    Door("validate", ("validate", "-f", "doc", _output("table", "json", "yaml", "sarif", "junit", "markdown"), ((), ("--restrict", "all"), ("--semantics", "design"), ("--fail-on", "warning")),
         ((), ("--kubernetes-version", "1.37"), ("--ignore", "NullLabelSelector"), ("--exempt-namespace", "shop"), ("--as", "ann", "--as-group", "ops", "--exempt-group", "ops"),
          ("--as", "ann", "--exempt-user", "ann"), ("-n", "shop"))),
         _objects(seeds.manifests, seeds.fleets, seeds.quotas, seeds.audited), _SEVERAL, weight=6),
    Door("violations", ("violations", "-f", "doc", _output(*_TABLES, "html"), _SHOWN, ((), ("--only-if-placeable",), ("--grant", "shop"), ("--affinity-grace", "0s", "--anti-affinity-grace", "0s")), _DECISIONS),
         _objects(seeds.broken, seeds.broken, seeds.manifests, seeds.fleets), _SEVERAL, weight=2),
    Door("rebalance", ("rebalance", "-f", "doc", _output(*_TABLES, "html"), ((), ("--max-moves", "1"), ("--grant", "shop")), _DECISIONS), _objects(seeds.rebalanced, seeds.manifests, seeds.fleets), _SEVERAL, weight=2),
    Door("quota", ("quota", "-f", "doc", _output("table", "wide", "json", "yaml"), ((), ("--charge", "average"), ("--limits", "bayplan-system/bayplan-quota"), ("-n", "shop"))), _objects(seeds.quotas, seeds.manifests),
         _SEVERAL, weight=2),
    Door("snapshot", ("snapshot", "-f", "doc", ((), ("-n", "shop"), ("--hash-key-file", "key"), ("--hash-names", "--hash-key-file", "key"))),
         lambda: {"doc": [*seeds.manifests(), *seeds.fleets(), *seeds.audited()], "key": ["secret"]}, _SEVERAL | {"key": (spelling.as_json,)}, weight=2),
    Door("audit", _AUDIT, _objects(seeds.audited), _SEVERAL, weight=4),
    Door("audit-repair", (*_AUDIT, "--repair", ((), ("--ha",), ("--lose", "zone"), ("--bare-metal",)), _FEWER), _objects(seeds.audited), _SEVERAL),
    Door("audit-inventory", (*_AUDIT, "--inventory", "inventory", ((), ("--reveal-inventory",))), lambda: {"doc": seeds.audited(), "inventory": seeds.inventories()},
         _SEVERAL | {"inventory": spelling.ONE}, weight=3),
    Door("audit-labels", ("audit", "labels", "--inventory", "inventory", ((), ("--hash-key-file", "key"), ("--overwrite",), ("-o", "yaml"))),
         lambda: {"inventory": seeds.inventories(), "key": ["secret"]}, {"inventory": spelling.ONE, "key": (spelling.as_json,)}),
    Door("audit-accepted", (*_AUDIT, "--accept", "accepted"), lambda: {"doc": seeds.audited(), "accepted": seeds.acceptances()},
         _SEVERAL | {"accepted": spelling.ONE}),
    Door("audit-clusters", ("audit", "--cluster", "a=doc", "--cluster", "b=more", _output("table", "json", "junit", "sarif", "markdown", "prometheus")),
         lambda: {"doc": seeds.audited(), "more": seeds.nodes()}, _SEVERAL | {"more": spelling.SEVERAL}),
    Door("audit-scenario", ("audit", "-f", "doc", ((), ("--scenario", "first")), ((), ("--profile", "legacy"))), _objects(seeds.labels_by_node),
         {"doc": spelling.ONE}),
    Door("audit-hosting", ("audit", "-f", "doc", "--hosting", "hosting", ((), ("--hosting-namespace", "kube-system"))), lambda: {"doc": seeds.audited(), "hosting": seeds.audited()},
         _SEVERAL | {"hosting": spelling.SEVERAL}),
    Door("replay", ("replay", "doc", _output("table", "json", "yaml"), ((), (), ("--explain", "1"), ("--pod", "default/web-4"))), _objects(seeds.recordings), {"doc": spelling.LINES}, weight=3),
    Door("bench-pods", ("bench", "pods", "doc", ((), ("--repeat", "2"), ("--placements", "placements"))), lambda: {"doc": seeds.benchmark_inputs("pods")}, {"doc": spelling.JSON}),
    Door("bench-fleet", ("bench", "fleet", "doc"), lambda: {"doc": seeds.benchmark_inputs("fleet")}, {"doc": spelling.JSON}),
    Door("config-view", ("config", "view", "--config", "config", ((), ("--origins",)), _output("yaml", "json")), lambda: {"config": seeds.configurations()},
         {"config": spelling.ONE}),
    Door("config-place", ("place", "--config", "config", "-f", "doc"),
         lambda: {"config": seeds.configurations(), "doc": seeds.manifests()[:4]}, _CONFIGURED, weight=2),
    Door("config-validate", ("validate", "--config", "config", "-f", "doc"),
         lambda: {"config": seeds.configurations(), "doc": seeds.manifests()[:4]}, _CONFIGURED),
    Door("decide-pods", ("decide", "pods"), lambda: {"doc": [[one] for one in seeds.questions_of("pods")]}, {"doc": spelling.LINES}, "doc", weight=7),
    Door("decide-preemption", ("decide", "preemption"), lambda: {"doc": [[one] for one in seeds.questions_of("preemption")]}, {"doc": spelling.LINES},
         "doc", weight=4),
    Door("decide-fleet", ("decide", "fleet"), lambda: {"doc": [[one] for one in seeds.questions_of("fleet")]}, {"doc": spelling.LINES}, "doc", weight=7),
    Door("decide-admission", ("decide", "admission"), lambda: {"doc": [[one] for one in seeds.questions_of("admission")]}, {"doc": spelling.LINES},
         "doc", weight=7),
    Door("page", ("page", ("-f", "--state", "--state"), "doc", (f"node/{ANY_NODE}", _ZONE, f"cluster/{ANY_CLUSTER}")), _objects(seeds.manifests, seeds.fleets, seeds.broken), _SEVERAL, weight=3),
    Door("kubeconfig", ("kubeconfig", "config"), lambda: {"config": seeds.kubeconfigs()}, {"config": spelling.ONE}, weight=2),
)  # fmt: skip
BY_NAME = {door.name: door for door in DOORS}
