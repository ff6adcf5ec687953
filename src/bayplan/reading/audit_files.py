"""
The input of an audit: the objects of a cluster and, on request, of the cluster that hosts its control plane.

What is unusual but usable becomes a warning, what cannot be used is a fault. The same objects can also be loaded into
an index in which displaced pods are placed again. Does not know the checks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from bayplan.auditing import component_survey
from bayplan.auditing.audit_input import AuditInput, FileLine, Hosting, Unlisted
from bayplan.errors import Fault, InputError
from bayplan.mapping import disruption_budgets
from bayplan.model import timestamps
from bayplan.reading import cluster, collecting, files
from bayplan.reading.cluster import LoadedCluster
from bayplan.reading.documents import IN_MEMORY, Document, Source
from bayplan.reading.files import OBJECTS_PER_PROGRESS_REPORT, ReadOptions, ReadProgress
from bayplan.reading.pod_sink import PodSink
from bayplan.validating import structure_faults
from bayplan.wire import controllers, kinds
from bayplan.wire.kinds import Trait
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.observed import ObservedLease, ObservedNode, ObservedPod

OWN_CONTROL_PLANE = ("kube-system", "openshift-")
_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
_PERCENTAGE = re.compile(r"\d+%")
_DEFAULT_LEASE_SECONDS = 3600  # as API servers write into their identity leases
_MAX_NAMES_SHOWN = 3
OnOpen = Callable[[Source], None]
EXPECTED_DOCUMENT = "expected an object with apiVersion and kind, or labels by node"


def _ignore(_: Source) -> None:
    pass


class PlaceableObjects:
    """Collects the objects that decide on which nodes pods fit, and loads them into an index."""

    def __init__(self) -> None:
        self._sink = PodSink()
        self._kinds = frozenset(row.kind for row in kinds.having(Trait.DISPLACED))
        self._collector = collecting.Collector(namespace="default", strict=False, sinks={kinds.POD: self._sink})

    def add(self, document: Document) -> None:
        if document.kind in self._kinds:
            self._collector.add(document)

    def begin_state(self) -> None:
        """All further objects are those of the state: one that cannot be read is set aside."""
        self._collector.begin_state()

    def cluster(self) -> LoadedCluster:
        """The loaded cluster; raises InputError with everything that cannot be read."""
        if self._collector.faults:
            raise InputError(self._collector.faults)
        return cluster.cluster_of(self._collector.inputs, sink=self._sink)


def load(
    options: ReadOptions,
    *,
    scenario: str = "",
    placeable: PlaceableObjects | None = None,
    unlisted: Sequence[Unlisted] = (),
    on_open: OnOpen = _ignore,
) -> AuditInput:
    """
    All objects of the input that an audit can use; raises InputError with everything that is wrong.

    `on_open` is called with every file before it is read.
    `unlisted`, which may grow while the live cluster is read, names the resources that it did not allow to list.
    """
    gathered = AuditObjects()
    given, state = (
        (options.disk or files.DISK).find(paths, recursive=options.recursive)
        for paths in (options.paths, options.state)
    )

    def take(items: Iterable[Document | Fault]) -> None:
        for item in items:
            if gathered.add(item) and placeable is not None and isinstance(item, Document):
                placeable.add(item)

    for searched in (given, state):
        gathered.skipped.extend(searched.skipped)
        take(searched.faults)
    take(_documents((*_opened(given.files, options, on_open), *_in_memory(options.written, on_open)), options.progress))
    gathered.is_state = True
    if placeable is not None and (options.state or options.live):
        placeable.begin_state()
    take(_documents(_opened(state.files, options, on_open), options.progress))
    take(_documents(_in_memory(options.live, on_open), options.progress))
    return gathered.finish(scenario, unlisted, ", ".join((*given.files, *state.files)))


def _opened(names: Iterable[str], options: ReadOptions, on_open: OnOpen) -> Iterator[Source | Fault]:
    stdin = options.stdin or sys.stdin.buffer
    for name in names:
        source = (options.disk or files.DISK).open(name, stdin)
        if isinstance(source, Source):
            on_open(source)
        yield source


def _in_memory(sources: Iterable[Source], on_open: OnOpen) -> Iterator[Source]:
    """Sources, of which the objects that a caller has in memory count as files; the report names a live cluster."""
    for source in sources:
        if source.name == IN_MEMORY:
            on_open(source)
        yield source


def load_hosting(
    paths: Sequence[str], namespaces: Sequence[str], *, recursive: bool = False, on_open: OnOpen = _ignore
) -> Hosting:
    """
    The nodes of the hosting cluster, and the pods of one control plane on it.

    `namespaces` choose the control plane. They may be empty if, besides the hosting cluster's own, only one namespace
    has parts of a control plane.
    """
    given = load(ReadOptions(paths, recursive=recursive), on_open=on_open)
    by_namespace: dict[str, list[ObservedPod]] = {}
    for pod in given.pods or ():
        if component_survey.components_of(pod):
            by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
    others = [name for name in by_namespace if not name.startswith(OWN_CONTROL_PLANE)]
    if not namespaces and len(others) > 1:
        message = f"parts of control planes in {len(others)} namespaces: choose with --hosting-namespace among"
        raise InputError(Fault(f"{message} {', '.join(sorted(others))}", file=", ".join(paths)))
    missing = [name for name in namespaces if name not in by_namespace]
    if missing:
        message = f"no part of a control plane in namespace {', '.join(missing)}; there is in"
        raise InputError(Fault(f"{message} {', '.join(sorted(by_namespace)) or 'none'}", file=", ".join(paths)))
    chosen = namespaces or others
    return Hosting(nodes=given.nodes, pods=[pod for name in chosen for pod in by_namespace[name]])


def _documents(
    found: Iterable[Source | Fault], progress: Callable[[ReadProgress], None] | None
) -> Iterator[Document | Fault]:
    n_objects = 0
    for source in found:
        if isinstance(source, Fault):
            yield source
            continue
        for item in files.documents_of(source):
            yield item
            n_objects += 1
            if progress is not None and n_objects % OBJECTS_PER_PROGRESS_REPORT == 0:
                progress(ReadProgress(source.name, source.position, source.size, n_objects))


class AuditObjects:
    """Collects the objects of an audit one by one; once `is_state` is set, further ones are those of the state."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._found: dict[str, list[Any]] = {row.kind: [] for row in kinds.KINDS.values() if row.audited_type}
        self._uid_of: dict[tuple[str, str, str], str] = {}
        self._duplicates: list[str] = []
        self._set_aside: list[Fault] = []
        self.is_state = False
        self.skipped: list[Fault] = []
        self._identities: set[str] = set()
        self._places: dict[str, FileLine] = {}
        self._scenarios = LabelScenarios()

    def add(self, item: Document | Fault) -> bool:
        """Add an object, or a fault of a file; true if the object is the first with its identity."""
        if isinstance(item, Fault):
            self.faults.append(item)
            return False
        if not item.kind and not item.api_version:
            self.faults.extend(self._scenarios.add(item))
            return False
        row = kinds.KINDS.get((item.api_version.rpartition("/")[0], item.kind))
        item.namespace = "" if row is not None and row.cluster_wide else item.namespace or "default"
        if row is None or row.audited_type is None:
            return self._is_first(item, "")
        decoded = self._decoded(item, row.audited_type)
        if decoded is None or not self._is_first(item, decoded.metadata.uid):
            return False
        self._found[item.kind].append(decoded)
        if item.kind == "Node":
            self._places[item.name] = (item.file, item.line)
        return True

    def _decoded(self, item: Document, wire_type: Any) -> Any:
        try:
            decoded = collecting.decode(item, wire_type)
        except structure_faults.UNDECODABLE as error:
            decoded = [item.fault(structure_faults.decoding_message(error))]
        if not isinstance(decoded, list) and not item.name:
            decoded = [item.fault("expected a name", "metadata.name")]
        if isinstance(decoded, controllers.PodDisruptionBudget):
            decoded = list(_percentage_faults(item, decoded)) or decoded
        if isinstance(decoded, list):
            if self.is_state:
                self._set_aside.append(decoded[0])
            else:
                self.faults.extend(decoded)
            return None
        # The items of a typed list do not name their kind, and objects in the default namespace need not name it.
        decoded.kind, decoded.metadata.name, decoded.metadata.namespace = item.kind, item.name, item.namespace
        return decoded

    def _is_first(self, item: Document, uid: str) -> bool:
        key = (item.kind, item.namespace, item.name)
        if key == ("Namespace", "", "kube-system") and uid:
            self._identities.add(uid)  # commonly used as the id of a cluster
        first = self._uid_of.get(key)
        if first is None:
            self._uid_of[key] = uid
            return True
        if self.is_state:
            return False
        self._duplicates.append(item.subject)
        if item.kind == "Node" and first and uid and first != uid:
            self._identities |= {first, uid}
        return False

    def finish(self, scenario: str = "", unlisted: Sequence[Unlisted] = (), origin: str = "") -> AuditInput:
        """The input of the audit; raises InputError with all faults. `origin` names the files."""
        nodes, faults = self._scenarios.chosen(scenario)
        places = {**{node.metadata.name: self._scenarios.place for node in nodes}, **self._places}
        nodes = [*self._found["Node"], *nodes]
        faults = [*self.faults, *faults]
        if not faults and not nodes:
            faults.append(Fault("no Node among the objects", file=origin))
        if faults:
            raise InputError(faults)
        return AuditInput(
            nodes=nodes,
            pods=self._found["Pod"] or None,
            leases=_unexpired(self._found["Lease"]),
            machines=self._found["Machine"],
            config_maps=self._found["ConfigMap"],
            endpoint_slices=self._found["EndpointSlice"],
            csi_nodes=self._found["CSINode"],
            volumes=self._found["PersistentVolume"],
            controllers=[one for row in kinds.held_in(kinds.CONTROLLERS) for one in self._found.get(row.kind, ())],
            budgets=[disruption_budgets.budget_of(one) for one in self._found["PodDisruptionBudget"]],
            line_by_node=places,
            warnings=tuple(self._warnings(nodes, self._found["Pod"])),
            unlisted=tuple(unlisted),
        )

    def _warnings(self, nodes: Sequence[ObservedNode], pods: Iterable[ObservedPod]) -> Iterator[str]:
        yield from map(str, self.skipped)
        yield from collecting.set_aside_notes(self._set_aside)
        if len(self._duplicates) == 1:
            yield f"{self._duplicates[0]} is in the input more than once; the first one is used"
        elif self._duplicates:
            more = ", …" if len(self._duplicates) > _MAX_NAMES_SHOWN else ""
            shown = ", ".join(self._duplicates[:_MAX_NAMES_SHOWN])
            given = f"{len(self._duplicates)} objects are in the input more than once ({shown}{more})"
            yield f"{given}; the first of each is used"
        names = sorted({(node.metadata.annotations or {}).get(_CLUSTER_NAME, "") for node in nodes} - {""})
        if len(names) > 1:
            yield f"the nodes belong to {len(names)} clusters ({', '.join(names)}) and are audited as one"
        elif len(self._identities) > 1:
            yield "the objects come from several clusters, by their uids, and are audited as one"
        known = {node.metadata.name for node in nodes}
        unknown = sorted({pod.spec.node_name for pod in pods if pod.spec.node_name} - known)
        if unknown:
            noun = "an unknown node" if len(unknown) == 1 else f"{len(unknown)} unknown nodes"
            shown = ", ".join(unknown[:_MAX_NAMES_SHOWN]) + (", …" if len(unknown) > _MAX_NAMES_SHOWN else "")
            yield f"pods on {noun} ({shown}) are not counted"


