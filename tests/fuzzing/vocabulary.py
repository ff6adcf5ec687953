"""Values to put into documents: those that seeds have in a field, those that a type declares, and hostile ones."""

import json

import msgspec

from bayplan.reading import checking
from bayplan.validating import structure
from bayplan.validating.structure import (
    Choice,
    Either,
    ListOf,
    MapOf,
    Null,
    Number,
    Quantity,
    Record,
    Row,
    Truth,
    Whole,
)
from bayplan.wire import kinds

RAW = "\ue000"  # encloses a text that is written without quotes
MAX_DEPTH = 5


def raw(text):
    """A token that Python's encoders cannot write: a huge integer, NaN."""
    return f"{RAW}{text}{RAW}"


INTEGERS = (
    0,
    1,
    -1,
    7,
    100,
    101,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    10**400,
)
TOKENS = tuple(
    map(raw, ("NaN", "-Infinity", "1e999", "-0", "9" * 5000, "1e-400", "01", ".inf", "0x1F", "0o17", "1_000"))
)
FLOATS = (0.5, -0.5, 7.0, 1e18, 1e19, 1e300, 5e-324, -0.0)
QUANTITIES = (
    "0", "1", "500m", "1.5Gi", "-1", "-5Gi", "1e3", "1E3", "1e100", "1e-100", "1e101", "9" * 40, "9223372036854775807",
    "9223372036854775808", "9" * 25 + "Ei", "0.0000000001", "1n", ".5", "5.", "+5", "1KI", "Ki", "1e", "NaN", "inf", "9" * 400, "1" + "0" * 5000,
)  # fmt: skip
TIMES = (
    "2026-01-05T04:07:00Z", "2262-04-11T23:47:16Z", "2262-04-12T00:00:00Z", "1677-09-21T00:00:00Z", "0001-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59Z", "2026-02-31T00:00:00Z",
    "2026-01-05T04:07:00.123456789123Z", "2026-01-05T04:07:00+99:99", "0001-01-01T00:00:00+14:00", "2026-01-05", "24:00", "now",
    "\uff12\uff10\uff12\uff16-01-05T04:07:00Z", "2026-13-01T00:00:00Z", "-001-01-01T00:00:00Z", "2026-01-05T04:07:60Z",
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "a", "-", ".", "/", "a/", "/a", "a/b/c", "A", "_", "*", "true", "null", "~", "0", "1.0", "007", "1e3", "=", "<<",
    "--flag", "--as=root", "-", "[x](http://y)", "![x](http://y/z.png)", "<img src=x onerror=alert(1)>", "<script>", "&amp;", "|", "`", "a|b",
    "\x00", "\x1b[31mred", "\x1b]0;title\x07", "\x07", "\x7f", "\x9b31m", "\r", "\t", "\u2028", "\u202e", "\ufeff", "\ufffe", "\ud800", "\udc00x",
    "é", "💥", "日本", "ﬁ", "İ", "a" * 63, "a" * 64, "a" * 253, "a" * 300, "%s%n", "{}", "[]", "{", "[1", "{'a': 1}", '{"a":[}', "../../etc", "$(id)",
    "- a", "a: b", "a: [", "&a *a", "!!python/name:os.system", "{<<: *x}", "? a", "'", '"', "\\", "kubernetes.io/hostname", "default", "kube-system",
    "In", "NotIn", "Exists", "Gt", "Lt", "In ", "Always", "None", "5%", "100%", "-5%", "101%", "9" * 30 + "%", "1.36", "10.0.0.300", "::", "a" * 20_000,
)  # fmt: skip
CONTAINERS = (
    [], {}, [[]], [{}], [None], {"": None}, {"a": {}}, [1, "a", None, {}], {"": ""}, {"a": 1}, ["", ""], ["a", "a"],
    {"matchLabels": None}, {"matchExpressions": [{}]}, {"matchExpressions": [{"key": "a", "operator": "In"}]},
    {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["9" * 40]}]},
)  # fmt: skip
HOSTILE = (INTEGERS, TOKENS, FLOATS, QUANTITIES, TIMES, TEXTS, TEXTS, CONTAINERS, (None,), (True, False))

API_VERSIONS = (
    "v1", "apps/v1", "batch/v1", "foreign.example/v1", "v2", "", "/", "/v1", "v1/", "a/b/c", "apps/v1beta1", "extensions/v1beta1",
    "policy/v1beta1", "policy.karmada.io/v1alpha1", "cluster.karmada.io/v1alpha1", "work.karmada.io/v1alpha1", "work.karmada.io/v1alpha2",
    "storage.k8s.io/v1", "bayplan.io/v1alpha1", "kubescheduler.config.k8s.io/v1", "core/v1", "V1", " v1",
)  # fmt: skip
KINDS = (
    *sorted({row.kind for row in kinds.KINDS.values()}), *sorted({f"{row.kind}List" for row in kinds.KINDS.values()})[::4],
    "List", "pod", "Pods", "Deploymnet", "", "PodGroup", "Rollout",
)  # fmt: skip
ANNOTATIONS = (
    "bayplan.io/affinity", "bayplan.io/workload-labels", "bayplan.io/placement", "bayplan.io/group", "bayplan.io/group-min",
    "bayplan.io/group-topology", "bayplan.io/group-affinity", "scheduler.alpha.kubernetes.io/affinity",
    "propagationpolicy.karmada.io/name", "propagationpolicy.karmada.io/namespace",
    "cluster-autoscaler.kubernetes.io/safe-to-evict", "kubectl.kubernetes.io/last-applied-configuration",
)  # fmt: skip


