"""
Client credentials: a token, a user name and password, or a client certificate, renewed while the process runs.

`exec_plugin` has the credentials that an external program provides.
"""

from __future__ import annotations

import base64
import datetime as dt
import pathlib
from collections.abc import Callable
from typing import Protocol

import msgspec

from bayplan.kube_api.errors import CredentialError
from bayplan.kube_api.tls import ClientCertificate

_REREAD_INTERVAL_SECONDS = 60.0  # kubelets renew mounted tokens long before they expire


class Credential(msgspec.Struct, frozen=True):
    """What authenticates a request."""

    authorization: str = ""
    certificate: ClientCertificate | None = None

    def __repr__(self) -> str:
        return "Credential(…)"


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self) -> Credential:
        """The credential to use now."""

    async def renew(self, rejected: Credential) -> bool:
        """Renew after the server rejected this credential; false if there is no other one to try."""

    def separate(self) -> Credentials:
        """The same source for a connection of another thread, with nothing shared that could make either wait."""


class RereadCredentials:
    """Credentials from memory or files, read again at intervals. A failed read keeps the credential read before."""

    def __init__(self, read: Callable[[], Credential], clock: Callable[[], float]) -> None:
        self._read, self._clock = read, clock
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def current(self) -> Credential:
        if self._credential is None or self._clock() - self._read_at >= _REREAD_INTERVAL_SECONDS:
            self._reread()
        assert self._credential is not None
        return self._credential

    async def renew(self, rejected: Credential) -> bool:
        self._reread()
        return self._credential != rejected

    def separate(self) -> RereadCredentials:
        return RereadCredentials(self._read, self._clock)

    def _reread(self) -> None:
        self._read_at = self._clock()
        try:
            self._credential = self._read()
        except CredentialError:
            if self._credential is None:
                raise


def bearer(token: str, origin: str) -> str:
    """The Authorization header for a token. Errors do not show the token."""
    token = token.strip()
    if not token:
        raise CredentialError(f"{origin}: the token is empty")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise CredentialError(f"{origin}: the token has characters that are not allowed in a token")
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def read_file(path: str, origin: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise CredentialError(f"{origin}: cannot read {path}: {error.strerror}") from None


def read_token(path: str, origin: str) -> str:
    """The Authorization header for the token in a file."""
    return bearer(read_file(path, origin).decode(errors="replace"), f"{origin}: {path}")


def rejection_hint(credential: Credential, now: dt.datetime) -> str:
    """A likely cause of a 401, as a clause that continues the server's message; empty if none is known."""
    if credential.certificate is None and not credential.authorization:
        return "; no credentials were sent"
    return disconnect_hint(credential, now)


def disconnect_hint(credential: Credential, now: dt.datetime) -> str:
    """The same for a closed connection, which is how some servers reject a client certificate."""
    if credential.certificate is None:
        return ""
    from cryptography import x509

    expiry = x509.load_pem_x509_certificates(credential.certificate.certificate)[0].not_valid_after_utc
    return f"; the client certificate ({credential.certificate.origin}) expired on {expiry:%F}" if expiry < now else ""
