import base64
import pathlib

import pytest
import yaml

from bayplan.errors import InputError
from bayplan.kube_api import connect, errors, kubeconfig, kubeconfig_files, transport
from bayplan.kube_api.access import ConnectOptions

CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()


def config(user=None, cluster=None, **more):
    """The smallest kubeconfig that works, with other fields in its cluster and user."""
    return {
        "current-context": "test",
        "clusters": [{"name": "here", "cluster": {"server": "https://10.0.0.1:6443"} | (cluster or {})}],
        "users": [{"name": "me", "user": {"token": "t"} if user is None else user}],
        "contexts": [{"name": "test", "context": {"cluster": "here", "user": "me"}}],
    } | more


@pytest.fixture
def write(tmp_path):
    def write(content, name="config"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
        return path

    return write


def find(*paths, context=None, **options):
    return kubeconfig.access_of(kubeconfig_files.load(paths), context, ConnectOptions(**options))


def test_a_minimal_kubeconfig(write):
    access = find(write(config()))
    assert (access.server, access.namespace, access.context_name) == ("https://10.0.0.1:6443", "default", "test")


def test_context_namespace_and_flags(write):
    contexts = [{"name": "other", "context": {"cluster": "here", "user": "me", "namespace": "shop"}}]
    path = write(config(contexts=contexts))
    assert find(path, context="other").namespace == "shop"
    assert find(path, context="other", namespace="bank").namespace == "bank"


def test_the_first_file_that_has_an_entry_provides_all_of_it(write):
    first = write(config(cluster={"server": "https://one"}) | {"current-context": ""}, "first")
    second = write(
        config(cluster={"server": "https://two", "tls-server-name": "x"}, user={"username": "a", "password": "b"})
        | {"contexts": [{"name": "more", "context": {"cluster": "here", "user": "me"}}], "current-context": "more"},
        "second",
    )
    access = find(first, second)
    assert access.context_name == "more"  # the first file has none
    assert access.server == "https://one"
    assert access.trust.server_name == ""
    assert find(second, first, context="test").server == "https://two"
    assert find(write(config(), "third"), second).context_name == "test"


async def test_paths_are_relative_to_their_own_file(write, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "token").write_text("from-file\n")
    users = config(user={"tokenFile": "token"})
    nested = write(users | {"clusters": []}, "deep/users")
    clusters = write(config(cluster={"certificate-authority": "ca.pem"}) | {"users": []}, "clusters")
    access = find(nested, clusters)
    assert (await access.credentials.current()).authorization == "Bearer from-file"
    assert access.trust.authorities_file == str(tmp_path / "ca.pem")


@pytest.mark.parametrize("written", ["users: null\nclusters:\ncontexts: ~\n", "", "# nothing\n", "{}"])
def test_empty_files_add_nothing(write, written):
    assert find(write(written, "empty"), write(config())).context_name == "test"


@pytest.mark.parametrize("token", ["12345", "2024-01-01", "1e3", "0x1f"])
async def test_values_stay_as_written(write, token):
    text = yaml.safe_dump(config(user={"token": "TOKEN"})).replace("TOKEN", token)
    assert (await find(write(text)).credentials.current()).authorization == f"Bearer {token}"


BAD = {
    "broken syntax": ("kind: Config\nusers: a: b", ":2: invalid YAML: mapping values are not allowed in this context"),
    "no mapping": ("just text", ": expected a mapping, got a text"),
    "another kind": (config(kind="Pod"), ": kind: expected Config, got Pod"),
    "truth for text": (config(user={"token": True}), ": users[0].user.token: expected a text, got true or false"),
    "text for list": (config(user={"exec": {"args": "x"}}), ": users[0].user.exec.args: expected a list, got a text"),
    "nameless": (config(users=[{"user": {}}]), ": users[0].name: expected a text, got nothing"),
    "no such cluster": (config(clusters=[]), ": contexts[0].context.cluster: there is no cluster here"),
    "no such user": (config(users=[]), ": contexts[0].context.user: there is no user me"),
    "cluster not named": (
        config(contexts=[{"name": "test", "context": {"user": "me"}}]),
        ": contexts[0].context.cluster: expected the name of a cluster, got nothing",
    ),
    "no server": (
        config(cluster={"server": ""}),
        ": clusters[0].cluster.server: expected an address such as https://host:6443, got nothing",
    ),
    "server is no address": (
        config(cluster={"server": "ftp://x"}),
        ": clusters[0].cluster.server: expected an address such as https://host:6443, got ftp://x",
    ),
    "port is no number": (
        config(cluster={"server": "https://x:y"}),
        ": clusters[0].cluster.server: expected an address such as https://host:6443, got https://x:y",
    ),
    "authority twice": (
        config(cluster={"certificate-authority": "a", "certificate-authority-data": CA}),
        ": clusters[0].cluster.certificate-authority: certificate-authority-data is also set; only one is allowed",
    ),
    "authority and no checking": (
        config(cluster={"certificate-authority-data": CA, "insecure-skip-tls-verify": True}),
        ": clusters[0].cluster.insecure-skip-tls-verify: cannot be set together with a certificate authority",
    ),
    "no base64": (
        config(cluster={"certificate-authority-data": "§"}),
        ": clusters[0].cluster.certificate-authority-data: expected valid base64",
    ),
    "proxy of another kind": (
        config(cluster={"proxy-url": "socks5://user:secret@p:1080"}),
        ": clusters[0].cluster.proxy-url: expected an address such as http://proxy:3128, got socks5://p:1080",
    ),
    "certificate twice": (
        config(user={"client-certificate": "a", "client-certificate-data": CA, "client-key": "b"}),
        ": users[0].user.client-certificate: client-certificate-data is also set; only one is allowed",
    ),
    "certificate without key": (
        config(user={"client-certificate": "a"}),
        ": users[0].user.client-key: expected the key of the client certificate, got nothing",
    ),
    "token and password": (
        config(user={"token": "a", "username": "b"}),
        ": users[0].user.username: a token is also set; only one is allowed",
    ),
    "groups without user": (
        config(user={"as-groups": ["a"]}),
        ": users[0].user.as: expected a user to impersonate, because as-uid, as-groups or as-user-extra is set; got nothing",
    ),
    "auth provider": (
        config(user={"auth-provider": {"name": "oidc", "config": {"client-secret": "x"}}}),
        ": users[0].user.auth-provider: the auth provider oidc is no longer part of Kubernetes; use an exec plugin (kubelogin for",
    ),
    "plugin without program": (
        config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}}),
        ": users[0].user.exec.command: expected the program to run, got nothing",
    ),
    "plugin of an old version": (
        config(
            user={
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1alpha1",
                    "command": "x",
                    "interactiveMode": "Never",
                }
            }
        ),
        ": users[0].user.exec.apiVersion: expected client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1, got client.",
    ),
    "plugin without mode": (
        config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}),
        ": users[0].user.exec.interactiveMode: expected one of Never, IfAvailable, Always, got nothing",
    ),
    "variable without name": (
        config(
            user={
                "exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "x", "env": [{"value": "y"}]}
            }
        ),
        ": users[0].user.exec.env[0].name: expected a name, got nothing",
    ),
}