def nested(chance):
    """A value of more levels than a document has."""
    depth = chance.choice((20, 150, 250, 1200, 5000))
    inner = chance.choice((None, 1, "a"))
    if chance.random() < 0.5:
        return raw("[" * depth + json.dumps(inner) + "]" * depth)
    return raw('{"a":' * depth + json.dumps(inner) + "}" * depth)


def hostile(chance):
    """Any value, mostly one that no field expects."""
    if chance.random() < 0.01:
        return nested(chance)
    return chance.choice(chance.choice(HOSTILE))


class Vocabulary:
    """What the seeds have: values by field name, and fields by the name of the field above them."""

    def __init__(self, documents):
        self.values, self.fields = {}, {}
        self.shapes = [shape for shape in checking.shapes().values() if isinstance(shape, Record) and shape.fields]
        for row in kinds.KINDS.values():
            for wire_type in {row.wire_type, row.audited_type} - {None}:
                self._collect(structure.shape_of(wire_type), "", set())
        for shape in self.shapes:
            self._collect(shape, "", set())
        self._shape_of = {}
        for shape in self.shapes:
            for name, field in shape.fields.items():
                self._shape_of.setdefault(name, []).append(field)
        for document in documents:
            self._learn(document, "")
        self.names = sorted(self.values)
        self._known = {above: sorted(names) for above, names in self.fields.items()}

    def _learn(self, value, name):
        if isinstance(value, list):
            for item in value:
                self._learn(item, name)
        if isinstance(value, dict):
            for key, item in value.items():
                self.fields.setdefault(name, set()).add(key)
                self._learn(item, key)
        known = self.values.setdefault(name, [])
        if len(known) < 40 and value not in known:
            known.append(value)

    def _collect(self, shape, name, seen):
        if id(shape) in seen:
            return
        seen.add(id(shape))
        match shape:
            case Record(fields=fields):
                self.fields.setdefault(name, set()).update(fields)
                for key, inner in fields.items():
                    self._collect(inner, key, seen)
            case ListOf(item=item) | MapOf(value=item):
                self._collect(item, name, seen)
            case Either(shapes=shapes) | Row(shapes=shapes):
                for one in shapes:
                    self._collect(one, name, seen)

    def names_in(self, above):
        """The fields that a mapping has under this name, as far as they are known."""
        return self._known.get(above) or self.names

    def value(self, name, chance):
        """A value that fits the field, if the field is known."""
        known, shapes = self.values.get(name), self._shape_of.get(name)
        if shapes and (not known or chance.random() < 0.5):
            return self.drawn(chance.choice(shapes), name, chance)
        return chance.choice(known) if known else hostile(chance)

    def object(self, chance):
        """An object of a kind, with some of the fields that its type declares."""
        row = chance.choice([row for row in kinds.KINDS.values() if row.wire_type or row.audited_type])
        wire_type = chance.choice([one for one in (row.wire_type, row.audited_type) if one])
        shape = checking.shapes().get(row.kind) if chance.random() < 0.5 else None
        found = self.drawn(shape or structure.shape_of(wire_type), "", chance)
        metadata = found.get("metadata") if isinstance(found.get("metadata"), dict) else {}
        return {
            **found,
            "apiVersion": row.api_version,
            "kind": row.kind,
            "metadata": {**metadata, "name": chance.choice("abcd")},
        }

    def drawn(self, shape, name, chance, depth=0):
        """A value of this shape; texts are those that seeds have in a field of this name."""
        match shape:
            case Record(fields=fields, required=required):
                share = (0.35, 0.3, 0.25, 0.2, 0.1, 0.0)[min(depth, MAX_DEPTH)]
                return {
                    key: self.drawn(field, key, chance, depth + 1)
                    for key, field in fields.items()
                    if key in required or chance.random() < share
                }
            case MapOf(value=value):
                keys = [self._word("labels", chance) for _ in range(chance.choice((0, 1, 2)))]
                return {key: self.drawn(value, name, chance, depth + 1) for key in keys}
            case ListOf(item=item):
                return [self.drawn(item, name, chance, depth + 1) for _ in range(chance.choice((0, 1, 1, 2)))]
            case Row(shapes=shapes):
                return [self.drawn(one, name, chance, depth + 1) for one in shapes]
            case Either(shapes=shapes):
                return self.drawn(chance.choice(shapes), name, chance, depth)
            case Whole(least=least, most=most):
                drawn = chance.choice(INTEGERS[:8])
                return drawn if least is None else max(least, min(drawn, drawn if most is None else most))
            case Number():
                return chance.choice(FLOATS)
            case Truth():
                return chance.random() < 0.5
            case Null():
                return None
            case Choice(texts=texts):
                return chance.choice(texts)
            case Quantity():
                return chance.choice(QUANTITIES)
        return self._word(name, chance)

    def _word(self, name, chance):
        known = [value for value in self.values.get(name, ()) if isinstance(value, str)]
        if name == "labels":
            known = sorted(self.fields.get("labels", ())) or known
        if name.lower().endswith(("time", "timestamp")):
            return chance.choice(TIMES)
        return chance.choice(known) if known and chance.random() < 0.9 else chance.choice(TEXTS)


def encoded_length(value):
    return len(msgspec.json.encode(value))
