"""Options with a bad value, and options that have no effect beside others, are usage errors."""

import pytest


@pytest.mark.parametrize("words, message", [
    (["violations", "--affinity-grace", "foo"], "'--affinity-grace': expected a duration such as 30s"),
    (["place", "--request-timeout", "foo"], "'--request-timeout': expected a duration such as 30s"),
    (["rebalance", "--timeout", "1y"], "'--timeout': expected a duration such as 30s"),
    (["run", "--metrics-bind-address", "foo"], "'--metrics-bind-address': expected an address such as"),
    (["run", "--health-probe-bind-address", "a:99999"], "'--health-probe-bind-address': expected an address"),
    (["run", "--webhook-bind-address", "here"], "'--webhook-bind-address': expected an address"),
    (["run", "--enforce-affinity-grace", ""], "'--enforce-affinity-grace': expected a duration"),
    (["run", "--audit-interval", "0s"], "'--audit-interval': expected a duration above 0, got '0s'"),
    (["run", "--leader-elect-retry-period", "0"], "'--leader-elect-retry-period': expected a duration above 0"),
    (["place", "--as", "a\nb"], "'--as': expected a name, got 'a\\nb'"),
    (["place", "-n", ""], "'-n' / '--namespace': expected a name, got an empty value"),  # an unset variable
    (["snapshot", "-n", ""], "'-n' / '--namespace': expected a name, got an empty value"),
    (["run", "--scheduler-name", ""], "'--scheduler-name': expected a name, got an empty value"),
])  # fmt: skip
def test_a_bad_value_is_reported_under_the_name_of_its_option(words, message, run):
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("words, message", [
    (["audit", "-f", "nodes.yaml", "--ha", "--profile", "scs-0213"], "give one of them"),
    (["audit", "-f", "nodes.yaml", "--profile", "scs-0213", "--ha"], "give one of them"),
    (["audit", "-f", "nodes.yaml", "--hosting-namespace", "x"], "give --hosting too"),
    (["audit", "-f", "nodes.yaml", "--hash-key-file", "key"], "`audit labels`"),
    (["audit", "labels", "--inventory", "x", "-o", "junit"], "manifests with -o json or yaml"),
    (["place", "-f", ".", "--replicas", "3", "--explain"], "--replicas only counts"),
])  # fmt: skip
def test_an_option_without_effect_is_an_error(words, message, run, scene):
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_same_profile_twice_is_no_contradiction(run, scene):
    assert run("audit", "-f", "nodes.yaml", "--ha", "--profile", "ha").exit_code in (0, 1)


def test_a_flag_wins_over_a_profile_from_a_variable(run, scene):
    done = run("audit", "-f", "nodes.yaml", "--ha", BAYPLAN_AUDIT_PROFILE="scs-0213")
    assert done.exit_code in (0, 1)
    assert "fd-" in done.stdout


@pytest.mark.parametrize("address", ["http://[", "https://a:b", "ftp://a"])
def test_a_bad_server_address_is_an_error(address, run):
    result = run("place", "--server", address, HOME="/nonexistent", KUBECONFIG="")
    assert result.exit_code == 2
    assert "--server: expected an address such as https://host:6443" in result.stderr


def test_a_key_that_is_not_text_is_an_error(run, scene):
    (scene / "inventory.yaml").write_text("a1: {host: x}\n")
    (scene / "key").write_bytes(b"\xff\xfe")
    result = run("audit", "labels", "--inventory", "inventory.yaml", "--hash-key-file", "key")
    assert (result.exit_code, result.stderr) == (2, "error: key: expected a key in UTF-8, got other bytes\n")


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: prod
contexts: [{name: prod, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
"""


@pytest.mark.parametrize("command", ["place", "violations", "rebalance", "quota", "audit", "snapshot"])
def test_the_current_context_is_named_but_not_read(command, run, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    result = run(command, KUBECONFIG=str(path))
    assert result.exit_code == 2
    assert result.stderr.strip().endswith("the current context of the kubeconfig is prod")
    path.write_text("kind: Config\ncontexts: [")
    assert run(command, KUBECONFIG=str(path)).stderr.strip().endswith("or a cluster with --context")
