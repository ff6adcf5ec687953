"""kubectl's output options: jsonpath, custom-columns, csv, --sort-by and --no-headers."""

import pytest

from bayplan.writing import field_paths

DOCUMENT = {
    "kind": "L",
    "items": [
        {"name": "a", "n": 2, "labels": {"a.b/c": "x"}, "on": ["n1", "n2"]},
        {"name": "b", "n": 10, "labels": {}, "on": []},
    ],
}


@pytest.mark.parametrize("template, text", [
    ("{.kind}", "L"),
    ("{.items[*].name}", "a b"),
    ("{.items[0].name}{.items[-1].name}", "ab"),
    ("{.items[0].on}", '["n1","n2"]'),
    ("{.items[0].labels['a.b/c']}", "x"),
    (r"{.items[0].labels.a\.b/c}", "x"),
    ('{range .items[*]}{.name}{"\\t"}{.n}{"\\n"}{end}', "a\t2\nb\t10\n"),
    ("{.items[*].labels.none}", ""),
    ("{.items[7].name}", ""),
    ("{range .items[*]}{range .on[*]}{@}{','}{end}{end}", "n1,n2,"),
    ("{$.kind} of {.items[0].n}", "L of 2"),
])  # fmt: skip
def test_a_template_is_filled_as_kubectl_fills_it(template, text):
    assert field_paths.filled(template, DOCUMENT) == text


@pytest.mark.parametrize("template", ["{.items[}", "{range .items}", "{end}", "{.a", "a}", "{.items[?(@.n==2)]}"])
def test_a_template_that_cannot_be_read_is_bad_usage(run, scene, template):
    result = run("place", "-f", ".", "-o", f"jsonpath={template}")
    assert result.exit_code == 2
    assert result.stdout == ""


def test_place_has_kubectls_outputs(run, scene):
    assert run("place", "-f", ".", "-o", "jsonpath={.items[*].name}").stdout == "web-2 db-0"
    columns = "custom-columns=POD:.name,NODE:.target"
    assert run("place", "-f", ".", "-o", columns).stdout.splitlines() == ["POD    NODE", "web-2  <none>", "db-0   b1"]
    assert run("place", "-f", ".", "-o", columns, "--no-headers", "--sort-by", ".target").stdout.splitlines() == [
        "web-2  <none>",
        "db-0   b1",
    ]
    lines = run("place", "-f", ".", "-o", "csv").stdout.splitlines()
    assert lines[0] == "NAMESPACE,NAME,NODE,OWNER,PRIORITY,SCORE,MESSAGE"
    assert lines[2].startswith("store,db-0,b1,,0,")


def test_tables_are_sorted_and_may_have_no_headers(run, scene):
    by_default = run("place", "-f", ".").stdout.splitlines()
    assert [line.split()[1] for line in by_default] == ["NAME", "web-2", "db-0"]
    found = run("place", "-f", ".", "--no-headers", "--sort-by", "NAME").stdout.splitlines()
    assert [line.split()[1] for line in found] == ["db-0", "web-2"]


def test_a_field_of_an_explanation_is_printed(run, scene):
    assert run("explain", "pod/db-0", "-f", ".", "-o", "jsonpath={.target}").stdout == "b1"


def test_numbers_are_sorted_as_numbers(run, scene):
    items = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}, namespace: x}}\nspec: {{priority: {n}, "
        "containers: [{name: c, image: i}]}\n"
        for n in (10, 9, 100)
    )
    (scene / "more.yaml").write_text(items)
    words = ("-n", "x", "-f", ".", "-o", "jsonpath={.items[*].priority}", "--sort-by", ".priority")
    assert run("place", *words).stdout == "9 10 100"


def test_an_input_without_nodes_gets_the_command_that_adds_them(run, scene):
    result = run("place", "-f", "web.yaml")
    assert "kubectl get nodes -o json > nodes.json, then -f nodes.json" in result.stderr
    assert "then --state nodes.json" in run("place", "--state", "db.yaml", "-f", "web.yaml").stderr


@pytest.mark.parametrize("output, by, problem", [
    ("table", "NODES", "expected one of NAMESPACE, NAME, NODE, MESSAGE, got NODES"),
    ("csv", ".nmae", "got .nmae"),
    ("json", ".nmae", "no item has the field .nmae"),
])  # fmt: skip
def test_what_cannot_be_sorted_by_is_a_usage_error(output, by, problem, run, scene):
    done = run("place", "-f", ".", "-o", output, "--sort-by", by)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--sort-by" in done.stderr
    assert problem in done.stderr
