"""Bad input always ends with exit code 2 (1 if `validate` could read it), the location of the fault, and no traceback."""

import pytest

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: i}]}\n"
MISSPELT = """\
apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  containers: [{name: c, image: i}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologykey: zone
"""
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
FILES = {
    "empty.yaml": (b"", "empty"),
    "binary.yaml": (b"\x7fELF\0\0\0", "binary"),
    "latin.yaml": (b"kind: Pod # caf\xe9\n", "UTF-8"),
    "bomb.yaml": (BOMB.encode(), "bomb.yaml"),
    "double-key.yaml": (POD.replace("kind: Pod\n", "kind: Pod\nkind: Pod\n").encode(), "kind"),
    "double-object.yaml": (f"{POD}---\n{POD}".encode(), "twice"),
    "misspelt.yaml": (MISSPELT.encode(), "did you mean topologyKey?"),
    "torn.json": (b'{"kind": "Pod", ', "torn.json"),
    "kind.yaml": (POD.replace("Pod", "pod").encode(), "did you mean Pod?"),
}


READABLE = ("double-object.yaml", "misspelt.yaml", "kind.yaml")


@pytest.mark.parametrize("command", [("place",), ("explain", "pod/x"), ("validate",)])
@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_named_and_ends_with_2(name, command, run, tmp_path):
    content, message = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    result = run(*command, "-f", path)
    assert result.exit_code == (1 if command == ("validate",) and name in READABLE else 2)
    assert name in result.output
    assert message in result.output
    assert "Traceback" not in result.output


READABLE = ("double-object.yaml", "misspelt.yaml", "kind.yaml")


@pytest.mark.parametrize("command", [("place",), ("explain", "pod/x"), ("validate",)])
def test_a_missing_file_ends_with_2(command, run, tmp_path):
    result = run(*command, "-f", tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert "no such file" in result.output


def test_an_empty_directory_ends_with_2(run, tmp_path):
    (tmp_path / "empty").mkdir()
    result = run("place", "-f", tmp_path / "empty")
    assert result.exit_code == 2
    assert "no .yaml, .yml or .json file" in result.stderr


def test_every_fault_has_its_own_line(run, tmp_path):
    (tmp_path / "a.yaml").write_text(MISSPELT)
    (tmp_path / "b.yaml").write_bytes(b"\0")
    result = run("place", "-f", tmp_path, "-f", tmp_path / "none.yaml")
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("error: ") for line in lines)
    assert any("a.yaml:9, Pod default/x: spec.affinity" in line for line in lines)


@pytest.mark.parametrize("words, message", [
    ((), "Usage"),
    (("plcae",), "Did you mean 'place'?"),
    (("place",), "nothing to read"),
    (("place", "-f", "x", "-o", "xml"), "'xml' is not one of"),
    (("place", "-f", "x", "-l", "a b"), "expected requirements such as app=web"),
    (("place", "-f", "x", "--replicas", "0"), "above 0 or max"),
    (("place", "-f", "x", "--replicas", "many"), "above 0 or max"),
    (("place", "-f", "x", "--switch", "on"), "expected NAME=VALUE"),
    (("place", "-f", "x", "--switch", "firstPodPerTrem=true"), "did you mean firstPodPerTerm?"),
    (("place", "-f", "x", "--switch", "firstPodPerTerm=1"), "firstPodPerTerm=true or firstPodPerTerm=false"),
    (("explain", "-f", "x"), "Missing argument 'KIND/NAME'"),
    (("explain", "pod/", "-f", "x"), "expected KIND/NAME"),
    (("decide", "everything"), "'everything' is not one of"),
    (("explain-rule", "tiant"), "did you mean taint?"),
    (("completion", "tcsh"), "'tcsh' is not one of"),
])  # fmt: skip
def test_a_bad_command_line_ends_with_2(words, message, run):
    result = run(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize("words", [("--context", "prod"), ("--server", "https://127.0.0.1:1")])
def test_an_unreachable_cluster_ends_with_3(words, run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = run("place", *words)
    assert result.exit_code == 3
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert words[1].removeprefix("https://") in line
