"""
Who we are to the server: a token, a name and password, a client certificate, kept fresh while we run.

`exec_plugin` has the credentials that another program hands out.
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

_REREAD = 60.0  # seconds after which files are read again: kubelets renew tokens long before they run out


class Credential(msgspec.Struct, frozen=True):
    """What goes with a request."""

    authorization: str = ""
    certificate: ClientCertificate | None = None

    def __repr__(self) -> str:
        return "Credential(…)"


class Credentials(Protocol):
    """Where credentials come from."""

    async def current(self) -> Credential:
        """What to use now."""

    async def renew(self, refused: Credential) -> bool:
        """Whether there is something else to try, now that the server has refused this."""


class ReadAgain:
    """Credentials that `read` finds in memory or in files. A read that fails does no harm while an older one worked."""

    def __init__(self, read: Callable[[], Credential], clock: Callable[[], float]) -> None:
        self._read, self._clock = read, clock
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def current(self) -> Credential:
        if self._credential is None or self._clock() - self._read_at >= _REREAD:
            self._read_once_more()
        assert self._credential is not None
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        self._read_once_more()
        return self._credential != refused

    def _read_once_more(self) -> None:
        self._read_at = self._clock()
        try:
            self._credential = self._read()
        except CredentialError:
            if self._credential is None:
                raise


def bearer(token: str, origin: str) -> str:
    """The header for a token. The text of an error does not show it."""
    token = token.strip()
    if not token:
        raise CredentialError(f"{origin}: the token is empty")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise CredentialError(f"{origin}: the token has characters that no token can have")
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def read_file(path: str, origin: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise CredentialError(f"{origin}: cannot read {path}: {error.strerror}") from None


def read_token(path: str, origin: str) -> str:
    """The header for the token in a file."""
    return bearer(read_file(path, origin).decode(errors="replace"), f"{origin}: {path}")


def why_refused(credential: Credential, now: dt.datetime) -> str:
    """What we know ourselves about why a server may have refused: nothing, or a clause that continues its message."""
    if credential.certificate is None and not credential.authorization:
        return "; we sent no credentials"
    return why_dropped(credential, now)


def why_dropped(credential: Credential, now: dt.datetime) -> str:
    """The same for a connection that broke off, which is how some servers refuse a certificate."""
    if credential.certificate is None:
        return ""
    from cryptography import x509

    expiry = x509.load_pem_x509_certificates(credential.certificate.certificate)[0].not_valid_after_utc
    return f"; our client certificate ({credential.certificate.origin}) expired on {expiry:%F}" if expiry < now else ""
