"""TLS contexts from certificate authorities and client certificates."""

from __future__ import annotations

import os
import pathlib
import ssl
import tempfile
from collections.abc import Callable

import msgspec

from bayplan.errors import InputError
from bayplan.kube_api.errors import CredentialError

_REREAD_INTERVAL_SECONDS = 60.0  # for a file of certificate authorities


class ClientCertificate(msgspec.Struct, frozen=True):
    """A certificate and its key in PEM form; `origin` says where they come from."""

    certificate: bytes
    key: bytes
    origin: str

    def __repr__(self) -> str:
        return f"ClientCertificate(origin={self.origin!r})"


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Which server certificates are trusted. Without certificate authorities, those of the system."""

    authorities: bytes = b""
    authorities_file: str = ""
    origin: str = ""
    server_name: str = ""
    insecure: bool = False

    def pem(self) -> bytes:
        if self.authorities or not self.authorities_file:
            return self.authorities
        try:
            return pathlib.Path(self.authorities_file).read_bytes()
        except OSError as error:
            raise InputError(f"{self.origin}: cannot read {self.authorities_file}: {error.strerror}") from None


class TlsContexts:
    """The TLS context for the current certificates, created again when the authorities or the client's change."""

    def __init__(self, trust: Trust, clock: Callable[[], float]) -> None:
        self._trust, self._clock = trust, clock
        self._pem, self._read_at = trust.pem(), clock()
        self._made_for: tuple[bytes, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def current(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        inputs = (self._current_pem(), certificate)
        if self._context is None or inputs != self._made_for:
            self._context, self._made_for = make_context(self._trust, *inputs), inputs
        return self._context

    def _current_pem(self) -> bytes:
        if self._trust.authorities_file and self._clock() - self._read_at >= _REREAD_INTERVAL_SECONDS:
            self._read_at = self._clock()
            try:
                self._pem = self._trust.pem()
            except InputError:
                return self._pem  # the file may be in the middle of a replacement
        return self._pem


def make_context(trust: Trust, pem: bytes, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """A context that trusts only the authorities in `pem`, or those of the system if `pem` is empty."""
    try:
        context = ssl.create_default_context(cadata=pem.decode("ascii") if pem else None)
    except (ssl.SSLError, UnicodeDecodeError):
        raise InputError(f"{trust.origin}: expected certificates in PEM form") from None
    # As in Go: a listed intermediate is trusted, and authorities made by cluster tools need not be strictly RFC 5280.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Load the key through a temporary file with mode 0600, because OpenSSL reads keys from files only."""
    handle, path = tempfile.mkstemp(prefix="bayplan-")  # created with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.certificate + b"\n" + certificate.key + b"\n")
        # Without a callback OpenSSL would prompt on the terminal for the pass phrase.
        context.load_cert_chain(path, password=_no_pass_phrase)
    except (ssl.SSLError, ValueError):
        raise CredentialError(
            f"{certificate.origin}: the client certificate and its key cannot be used: expected both in PEM form, "
            "belonging together, the key without a pass phrase"
        ) from None
    finally:
        pathlib.Path(path).unlink()


def _no_pass_phrase() -> str:
    raise ValueError