@pytest.mark.parametrize("content, message", BAD.values(), ids=BAD)
def test_errors_name_the_file_and_the_field(write, content, message):
    path = write(content)
    with pytest.raises(InputError) as caught:
        find(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_all_errors_are_reported_at_once(write):
    path = write(config(cluster={"server": ""}, user={"client-certificate": "a"}))
    with pytest.raises(InputError) as caught:
        find(path)
    assert len(caught.value.faults) == 2


def test_entries_that_the_context_does_not_use_may_be_invalid(write):
    broken = {"name": "broken", "user": {"auth-provider": {"name": "gcp"}}}
    content = config()
    assert find(write(content | {"users": [*content["users"], broken]})).context_name == "test"


def test_messages_about_malformed_files_show_no_secrets(write):
    path = write("users:\n- name: a\n  user: {token: s3cr3t, : [}\n")
    with pytest.raises(InputError) as caught:
        find(path)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("asked, text", [
    ("tset", "there is no context tset; did you mean test?"),
    ("production", "there is no context production; contexts: test"),
])  # fmt: skip
def test_unknown_contexts(write, asked, text):
    path = write(config())
    with pytest.raises(errors.UnknownContextError) as caught:
        find(path, context=asked)
    assert str(caught.value) == f"{path}: {text}"


def test_no_context_at_all(write):
    names = [{"name": f"c{number}", "context": {}} for number in range(10)]
    with pytest.raises(errors.UnknownContextError, match=r"no current-context; contexts: c0, c1, .*c7 and 2 more"):
        find(write(config(contexts=names) | {"current-context": ""}))


def test_with_a_server_and_a_token_the_context_needs_no_cluster_or_user(write):
    path = write(config(contexts=[{"name": "test", "context": {}}]))
    assert find(path, server="https://10.9.9.9/", token="x").server == "https://10.9.9.9"
    with pytest.raises(InputError, match=r"name of a cluster.*\n.*name of a user"):
        find(path)


@pytest.mark.parametrize("written, server", [
    ("https://a:6443/", "https://a:6443"),
    ("https://rancher/k8s/clusters/c-1/", "https://rancher/k8s/clusters/c-1"),
    ("10.0.0.1:6443", "https://10.0.0.1:6443"),
    ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
    ("http://localhost:8001?x=1#y", "http://localhost:8001"),
])  # fmt: skip
def test_addresses(write, written, server):
    assert find(write(config(cluster={"server": written}))).server == server


def test_impersonation(write):
    user = {
        "token": "t",
        "as": "ada",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"team/x y": ["1", "2"]},
    }
    path = write(config(user=user))
    assert find(path).impersonation.headers() == [
        ("Impersonate-User", "ada"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-team%2Fx%20y", "1"),
        ("Impersonate-Extra-team%2Fx%20y", "2"),
    ]
    assert find(path, as_user="eve", as_groups=("c",)).impersonation.headers() == [
        ("Impersonate-User", "eve"),
        ("Impersonate-Group", "c"),
    ]
    with pytest.raises(InputError, match="--as-uid and --as-group need --as"):
        find(path, as_groups=("c",))


def test_files_that_the_environment_names(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).touch()
    named = f"{tmp_path / 'one'}:{tmp_path / 'gone'}::{tmp_path / 'two'}:{tmp_path / 'one'}"
    assert [path.name for path in kubeconfig.default_files({"KUBECONFIG": named})] == ["one", "two"]
    with pytest.raises(InputError, match=r"^KUBECONFIG: no such file: .*gone$"):
        kubeconfig.default_files({"KUBECONFIG": str(tmp_path / "gone")})
    assert kubeconfig.default_files({}, tmp_path) == []
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert kubeconfig.default_files({}, tmp_path) == [tmp_path / ".kube" / "config"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without any kubeconfig that is no pod either."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(pathlib.Path, "home", lambda: tmp_path)


def test_auto_finds_the_access(nowhere, write, monkeypatch):
    for call in (connect.auto, connect.from_kubeconfig, connect.from_cluster):
        with pytest.raises(errors.NoClusterError):
            call()
    with pytest.raises(errors.UnknownContextError, match="no kubeconfig was found"):
        connect.auto(context="test")
    alone = connect.auto(options=ConnectOptions(server="http://localhost:8001", namespace="shop"))
    assert (alone.server, alone.namespace) == ("http://localhost:8001", "shop")
    path = write(config())
    assert connect.auto(path).server == "https://10.0.0.1:6443"
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert connect.auto(context="test").context_name == "test"
    with pytest.raises(InputError, match="no such file or directory"):
        connect.auto(path.with_name("gone"))


@pytest.mark.parametrize("server, no_proxy, proxy", [
    ("https://api.example.com", "", "http://p:3128"),
    ("http://api.example.com", "", ""),
    ("https://127.0.0.1:6443", "", ""),
    ("https://api.example.com", "example.com", ""),
    ("https://api.example.com", "other.com, .example.com", ""),
    ("https://api.example.com", "ample.com", "http://p:3128"),
    ("https://10.1.2.3", "10.0.0.0/8", ""),
    ("https://11.1.2.3", "10.0.0.0/8,10.1.2.3", "http://p:3128"),
    ("https://11.1.2.3", "*", ""),
])  # fmt: skip
def test_proxies_of_the_environment(monkeypatch, write, server, no_proxy, proxy):
    monkeypatch.setenv("HTTPS_PROXY", "http://p:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert transport.proxy_from_environment(server) == proxy
    assert find(write(config(cluster={"server": server, "proxy-url": "http://own:1"}))).proxy == "http://own:1"
