"""Documents as the text of a file, in the ways in which people and tools write them, and damage to that text."""

import json
import re

import yaml

from fuzzing.vocabulary import RAW

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_RAW_JSON = re.compile(r'"\\ue000((?:[^"\\]|\\[^u])*)\\ue000"')
_RAW_YAML = re.compile(f"['\"]?(?:{RAW}|\\\\uE000)(.*?)(?:{RAW}|\\\\uE000)['\"]?", re.DOTALL)
_BROKEN_UTF8 = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\x00",
    b"\x0b",
)
_YAML_LINES = (
    "<<: *id001", "<<: {a: b}", "<<: [*id001, {}]", "<<: 5", "x: &a [*a]", "x: &id001 {a: 1}", "y: *id001", "y: *nowhere", "? [a, b]", "? {a: b}\n: c",
    "!!binary |\n  aGk=", "x: !!python/object/apply:os.getcwd []", "x: !!int a", "x: !!float 1", "x: !!set {a}", "x: !!timestamp 2026-01-01", "x: !<tag> a",
    "%YAML 9.9", "%TAG ! tag:x,2000:", "---", "...", "\t- a", "x: |\n    a\n  b", "x: >-\n  a\n", "# comment", "null: a", "~: a", "1: a", "1.5: b",
    "true: a", "[]: a", "x: 2026-01-01", "x: 0b11", "x: 1:30", "x: 0o7", "x: yes", "x: .nan", "x: -.inf", "items:", "items: []", "items: 5", "kind: List",
    "kind: PodList", "- a", "- - - a", "{", "}", "[", "x: @a", "x: `a`", "x: 'a", 'x: "\\ud800"', 'x: "\\x00"', "x: " + "9" * 5000, "x: " + "1" * 400 + ".5",
)  # fmt: skip
_JSON_TOKENS = (
    "{", "}", "[", "]", ",", ":", '"', "null", "NaN", "-", "1e999", "\\u0000", "\\ud800", "\\", "//", "'", "\t", "\x01", "9" * 400, '"a":1,', '{"a":1,"a":2}',
    '"kind":"Pod",', '"items":[],', '"items":5,', '"metadata":null,',
)  # fmt: skip


def as_json(document):
    return _without_raw_marks(_json(document))


def as_indented_json(document):
    return _without_raw_marks(_json(document, indent=2))


def as_json_lines(documents):
    return _without_raw_marks("".join(_json(one) + "\n" for one in _listed(documents)))


def as_json_list(documents):
    return as_indented_json(
        {"apiVersion": "v1", "items": _listed(documents), "kind": "List", "metadata": {"resourceVersion": ""}}
    )


def as_yaml(document):
    return _RAW_YAML.sub(r"\1", _yaml(document))


def as_yaml_documents(documents):
    return _RAW_YAML.sub(r"\1", "---\n".join(map(_yaml, _listed(documents))))


def as_yaml_dump(documents):
    """As `kubectl get -o yaml` writes a list, which a reader of its own reads."""
    content = {"apiVersion": "v1", "items": _listed(documents), "kind": "List", "metadata": {"resourceVersion": ""}}
    return _RAW_YAML.sub(r"\1", _yaml(content))


# Of files with several objects, of files with one, and of JSON lines.
SEVERAL = (as_json_lines, as_json_list, as_yaml_documents, as_yaml_documents, as_yaml_dump, as_yaml_dump)
ONE = (as_json, as_indented_json, as_yaml, as_yaml)
LINES = (as_json_lines,)
JSON = (as_json, as_indented_json)


def encoded(text):
    return text.encode("utf-8", "surrogatepass")


def damaged(data, chance):
    """The bytes with a small change that no structure explains."""
    text = data.decode("utf-8", "surrogatepass")
    is_json = text.lstrip()[:1] in "{["
    match chance.randrange(9):
        case 0:
            return data[: chance.randint(0, len(data))]
        case 1:
            return _inserted(data, chance.choice(_BROKEN_UTF8), chance)
        case 2:
            return (
                chance.choice(
                    (b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b" ", b"---\n", b"#\n", b"\xef\xbb\xbf\xef\xbb\xbf")
                )
                + data
            )
        case 3:
            return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-32")), "surrogatepass")
        case 4 | 5 if not is_json:
            return encoded(_with_line(text, chance))
        case 4 | 5:
            return _inserted(data, encoded(chance.choice(_JSON_TOKENS)), chance)
        case 6:
            start = chance.randint(0, len(data))
            return data[:start] + data[start + chance.randint(1, 40) :]
        case 7:
            lines = text.split("\n")
            start = chance.randrange(len(lines))
            return encoded(
                "\n".join([*lines[: start + 1], *lines[start : start + chance.randint(1, 5)], *lines[start + 1 :]])
            )
    return data.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\n ")))


def _json(value, indent=None):
    return json.dumps(value, indent=indent, separators=(",", ":") if indent is None else None, ensure_ascii=True)


def _yaml(value):
    return yaml.dump(_writable(value), Dumper=_Dumper, sort_keys=True, width=10**6, allow_unicode=True)


def _writable(value):
    """YAML has no text for surrogates: they are written as the escape that JSON has."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        copied = {_writable(key): _writable(inner) for key, inner in value.items()}
        return value if copied == value else copied
    if isinstance(value, list):
        copied = list(map(_writable, value))
        return value if copied == value else copied
    return value


def _without_raw_marks(text):
    return _RAW_JSON.sub(lambda found: json.loads(f'"{found[1]}"') if "\\" in found[1] else found[1], text)


def _listed(documents):
    return documents if isinstance(documents, list) else [documents]


def _inserted(data, new, chance):
    place = chance.randint(0, len(data))
    return data[:place] + new + data[place:]


def _with_line(text, chance):
    lines = text.split("\n")
    place = chance.randint(0, len(lines))
    near = lines[min(place, len(lines) - 1)]
    indent = near[: len(near) - len(near.lstrip(" -"))].replace("-", " ")
    return "\n".join([*lines[:place], indent + chance.choice(_YAML_LINES), *lines[place:]])
