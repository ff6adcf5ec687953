"""Credentials for the API server: an authority, tokens, client certificates, kubeconfig files."""

import dataclasses
import datetime as dt
import itertools
import pathlib
import secrets

import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

LOOPBACK = ("127.0.0.1", "localhost")


@dataclasses.dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ()


# `restricted` has the name of a service account and only the rights that every account has.
USERS = {
    "admin": User("admin", ("system:masters",)),
    "kube-scheduler": User("system:kube-scheduler"),
    "restricted": User(
        "system:serviceaccount:default:restricted", ("system:serviceaccounts", "system:serviceaccounts:default")
    ),
}


class Credentials:
    """All secrets of one test server, as files in its own folder."""

    def __init__(self, folder, users):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.users = users
        self.tokens = {user: secrets.token_hex(16) for user in users}
        self._authority = trustme.CA()
        self._numbers = itertools.count(1)
        self.ca_file = self._write("ca.pem", self._authority.cert_pem.bytes())
        self.serving_certificate, self.serving_key = self.issue(*LOOPBACK, common_name="kube-apiserver")
        key = ec.generate_private_key(ec.SECP256R1())
        self.account_key = self._write(
            "service-accounts.pem",
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            ),
        )
        lines = (f'{self.tokens[key]},{user.name},{key},"{",".join(user.groups)}"' for key, user in users.items())
        self.token_file = self._write("tokens.csv", "\n".join(lines).encode())

    def issue(self, *hosts, common_name, group=None, lifetime=None):
        """
        The files of a new certificate and its key. For a client, `common_name` is the user and `group` the group.

        A negative `lifetime` (seconds) makes one that has expired.
        """
        now = dt.datetime.now(dt.UTC)
        times = {}
        if lifetime is not None:
            times = {
                "not_before": now - dt.timedelta(days=1),
                "not_after": now + dt.timedelta(seconds=lifetime),
            }
        leaf = self._authority.issue_cert(*hosts, common_name=common_name, organization_name=group, **times)
        number = next(self._numbers)
        chain = b"".join(part.bytes() for part in leaf.cert_chain_pems)
        key = self._write(f"{number}.key", leaf.private_key_pem.bytes())
        return self._write(f"{number}.pem", chain), key

    def kubeconfig(self, url, entry, *, namespace=None):
        """A kubeconfig file with one context `test`; `entry` is its user as kubeconfig spells it."""
        context = {"cluster": "test", "user": "test"} | ({"namespace": namespace} if namespace else {})
        cluster = {"server": url} | ({"certificate-authority": str(self.ca_file)} if url.startswith("https") else {})
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": entry}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }
        return self._write(f"{next(self._numbers)}.kubeconfig", yaml.safe_dump(content).encode())

    def _write(self, name, content):
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path