def _percentage_faults(item: Document, budget: controllers.PodDisruptionBudget) -> Iterator[Fault]:
    written = {"minAvailable": budget.spec.min_available, "maxUnavailable": budget.spec.max_unavailable}
    for field, value in written.items():
        if isinstance(value, str) and not _PERCENTAGE.fullmatch(value):
            yield item.fault(f"expected a whole number or a share such as 50%, got {value!r}", f"spec.{field}")


def _unexpired(leases: Sequence[ObservedLease]) -> list[ObservedLease]:
    """The leases that had not expired when the last one was renewed; servers that are gone leave theirs for a while."""
    renewed = {id(lease): _time(lease.spec.renew_time) for lease in leases}
    latest = max((at for at in renewed.values() if at is not None), default=None)
    found = []
    for lease in leases:
        at, lasts = renewed[id(lease)], (lease.spec.lease_duration_seconds or _DEFAULT_LEASE_SECONDS) * 10**9
        if at is None or latest is None or at + lasts >= latest:
            found.append(lease)
    return found


def _time(text: str | None) -> int | None:
    try:
        return None if text is None else timestamps.nanoseconds(text)
    except timestamps.TimestampError:
        return None


class LabelScenarios:
    """
    Nodes given as labels by node, or as labels by node by scenario: the format of the former SCS compliance test.

    A file without scenarios is one scenario with an empty name.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, list[ObservedNode]] = {}
        self.place: FileLine = ("", 0)

    def add(self, document: Document) -> Iterable[Fault]:
        """Add a document that is not an API object; returns its faults."""
        root = document.locate().root
        if not all(isinstance(value, dict) for value in root.values()) or not root:
            return [document.fault(EXPECTED_DOCUMENT, "kind")]
        flat = not any(isinstance(value, dict) for labels in root.values() for value in labels.values())
        for name, nodes in {"": root}.items() if flat else root.items():
            for node, labels in nodes.items():
                if not _are_labels(labels):
                    return [document.fault("expected labels by node", f"{name}.{node}")]
            self._nodes[str(name)] = [
                ObservedNode(
                    metadata=ObjectMeta(
                        name=str(node), labels={str(k): _label_value(v) for k, v in (labels or {}).items()}
                    )
                )
                for node, labels in nodes.items()
            ]
        self.place = (document.file, document.line)
        return []

    def chosen(self, name: str) -> tuple[list[ObservedNode], list[Fault]]:
        """The nodes of the named scenario, or of the only one; none without scenarios."""
        names = list(self._nodes)
        if name and name not in names:
            return [], [Fault(f"no scenario {name}; there are {', '.join(names) or 'none'}")]
        if len(names) > 1 and not name:
            return [], [Fault(f"{len(names)} scenarios: choose one of {', '.join(names)} with --scenario")]
        return (self._nodes[name or names[0]] if names else []), []


def _are_labels(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and not any(isinstance(v, dict | list) for v in value.values()))


def _label_value(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
