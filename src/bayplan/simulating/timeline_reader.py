"""
Reads a timeline from a document: every fault of it at once, each with its line and field.

Whether the objects that it names exist is checked in `timeline_checks`, once the cluster is read.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.reading import files
from bayplan.reading.documents import Document, Source
from bayplan.simulating import applied_manifests, expectation_reader
from bayplan.simulating.timeline import (
    Action,
    Apply,
    Delete,
    Failures,
    Load,
    Named,
    NodeAction,
    NodeSelection,
    PodTimes,
    Rebalance,
    Relabel,
    Restart,
    Scale,
    Step,
    TaintChange,
    TaintNodes,
    Timeline,
    TimelineEnforcement,
)
from bayplan.simulating.timeline_fields import Fields, parse_duration, shown, written_duration
from bayplan.wire.nodes import WireTaint
from bayplan.writing.versioned import API_VERSION

KIND = "Timeline"
_TOP = (
    "apiVersion", "kind", "metadata", "about", "seed", "lasts", "namespace", "timing", "enforcement", "failures",
    "steps",
)  # fmt: skip
_TIMING = ("start", "stop", "run")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RATE_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
NODE_VERBS = ("lose", "recover", "drain", "cordon", "uncordon")
VERBS = (*NODE_VERBS, "scale", "restart", "apply", "delete", "relabel", "taint", "load", "rebalance", "expect")
_STEP = ("at", "every", "until", "over", *VERBS)
_RELABELLED = ("Node", "Namespace", "Pod")


def read(path: str, stdin: BinaryIO | None = None) -> Timeline:
    """The timeline in a file, YAML or JSON; raises InputError with everything that is wrong."""
    source = files.open_source(path, stdin or sys.stdin.buffer)
    if isinstance(source, Fault):
        raise InputError(source)
    folder = pathlib.Path() if path == files.STANDARD_INPUT else pathlib.Path(path).parent
    return read_source(source, folder)


def read_source(source: Source, folder: pathlib.Path) -> Timeline:
    """The timeline in a source; files to apply are looked for in the folder."""
    found = list(files.documents_of(source))
    faults = [one for one in found if isinstance(one, Fault)]
    documents = [one for one in found if isinstance(one, Document)]
    if not faults and len(documents) != 1:
        faults = [source.fault(f"expected one timeline, got {len(documents)} documents")]
    if faults:
        raise InputError(faults)
    return _Reader(documents[0], folder).timeline()


class _Reader:
    """Reads one document. `_fields` collects what is wrong."""

    def __init__(self, document: Document, folder: pathlib.Path) -> None:
        self._fields, self._folder = Fields(document), folder
        self._namespace = ""
        self._verbs: Mapping[str, Callable[[Any, str, Mapping[str, Any], str], Action | None]] = {
            **dict.fromkeys(NODE_VERBS, self._node_action),
            "scale": self._scale,
            "restart": self._restart,
            "apply": self._apply,
            "delete": self._delete,
            "relabel": self._relabel,
            "taint": self._taint,
            "load": self._load,
            "rebalance": self._rebalance,
        }

    def timeline(self) -> Timeline:
        fields, document = self._fields, self._fields.document
        root = document.locate().root
        self._check_head(root)
        top = fields.mapping(root, "", _TOP)
        self._namespace = fields.text(top["namespace"], "namespace") if "namespace" in top else ""
        steps = self._steps(top.get("steps"))
        lasts = fields.seconds(top["lasts"], "lasts") if "lasts" in top else None
        last = max((step.until or step.at for step in steps), default=0.0)
        last = max([last, *(s.at + a.over for s in steps for a in s.actions if isinstance(a, Load))])
        if lasts is not None:
            for step in steps:
                if step.at > lasts:
                    fields.fault(
                        f"{step.path}.at", f"it is after the end: the timeline lasts {written_duration(lasts)}"
                    )
        times, times_of = self._timing(top.get("timing"))
        found = Timeline(
            document=document,
            steps=steps,
            lasts=last if lasts is None else lasts,
            about=fields.text(top["about"], "about") if "about" in top else "",
            seed=fields.text(top["seed"], "seed") if "seed" in top else "",
            namespace=self._namespace,
            times=times,
            times_of=times_of,
            failures=self._failures(top.get("failures")),
            enforcement=self._enforcement(top.get("enforcement")),
        )
        if fields.faults:
            raise InputError(fields.faults)
        return found

    def _check_head(self, root: Mapping[str, Any]) -> None:
        if root.get("kind", KIND) != KIND:
            self._fields.fault("kind", f"expected {KIND}, got {shown(root['kind'])}")
        if root.get("apiVersion", API_VERSION) != API_VERSION:
            self._fields.fault("apiVersion", f"expected {API_VERSION}, got {shown(root['apiVersion'])}")
        if not any(root.get(name) for name in ("steps", "failures", "lasts")):
            self._fields.fault("", "expected `steps`, got nothing")

    # Steps

    def _steps(self, value: Any) -> list[Step]:
        fields, found = self._fields, list[Step]()
        if value is not None and not isinstance(value, list):
            fields.fault("steps", f"expected a list, got {shown(value)}")
            return []
        for item, path in fields.items(value, "steps"):
            step = self._step(item, path)
            if step is None:
                continue
            has_time = isinstance(item, dict) and parse_duration(item.get("at")) is not None
            if found and has_time and step.at < found[-1].at:
                before = f"{written_duration(step.at)} is before {written_duration(found[-1].at)} of the step above"
                fields.fault(f"{path}.at", f"times go back: {before}")
            found.append(step if has_time or not found else msgspec.structs.replace(step, at=found[-1].at))
        return found

    def _step(self, value: Any, path: str) -> Step | None:
        fields = self._fields
        written = fields.mapping(value, path, _STEP)
        if not isinstance(value, dict):
            return None
        if "at" not in written:
            fields.fault(path, "expected the time of the step in `at`, got nothing")
        at = fields.seconds(written["at"], f"{path}.at") if "at" in written else 0.0
        every = fields.seconds(written["every"], f"{path}.every") if "every" in written else None
        until = fields.seconds(written["until"], f"{path}.until") if "until" in written else None
        if every is not None and every < 1:
            fields.fault(f"{path}.every", f"expected 1s or more, got {shown(written['every'])}")
        if until is not None and until < at:
            fields.fault(f"{path}.until", f"it is before the step, which is at {written_duration(at)}")
        actions = [
            self._verbs[verb](written[verb], f"{path}.{verb}", written, verb) for verb in written if verb in self._verbs
        ]
        expected = expectation_reader.read(written.get("expect"), f"{path}.expect", fields, self._namespace)
        if not any(verb in written for verb in VERBS) and value.keys() <= set(_STEP):
            fields.fault(path, f"it does nothing: expected one of {', '.join(VERBS)}")
        if "over" in written and "load" not in written:
            fields.fault(f"{path}.over", "it is for the verb load, which the step does not have")
        if until is not None and every is None and not expected:
            fields.fault(f"{path}.until", "it is for `every` or `expect`, which the step does not have")
        return Step(
            at=at,
            path=path,
            every=every,
            until=until,
            actions=tuple(one for one in actions if one is not None),
            expectations=tuple(expected),
        )

    def _node_action(self, value: Any, path: str, _: Mapping[str, Any], verb: str) -> Action:
        return NodeAction(path=path, verb=verb, nodes=self._fields.nodes(value, path))

    def _named(self, value: Any, path: str) -> Named | None:
        return self._fields.named(value, path, self._namespace)

    def _by_name(self, value: Any, path: str) -> list[tuple[Named, Any, str]]:
        """The entries of a mapping by objects, with their paths."""
        found = []
        for name, item in self._fields.mapping(value, path).items():
            at = f"{path}[{name}]"
            one = self._named(name, at)
            if one is not None:
                found.append((one, item, at))
        if isinstance(value, dict) and not value:
            self._fields.fault(path, "expected at least one object, got nothing")
        return found

    def _list(self, value: Any, path: str) -> tuple[Named, ...]:
        found = [self._named(item, at) for item, at in self._fields.items(value, path)]
        if not found:
            self._fields.fault(path, "expected at least one object, got nothing")
        return tuple(one for one in found if one is not None)

    def _scale(self, value: Any, path: str, *_: Any) -> Action:
        entries = [(one, self._fields.whole(n, at)) for one, n, at in self._by_name(value, path)]
        return Scale(path=path, replicas=tuple(entries))

    def _restart(self, value: Any, path: str, *_: Any) -> Action:
        return Restart(path=path, workloads=self._list(value, path))

    def _delete(self, value: Any, path: str, *_: Any) -> Action:
        named = self._list(value, path)
        for one in named:
            if not one.kind:
                self._fields.fault(one.path, f"expected KIND/NAME, got {shown(one.text)}")
        return Delete(path=path, objects=named)

    def _relabel(self, value: Any, path: str, *_: Any) -> Action:
        found = []
        for one, labels, at in self._by_name(value, path):
            if one.kind not in _RELABELLED:
                expected = ", ".join(f"{kind.lower()}/NAME" for kind in _RELABELLED)
                self._fields.fault(at, f"expected {expected}, got {shown(one.text)}")
            read = {
                key: None if text is None else self._fields.text(text, f"{at}[{key}]")
                for key, text in self._fields.mapping(labels, at).items()
            }
            found.append((one, read))
        return Relabel(path=path, objects=tuple(found))

    def _taint(self, value: Any, path: str, *_: Any) -> Action:
        found = []
        for name, taints in self._fields.mapping(value, path).items():
            at = f"{path}[{name}]"
            node = self._fields.node(name, at)
            changes = [self._taint_change(text, place) for text, place in self._fields.items(taints, at)]
            if node is not None:
                found.append((node, at, tuple(one for one in changes if one is not None)))
        return TaintNodes(path=path, nodes=tuple(found))

    def _taint_change(self, value: Any, path: str) -> TaintChange | None:
        """As for kubectl taint: KEY=VALUE:EFFECT, KEY:EFFECT-, KEY-."""
        text = value if isinstance(value, str) else ""
        removes, text = text.endswith("-"), text.removesuffix("-")
        label, colon, effect = text.partition(":")
        key, _, written = label.partition("=")
        is_effect = effect in _EFFECTS if colon else removes
        if not key or not is_effect:
            effects = ", ".join(_EFFECTS)
            self._fields.fault(path, f"expected KEY[=VALUE]:EFFECT or KEY[:EFFECT]- ({effects}), got {shown(value)}")
            return None
        return TaintChange(WireTaint(key=key, value=written, effect=effect), removes)

    def _load(self, value: Any, path: str, written: Mapping[str, Any], _: str) -> Action:
        over_path = f"{path.rpartition('.')[0]}.over"
        over = self._fields.seconds(written["over"], over_path) if "over" in written else 0.0
        curves = []
        for one, points, at in self._by_name(value, path):
            read = tuple(self._fields.number(point, place) for point, place in self._fields.items(points, at))
            if not read:
                self._fields.fault(at, "expected a number of replicas, or a list of them, got nothing")
            elif len(read) > 1 and not over:
                self._fields.fault(at, "a curve needs the time that it takes: add `over` to the step")
            curves.append((one, read))
        return Load(path=path, curves=tuple(curves), over=over)

    def _rebalance(self, value: Any, path: str, *_: Any) -> Action:
        options = self._fields.mapping({} if value is True else value, path, ("maxMoves",))
        most = self._fields.whole(options["maxMoves"], f"{path}.maxMoves", 1) if "maxMoves" in options else 5
        return Rebalance(path=path, max_moves=most)

    # Manifests

    def _apply(self, value: Any, path: str, *_: Any) -> Action:
        paths, written = [], []
        for item, at in self._fields.items(value, path):
            if isinstance(item, str):
                paths.append(str(self._folder / item))
            elif isinstance(item, dict):
                line = self._fields.document.fault("", at).line
                written.append(Source(f"{self._fields.document.file}:{line}", msgspec.json.encode(item)))
            else:
                self._fields.fault(at, f"expected a file or an object, got {shown(item)}")
        if value is None or value == []:
            self._fields.fault(path, "expected a file or an object, got nothing")
        if not paths and not written:
            return Apply(path=path, objects=())
        try:
            return Apply(path=path, objects=applied_manifests.read(paths, written, self._namespace))
        except InputError as error:
            self._fields.faults.extend(error.faults)
            return Apply(path=path, objects=())

    # The rest

    def _timing(self, value: Any) -> tuple[PodTimes, list[tuple[Named, PodTimes]]]:
        if value is None:
            return PodTimes(), []
        written = self._fields.mapping(value, "timing", (*_TIMING, "of"))
        times = self._pod_times(written, "timing", PodTimes())
        of = [
            (one, self._pod_times(self._fields.mapping(item, at, _TIMING), at, times))
            for one, item, at in self._by_name(written.get("of") or {"": 0}, "timing.of")
        ] if written.get("of") else []  # fmt: skip
        return times, of

    def _pod_times(self, written: Mapping[str, Any], path: str, default: PodTimes) -> PodTimes:
        read = {name: self._fields.seconds(written[name], f"{path}.{name}") for name in _TIMING if name in written}
        return msgspec.structs.replace(default, **read)

    def _failures(self, value: Any) -> list[Failures]:
        found = []
        for item, path in self._fields.items(value, "failures"):
            written = self._fields.mapping(item, path, ("nodes", "rate", "lasts", "from", "until"))
            nodes: tuple[tuple[NodeSelection, str], ...] = ()
            if written.get("nodes", "all") != "all":
                nodes = self._fields.nodes(written["nodes"], f"{path}.nodes")
            lasts = [
                self._fields.seconds(one, at) for one, at in self._fields.items(written.get("lasts"), f"{path}.lasts")
            ]
            if not 1 <= len(lasts) <= 2 or lasts[0] > lasts[-1]:
                self._fields.fault(f"{path}.lasts", "expected a time, or the shortest and the longest")
                lasts = [0.0]
            found.append(
                Failures(
                    path=path,
                    nodes=nodes,
                    rate=self._rate(written.get("rate"), f"{path}.rate"),
                    shortest=lasts[0],
                    longest=lasts[-1],
                    since=self._fields.seconds(written["from"], f"{path}.from") if "from" in written else 0.0,
                    until=self._fields.seconds(written["until"], f"{path}.until") if "until" in written else None,
                )
            )
        return found

    def _rate(self, value: Any, path: str) -> float:
        """Failures in a second, written as N/UNIT."""
        number, slash, unit = value.partition("/") if isinstance(value, str) else ("", "", "")
        seconds = _RATE_UNITS.get(unit) or parse_duration(unit) if unit else None
        try:
            rate = float(number) / seconds if slash and seconds else -1.0
        except ValueError:
            rate = -1.0
        if not 0 < rate <= 1:
            self._fields.fault(
                path, f"expected failures per time, such as 6/d, at most one a second, got {shown(value)}"
            )
            return 0.0
        return rate

    def _enforcement(self, value: Any) -> TimelineEnforcement | None:
        if value is None or value is False:
            return None
        names = ("affinityGrace", "antiAffinityGrace", "perMinute", "atOnce", "onlyIfPlaceable", "grant")
        fields, path = self._fields, "enforcement"
        written = fields.mapping({} if value is True else value, path, names)

        def read(name: str, make: Callable[[Any, str], Any]) -> Any:
            return make(written[name], f"{path}.{name}") if name in written else None

        granted = [fields.text(one, at) for one, at in fields.items(written.get("grant"), f"{path}.grant")]
        return TimelineEnforcement(
            affinity_grace=read("affinityGrace", fields.seconds),
            anti_affinity_grace=read("antiAffinityGrace", fields.seconds),
            per_minute=read("perMinute", lambda n, at: fields.whole(n, at, 1)),
            at_once=read("atOnce", lambda n, at: fields.whole(n, at, 1)),
            only_if_placeable=read("onlyIfPlaceable", fields.flag),
            granted=tuple(granted),
        )
