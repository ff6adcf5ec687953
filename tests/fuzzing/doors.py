"""The commands of the program and the files that each reads: which files, how they are written, which arguments."""

import dataclasses
from collections.abc import Callable

from fuzzing import seeds, spelling

ANY_WORKLOAD = "@workload"  # one that the documents have


@dataclasses.dataclass(frozen=True)
class Door:
    """
    One way into the program. `files` are valid documents by file name, of which one case damages one or two.

    `arguments` may name a file; a choice of several is a tuple.
    """

    name: str
    arguments: tuple
    files: Callable[[], dict]
    spellings: dict = dataclasses.field(default_factory=dict)
    stdin: str = ""
    weight: int = 1


_TABLES = ("table", "wide", "json", "yaml", "name")
_DECISIONS = (
    (),
    (),
    (),
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
    _output("table", "json", "yaml", "junit", "sarif", "markdown", "scs", "prometheus"),
    _LOGS,
)
_SEVERAL = {"doc": spelling.SEVERAL}
_CONFIGURED = {"config": spelling.ONE, "doc": spelling.SEVERAL}

DOORS = (
    Door("place", ("place", "-f", "doc", _output(*_TABLES, "html"), ((), (), ("--explain",), ("--replicas", "max"), ("--replicas", "3")), _DECISIONS, _LOGS),
         _objects(seeds.manifests), _SEVERAL, weight=6),
    Door("place-fleet", ("place", "-f", "doc", _output(*_TABLES, "html"), ((), ("--explain",), ("--replicas", "max")), _DECISIONS),
         _objects(seeds.fleets, seeds.broken), _SEVERAL, weight=5),
    Door("place-state", ("place", "--state", "state", "-f", "doc", _output("table", "json"), ((), ("--gate=all",), ("--strict",), ("--explain",)), _DECISIONS),
         lambda: {"state": seeds.manifests(), "doc": seeds.manifests()}, _SEVERAL | {"state": spelling.SEVERAL}, weight=5),
    Door("place-fleet-state", ("place", "--state", "state", "-f", "doc"),
         lambda: {"state": seeds.fleets(), "doc": seeds.fleets()}, _SEVERAL | {"state": spelling.SEVERAL}, weight=2),
    Door("violations-state", ("violations", "--state", "doc"), _objects(seeds.broken, seeds.manifests), _SEVERAL),
    Door("audit-state", ("audit", "--state", "doc", ((), ("--lose", "zone"))), _objects(seeds.audited), _SEVERAL),
    Door("place-stdin", ("place", "-f", "-", _output("table", "json")), _objects(seeds.manifests, seeds.fleets), _SEVERAL, "doc"),
    Door("explain", ("explain", ANY_WORKLOAD, "-f", "doc", _output("text", "json", "yaml"),
         ((), ("--all-targets",), ("--alone",)), _DECISIONS), _objects(seeds.manifests), _SEVERAL, weight=3),
    Door("explain-fleet", ("explain", ANY_WORKLOAD, "-f", "doc", _output("text", "json")), _objects(seeds.fleets),
         _SEVERAL, weight=2),
    Door("validate", ("validate", "-f", "doc", _output("table", "json", "yaml", "sarif", "junit", "markdown"), ((), ("--restrict", "all"), ("--semantics", "design"))),
         _objects(seeds.manifests, seeds.fleets, seeds.quotas, seeds.audited), _SEVERAL, weight=6),
    Door("violations", ("violations", "-f", "doc", _output(*_TABLES), ((), ("--only-if-placeable",)), _DECISIONS),
         _objects(seeds.broken, seeds.broken, seeds.manifests, seeds.fleets), _SEVERAL, weight=2),
    Door("rebalance", ("rebalance", "-f", "doc", _output(*_TABLES), _DECISIONS), _objects(seeds.rebalanced, seeds.manifests, seeds.fleets), _SEVERAL, weight=2),
    Door("quota", ("quota", "-f", "doc", _output("table", "wide", "json", "yaml"), ((), ("--charge", "average"))), _objects(seeds.quotas, seeds.manifests),
         _SEVERAL, weight=2),
    Door("snapshot", ("snapshot", "-f", "doc", ((), ("--hash-key-file", "key"))),
         lambda: {"doc": [*seeds.manifests(), *seeds.fleets(), *seeds.audited()], "key": ["secret"]}, _SEVERAL | {"key": (spelling.as_json,)}, weight=2),
    Door("audit", _AUDIT, _objects(seeds.audited), _SEVERAL, weight=4),
    Door("audit-repair", (*_AUDIT, "--repair", ((), ("--ha",), ("--lose", "zone"), ("--bare-metal",))), _objects(seeds.audited), _SEVERAL),
    Door("audit-inventory", (*_AUDIT, "--inventory", "inventory"), lambda: {"doc": seeds.audited(), "inventory": seeds.inventories()},
         _SEVERAL | {"inventory": spelling.ONE}, weight=3),
    Door("audit-labels", ("audit", "labels", "--inventory", "inventory", ((), ("--hash-key-file", "key"))),
         lambda: {"inventory": seeds.inventories(), "key": ["secret"]}, {"inventory": spelling.ONE, "key": (spelling.as_json,)}),
    Door("audit-scenario", ("audit", "-f", "doc", ((), ("--scenario", "first")), ((), ("--profile", "legacy"))), _objects(seeds.labels_by_node),
         {"doc": spelling.ONE}),
    Door("audit-hosting", ("audit", "-f", "doc", "--hosting", "hosting"), lambda: {"doc": seeds.audited(), "hosting": seeds.audited()},
         _SEVERAL | {"hosting": spelling.SEVERAL}),
    Door("replay", ("replay", "doc", _output("table", "json"), ((), (), ("--explain", "1"))), _objects(seeds.recordings), {"doc": spelling.LINES}, weight=3),
    Door("bench-pods", ("bench", "pods", "doc"), lambda: {"doc": seeds.benchmark_inputs("pods")}, {"doc": spelling.JSON}),
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
    Door("kubeconfig", ("kubeconfig", "config"), lambda: {"config": seeds.kubeconfigs()}, {"config": spelling.ONE}, weight=2),
)  # fmt: skip
BY_NAME = {door.name: door for door in DOORS}
